"""Clocks that go back: the order of a table's versions is that of its log."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qbeast_core import QbeastTable, write_table
from qbeast_core.model.weight import weight_of_fraction
from tests.support.delta_log import actions, revisions
from tests.support.invariants import assert_sound

DAY_SECONDS = 86_400
IN_COMMITS = {"delta.enableInCommitTimestamps": "true"}


def rows(spark: SparkSession, first: int, count: int, shift: int = 0) -> DataFrame:
    return spark.range(first, first + count, 1, 1).selectExpr("id", f"id * 31 % 211 + {shift} as a")


def written_tomorrow(path: Path, to: Path) -> str:
    """A copy of a table of one version as if a clock that is a day fast had written it."""
    shutil.copytree(path, to)
    tomorrow = time.time() + DAY_SECONDS
    log = to / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for action in lines:
        for info in filter(None, [action.get("commitInfo")]):
            info["timestamp"] += DAY_SECONDS * 1000
            if "inCommitTimestamp" in info:
                info["inCommitTimestamp"] += DAY_SECONDS * 1000
        if "add" in action:
            action["add"]["modificationTime"] += DAY_SECONDS * 1000
    log.write_text("\n".join(map(json.dumps, lines)))
    for checksum in log.parent.glob("*.crc"):
        checksum.unlink()
    for file in to.rglob("*"):
        os.utime(file, (tomorrow, tomorrow))
    return str(to)


@pytest.mark.parametrize("properties", [{}, IN_COMMITS], ids=["times of files", "in commits"])
def test_versions_written_before_the_last_one_come_after_it(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    properties: Mapping[str, str],
) -> None:
    made = tmp_path / "made"
    options = {"columns_to_index": ["a"], "cube_size": 20, "properties": properties}
    write_table(rows(spark, 0, 200), path=str(made), **options)
    path = written_tomorrow(made, tmp_path / "t")
    # Delta's clock is a day behind the last commit, and our own a year.
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() - 365 * DAY_SECONDS)
    appended = write_table(rows(spark, 200, 60, shift=1000), path=path)
    QbeastTable.for_path(spark, path).delete("id % 10 = 3")
    monkeypatch.undo()
    assert (appended.new_revision, appended.revision_id) == (True, 2)
    known = revisions(path)
    assert known[2].timestamp_millis < known[1].timestamp_millis
    left = [id_ for id_ in range(260) if id_ % 10 != 3]
    table = assert_sound(spark, path, left, where="a > 900")
    assert table.latest_revision.revision_id == 2

    at = F.date_format("timestamp", "yyyy-MM-dd HH:mm:ss.SSSSSS").alias("at")
    history = spark.sql(f"describe history delta.`{path}`").select("version", at)
    times = {row.version: row.at for row in history.collect()}
    assert sorted(times.values()) == [times[version] for version in (0, 1, 2)]
    assert len(set(times.values())) == 3
    if properties:
        stamps = [actions(path, v, "commitInfo")[0]["inCommitTimestamp"] for v in range(3)]
        assert stamps == sorted(set(stamps)) and stamps[0] > now() * 1000
    condition, limit = table.sample_condition(0.3), weight_of_fraction(0.3)
    for version, ids in enumerate((range(200), range(260), left)):
        then = spark.sql(
            f"select *, hash(a) as w from delta.`{path}` timestamp as of '{times[version]}'"
        )
        found = {row.id: row.w for row in then.collect()}
        assert sorted(found) == list(ids)
        sampled = sorted(row.id for row in then.where(condition).collect())
        assert sampled == sorted(id_ for id_, weight in found.items() if weight < limit)
