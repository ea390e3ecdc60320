"""Functions that see a commit before it is made can describe it, or refuse it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from qbeast_core import (
    CommitNote,
    PendingCommit,
    QbeastTable,
    before_commit,
    convert_to_qbeast,
    failpoints,
    migrate_format,
    write_table,
)
from qbeast_core.errors import CommitVetoed, InvalidOptions
from tests.integration.core.other_threads import Once
from tests.support.delta_log import actions, last_version, live_adds
from tests.support.invariants import assert_sound
from tests.support.reference_tables import PLAIN, copied


def rows(spark: SparkSession, first: int, last: int) -> DataFrame:
    return spark.range(first, last, 1, 1).selectExpr("id", "id * 2 as a", "0 as n")


class Watching:
    """A hook that keeps what it saw and describes each commit."""

    def __init__(self) -> None:
        self.seen: list[PendingCommit] = []

    def __call__(self, commit: PendingCommit) -> CommitNote:
        self.seen.append(commit)
        return CommitNote({"seen": str(len(self.seen))}, f"{commit.operation}, watched")


class Refusing:
    """A hook that refuses each commit, and counts."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, commit: PendingCommit) -> None:
        self.times += 1
        raise PermissionError(f"no {commit.operation}")


def test_every_operation_is_seen_described_and_refused(spark: SparkSession, tmp_path: Path) -> None:
    path, other = str(tmp_path / "t"), str(tmp_path / "other")

    def table() -> QbeastTable:
        return QbeastTable.for_path(spark, path)

    def write(first: int, last: int, mode: str = "append") -> Callable[[], Any]:
        new, bounds = rows(spark, first, last), {"id": {"min": 0, "max": 99}}
        return lambda: write_table(
            new, path=path, mode=mode, columns_to_index=["id"], column_stats=bounds
        )

    steps: dict[str, list[Callable[[], Any]]] = {
        "create": [write(0, 40)],
        "append": [write(40, 45), write(50, 55), write(30, 35)],
        "optimize": [lambda: table().optimize()],
        "merge": [lambda: table().merge(rows(spark, 3, 60), "id", update={"n": "target.n + 1"})],
        "update": [lambda: table().update({"n": "n + 1"}, "id > 50")],
        "delete": [lambda: table().delete("id > 50")],
        "replace": [
            lambda: table().replace_where(rows(spark, 0, 3), "id < 5"),
            lambda: table().replace_matching(rows(spark, 1, 2), "id"),
        ],
        "overwrite": [write(0, 20, "overwrite"), lambda: table().drop_columns("n")],
    }
    for name, operations in steps.items():
        for operation in operations:
            assert_refused(path, name, operation)
            assert_watched(path, name, operation)
    history = spark.sql(f"describe history delta.`{path}`").select("userMetadata").first()
    assert history and history[0] == "overwrite, watched"
    assert_sound(spark, path, range(20))

    rows(spark, 0, 9).write.format("delta").save(other)
    legacy = copied(PLAIN, tmp_path)
    for place, name, once in (
        (other, "convert", lambda: convert_to_qbeast(spark, f"delta.`{other}`", "id")),
        # Its files stay, with other tags.
        (legacy, "migrate", lambda: migrate_format(spark, legacy)),
    ):
        assert_refused(place, name, once)
        assert_watched(place, name, once)


def assert_refused(path: str, name: str, operation: Callable[[], Any]) -> None:
    before, files, refusing = last_version(path), live_adds(path), Refusing()
    with (
        before_commit(refusing),
        pytest.raises(CommitVetoed, match=rf"refused this {name} of file:.*: no {name}") as raised,
    ):
        operation()
    assert isinstance(raised.value.__cause__, PermissionError) and refusing.times == 1
    assert (last_version(path), live_adds(path)) == (before, files)


def assert_watched(path: str, name: str, operation: Callable[[], Any]) -> None:
    before, files = last_version(path), live_adds(path)
    with before_commit(watching := Watching()):
        operation()
    (seen,) = watching.seen
    assert (seen.operation, seen.read_version) == (name, before)
    assert seen.location == f"file:{path}" and last_version(path) == before + 1
    now, (info,) = live_adds(path), actions(path, before + 1, "commitInfo")
    assert info["tags"]["seen"] == "1" and info["userMetadata"] == f"{name}, watched"
    assert {file.path for file in seen.added} == set(now) - set(files)
    assert {file.path for file in seen.removed} == set(files) - set(now)
    for file in seen.added:
        assert (file.size_bytes, file.tags) == (now[file.path]["size"], now[file.path]["tags"])
    assert all(file.rows is not None for file in (*seen.added, *seen.removed))


def test_dropping_mapped_columns_can_be_refused(spark: SparkSession, tmp_path: Path) -> None:
    path, mapped = str(tmp_path), {"delta.columnMapping.mode": "name"}
    write_table(rows(spark, 0, 9), path=path, columns_to_index=["id"], properties=mapped)
    with before_commit(Refusing()), pytest.raises(CommitVetoed, match="no drop columns"):
        QbeastTable.for_path(spark, path).drop_columns("n")
    assert last_version(path) == 0
    with before_commit(watching := Watching()):
        QbeastTable.for_path(spark, path).drop_columns("n")
    assert [commit.operation for commit in watching.seen] == ["drop columns"]


def test_a_hook_is_called_for_each_attempt_and_for_no_other_commit(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, log = str(tmp_path / "t"), str(tmp_path / "log")
    write_table(rows(spark, 0, 9), path=path, columns_to_index=["id"])
    write_table(spark.range(1), path=log, columns_to_index=["id"])

    def noting(commit: PendingCommit) -> None:
        assert commit.user_metadata == "mine"
        versions = spark.createDataFrame([(commit.read_version,)], "id long")
        # Both writers see the newest version of this table, not the one that the commit began with.
        write_table(versions, path=log)
        versions.write.format("delta").mode("append").save(log)

    table = QbeastTable.for_path(spark, path)
    other = Once(lambda: write_table(rows(spark, 9, 10), path=path))
    with before_commit(noting), failpoints.at(failpoints.BEFORE_COMMIT, other):
        assert table.update({"n": "5"}, "id > 5", user_metadata="mine").version == 2
        # Nothing to commit.
        table.delete("id = 77", user_metadata="mine")
    found = [row[0] for row in spark.read.format("delta").load(log).collect()]
    assert sorted(found) == [0, 0, 0, 1, 1]
    (info,) = actions(path, 2, "commitInfo")
    assert info["userMetadata"] == "mine" and "tags" not in info
    assert_sound(spark, path, range(10))


def test_conflicting_hook_metadata_leaves_the_table_unchanged(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    write_table(rows(spark, 0, 9), path=path, columns_to_index=["id"])
    with (
        before_commit(lambda commit: CommitNote(user_metadata="yours")),
        pytest.raises(InvalidOptions, match="'mine' and to 'yours'"),
    ):
        write_table(rows(spark, 9, 10), path=path, user_metadata="mine")
    assert last_version(path) == 0
