"""Optimize gathers what is scattered, changes no row, and does nothing the second time."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from qbeast_core import QbeastTable, write_table
from qbeast_core.delta import snapshot
from qbeast_core.errors import ExecutionFailed, InvalidOptions
from qbeast_core.jvm.settings import changed_settings
from tests.support.delta_log import actions, configuration, last_version, live_adds, plain
from tests.support.hashed_rows import rows
from tests.support.invariants import assert_rows_in_their_cubes, assert_sound

CUBE_SIZE = 200


@pytest.fixture(scope="module")
def fragmented(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any]:
    """A table after 20 small appends and one optimize, with its result."""
    path = str(tmp_path_factory.mktemp("optimized") / "t")
    write_table(rows(spark, 0, 2000), path=path, columns_to_index=["a", "b"], cube_size=CUBE_SIZE)
    for number in range(20):
        write_table(rows(spark, 2000 + 30 * number, 30), path=path)
    assert len(live_adds(path)) > 25
    return path, QbeastTable.for_path(spark, path).optimize()


def test_the_result_describes_the_commit(fragmented: tuple[str, Any]) -> None:
    path, result = fragmented
    added, removed = actions(path, 21, "add"), actions(path, 21, "remove")
    assert (result.version, last_version(path)) == (21, 21)
    assert (result.files_added, result.files_removed) == (len(added), len(removed))
    assert result.bytes_added == sum(add["size"] for add in added)
    assert result.bytes_removed == sum(remove["size"] for remove in removed)
    in_files = sum(json.loads(add["stats"])["numRecords"] for add in added)
    assert result.rows == in_files
    assert str(result.files_removed) in str(result)


def test_small_files_become_few(spark: SparkSession, fragmented: tuple[str, Any]) -> None:
    path, _ = fragmented
    files = QbeastTable.for_path(spark, path).files()
    assert len(files) <= 2600 / (0.5 * CUBE_SIZE) + 1
    small = [file for file in files if file.rows < 0.5 * CUBE_SIZE]
    # One for each band of few rows: below 3, 10 and 30 % of the table.
    assert len(small) <= 3
    assert max(file.rows for file in files) <= 3 * CUBE_SIZE


def test_rows_and_samples_are_what_they_were(
    spark: SparkSession, fragmented: tuple[str, Any]
) -> None:
    path, _ = fragmented
    assert_sound(spark, path, range(2600), where="a < 250 and b > 100")
    assert_rows_in_their_cubes(spark, path)

    def contents(version: int) -> list:
        at = spark.read.format("delta").option("versionAsOf", version).load(path)
        return sorted(at.collect())

    assert contents(20) == contents(21)


def test_a_second_optimize_writes_nothing(spark: SparkSession, fragmented: tuple[str, Any]) -> None:
    path, _ = fragmented
    before = last_version(path)
    for wanted in (None, "all", "unindexed", 1):
        result = QbeastTable.for_path(spark, path).optimize(revision_id=wanted)
        assert not result.changed
        assert (result.files_added, result.rows, result.version) == (0, 0, before)
        assert str(result) == "no file needs rewriting"
    assert last_version(path) == before


def test_a_small_sample_reads_less_after_it(
    spark: SparkSession, fragmented: tuple[str, Any]
) -> None:
    path, _ = fragmented
    table = QbeastTable.for_path(spark, path)
    assert sum(file.rows for file in table.files(0.02)) <= 0.3 * 2600


def test_a_vacuum_without_any_retention_leaves_the_files_of_the_table(
    spark: SparkSession, fragmented: tuple[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "t"
    shutil.copytree(fragmented[0], path)
    assert set(live_adds(path)) < {file.name for file in path.glob("*.parquet")}
    short = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}
    with changed_settings(spark, short):
        spark.sql(f"vacuum delta.`{path}` retain 0 hours").collect()
    assert set(live_adds(path)) == {file.name for file in path.glob("*.parquet")}
    assert_sound(spark, path, range(2600), where="a < 250")


def test_a_dry_run_writes_nothing_and_reports_what_would_be_done(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    write_table(rows(spark, 0, 600), path=path, columns_to_index=["a"], cube_size=CUBE_SIZE)
    for first in (600, 620, 640):
        write_table(rows(spark, first, 20), path=path)
    files = {file.name for file in tmp_path.iterdir()}
    table = QbeastTable.for_path(spark, path)
    would = table.optimize(dry_run=True)
    assert would.dry_run and would.changed and would.version == 3
    assert last_version(path) == 3
    assert {file.name for file in tmp_path.iterdir()} == files
    did = table.optimize()
    assert (did.files_removed, did.bytes_removed, did.rows) == (
        would.files_removed,
        would.bytes_removed,
        would.rows,
    )


def test_files_of_other_writers_get_indexed(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    write_table(rows(spark, 0, 1000), path=path, columns_to_index=["a", "b"], cube_size=CUBE_SIZE)
    # Values that are there already, and so within the range.
    others = rows(spark, 0, 500).withColumn("id", F.col("id") + 1000)
    others.write.format("delta").mode("append").save(path)
    table = assert_sound(spark, path, range(1500))
    foreign = [file for file in table.files() if file.revision_id == 0]
    assert sum(file.rows for file in foreign) == 500
    # Files that are not indexed are always read.
    assert {file.path for file in foreign} <= {file.path for file in table.files(0.01)}
    result = table.optimize(revision_id="unindexed")
    assert (result.files_removed, result.rows) == (len(foreign), 500)
    after = assert_sound(spark, path, range(1500))
    assert {file.revision_id for file in after.files()} == {1}
    assert_rows_in_their_cubes(spark, path)
    assert not after.optimize(revision_id="unindexed").changed


def test_files_of_other_writers_beyond_the_range_get_a_revision(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    write_table(rows(spark, 0, 600), path=path, columns_to_index=["a", "b"], cube_size=CUBE_SIZE)
    rows(spark, 600, 500, shift=5000).write.format("delta").mode("append").save(path)
    table = QbeastTable.for_path(spark, path)
    table.optimize()
    after = assert_sound(spark, path, range(1100), where="a > 5500")
    assert after.revision_ids == [0, 1, 2]
    assert configuration(path)["qbeast.lastRevisionID"] == "2"
    assert_rows_in_their_cubes(spark, path)
    assert not after.optimize(revision_id="all").changed


def test_a_table_that_only_others_filled_gets_its_first_revision(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    write_table(rows(spark, 0, 0), path=path, columns_to_index=["a", "b"], cube_size=CUBE_SIZE)
    rows(spark, 0, 700).write.format("delta").mode("append").save(path)
    table = assert_sound(spark, path, range(700))
    assert table.optimize().changed
    after = assert_sound(spark, path, range(700), where="b < 100")
    assert after.latest_revision.revision_id == 1
    assert {file.revision_id for file in after.files()} == {1}
    assert_rows_in_their_cubes(spark, path)


def test_an_older_revision_is_optimized_where_it_is(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    write_table(rows(spark, 0, 600), path=path, columns_to_index=["a", "b"], cube_size=CUBE_SIZE)
    for first in (600, 620, 640):
        write_table(rows(spark, first, 20), path=path)
    write_table(rows(spark, 700, 600, shift=2000), path=path)
    table = QbeastTable.for_path(spark, path)
    assert not table.optimize().changed  # the latest alone needs no rewriting
    result = table.optimize(revision_id=1)
    assert result.changed
    assert {add["tags"]["revision"] for add in actions(path, result.version, "add")} == {"1"}
    assert_sound(spark, path, [*range(660), *range(700, 1300)], where="a < 300")
    assert_rows_in_their_cubes(spark, path)


def test_rows_beyond_their_older_revision_join_the_latest(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    days = "date_add(date'2020-01-01', cast(id div 4 as int)) as d"
    dated = spark.range(0, 600, 1, 1).selectExpr("id", days)
    for part in range(4):
        appended = dated.where(f"id % 4 = {part}")
        write_table(appended, path=path, columns_to_index=["d"], cube_size=CUBE_SIZE)
    write_table(dated.selectExpr("id + 600 as id", "d"), path=path, cube_size=900)
    last = QbeastTable.for_path(spark, path).latest_revision
    assert last.revision_id == 2
    # As by a qbeast-spark in another time zone.
    stored = json.loads(configuration(path)["qbeast.revision.1"])
    stored["transformations"][0]["maxNumber"] -= 86_400_000
    text = json.dumps(stored, separators=(",", ":"))
    spark.sql(f"alter table delta.`{path}` set tblproperties ('qbeast.revision.1' = '{text}')")
    assert QbeastTable.for_path(spark, path).optimize(revision_id=1).changed
    after = assert_sound(spark, path, range(1200), where="d > '2020-05-01'")
    assert {file.revision_id for file in after.files()} == {2}
    assert after.latest_revision == last
    assert_rows_in_their_cubes(spark, path)


@pytest.mark.parametrize("wanted", [7, -1, 0, "alll", True, 1.5])
def test_a_revision_that_is_not_there_is_refused(
    spark: SparkSession, fragmented: tuple[str, Any], wanted: Any
) -> None:
    path, _ = fragmented
    with pytest.raises(InvalidOptions, match="use one of 1, 'all', 'unindexed'") as refused:
        QbeastTable.for_path(spark, path).optimize(revision_id=wanted)
    assert repr(wanted) in str(refused.value)


def test_an_empty_table_has_nothing_to_gain(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    write_table(rows(spark, 0, 0), path=path, columns_to_index=["a"])
    assert not QbeastTable.for_path(spark, path).optimize(revision_id="all").changed
    assert last_version(path) == 0


def test_crowded_cubes_are_spread_again(spark: SparkSession, tmp_path: Path) -> None:
    """Many appends to one place fill its cubes beyond measure until an optimize."""
    path = str(tmp_path)
    write_table(rows(spark, 0, 1000), path=path, columns_to_index=["a", "b"], cube_size=CUBE_SIZE)
    for number in range(6):
        crowd = spark.range(1000 + 300 * number, 1300 + 300 * number, 1, 1).selectExpr(
            "id", "pmod(hash(id), 60) as a", "pmod(hash(id, 1), 60) as b"
        )
        write_table(crowd, path=path)
    table = QbeastTable.for_path(spark, path)
    table.optimize()
    assert_sound(spark, path, range(2800), where="a < 30 and b < 30")
    assert_rows_in_their_cubes(spark, path)
    assert not table.optimize().changed


def test_crowded_cubes_without_lower_weights_are_left_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Five customers in a billionth of the range: 30 levels down, no lower weight is left."""
    path = str(tmp_path / "t")
    close = "if(id = 0, 1, pmod(id * 7919, 2000) / 2000 * 1e-9D)"
    write_table(
        spark.range(0, 2000, 1, 1).selectExpr("id", f"cast({close} as double) x", "id % 5 as k"),
        path=path,
        columns_to_index=["x"],
        sample_key=["k"],
        cube_size=50,
    )
    in_pieces: dict[str, list[int]] = {}
    for add in live_adds(path).values():
        for block in json.loads(add["tags"]["blocks"]):
            in_pieces.setdefault(block["cubeId"], []).append(block["elementCount"])
    assert any(len(counts) > 2 and sum(counts) > 2 * 50 for counts in in_pieces.values())
    assert not QbeastTable.for_path(spark, path).optimize().changed


def test_a_round_gathers_what_the_last_one_left(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    for first, count in ((0, 2000), (2000, 600), (2600, 600), (3200, 600)):
        write_table(
            rows(spark, first, count), path=path, columns_to_index=["a", "b"], cube_size=CUBE_SIZE
        )
    table = QbeastTable.for_path(spark, path)

    result = table.optimize()
    assert result.version == last_version(path) > 4, "one round was enough"
    assert not table.optimize().changed
    assert_sound(spark, path, range(3800), where="a < 250")
    assert_rows_in_their_cubes(spark, path)


def test_deleted_rows_do_not_come_back(spark: SparkSession, tmp_path: Path) -> None:
    from delta.tables import DeltaTable

    path = str(tmp_path)
    write_table(rows(spark, 0, 1000), path=path, columns_to_index=["a", "b"], cube_size=CUBE_SIZE)
    DeltaTable.forPath(spark, path).delete("id % 10 = 3")
    left = [i for i in range(1000) if i % 10 != 3]
    assert_sound(spark, path, left)
    QbeastTable.for_path(spark, path).optimize(revision_id="all")
    after = assert_sound(spark, path, left)
    assert all(file.revision_id == 1 for file in after.files())


def test_rows_hidden_by_deletion_vectors_are_not_read(spark: SparkSession, tmp_path: Path) -> None:
    from delta.tables import DeltaTable

    path = str(tmp_path)
    write_table(
        rows(spark, 0, 1000),
        path=path,
        columns_to_index=["a", "b"],
        cube_size=CUBE_SIZE,
        properties={"delta.enableDeletionVectors": "true"},
    )
    DeltaTable.forPath(spark, path).delete("id % 10 = 3")
    assert any("deletionVector" in add for add in live_adds(path).values())
    left = [i for i in range(1000) if i % 10 != 3]
    table = assert_deletions_are_seen(spark, path, left)
    table.optimize(revision_id="all")
    assert_deletions_are_seen(spark, path, left)
    write_table(rows(spark, 1000, 300), path=path)
    assert_deletions_are_seen(spark, path, [*left, *range(1000, 1300)])


def assert_deletions_are_seen(spark: SparkSession, path: str, ids: Any) -> QbeastTable:
    table = QbeastTable.for_path(spark, path)
    assert sorted(row.id for row in plain(spark, path).collect()) == list(ids)
    for fraction in (0.1, 0.6):
        by_weight = plain(spark, path).where(table.sample_condition(fraction)).select("id")
        assert sorted(by_weight.collect()) == sorted(table.sample(fraction).select("id").collect())
    assert table.check().ok
    return table


def test_appends_of_full_files_are_gathered(spark: SparkSession, tmp_path: Path) -> None:
    """Each of them has a part of every cube, however large it is."""
    path = str(tmp_path)
    write_table(rows(spark, 0, 2000), path=path, columns_to_index=["a", "b"], cube_size=CUBE_SIZE)
    for number in range(5):
        write_table(rows(spark, 2000 + 300 * number, 300), path=path)
    table = QbeastTable.for_path(spark, path)
    before = sum(file.rows for file in table.files(0.01))
    appended = sum(file.size_bytes for file in table.files()) - sum(
        add["size"] for add in actions(path, 0, "add")
    )
    result = table.optimize()
    assert 1500 <= result.rows <= 3 * 1500
    assert appended <= result.bytes_written_since
    after = assert_sound(spark, path, range(3500), where="a < 250 and b > 100")
    assert sum(file.rows for file in after.files(0.01)) < before
    assert_rows_in_their_cubes(spark, path)
    assert not after.optimize().changed
    # From here on only what comes later counts.
    for first in (3500, 3520):
        write_table(rows(spark, first, 20), path=path)
    again = after.optimize(dry_run=True)
    sizes = [add["size"] for version in (7, 8) for add in actions(path, version, "add")]
    assert (again.changed, again.bytes_written_since) == (True, sum(sizes))


@pytest.mark.parametrize("read", [3, 2])
def test_of_a_long_history_the_newest_commits_are_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: int
) -> None:
    monkeypatch.setattr(snapshot, "_COMMITS_READ", read)
    path = str(tmp_path)
    for first in (0, 300, 600):
        write_table(
            rows(spark, first, 300), path=path, columns_to_index=["a", "b"], cube_size=CUBE_SIZE
        )
    planned = QbeastTable.for_path(spark, path).optimize(dry_run=True)
    # A file is older than the commit that adds it.
    assert planned.bytes_written_since == sum(
        add["size"] for v in range(4 - read, 3) for add in actions(path, v, "add")
    )


def test_only_the_files_that_are_named_are_rewritten(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    write_table(rows(spark, 0, 600), path=path, columns_to_index=["a", "b"], cube_size=CUBE_SIZE)
    for first in (600, 620, 640):
        write_table(rows(spark, first, 20), path=path)
    rows(spark, 660, 50).write.format("delta").mode("append").save(path)
    table = QbeastTable.for_path(spark, path)
    first, second, _ = (actions(path, version, "add")[0]["path"] for version in (1, 2, 3))
    assert not table.optimize(files=[first]).changed
    result = table.optimize([first, second])
    assert {remove["path"] for remove in actions(path, 5, "remove")} == {first, second}
    assert (result.rows, result.version) == (40, 5)
    with pytest.raises(InvalidOptions, match="not a file of version 5"):
        table.optimize(files=[first])
    foreign = actions(path, 4, "add")[0]["path"]
    table.optimize(files=foreign)
    assert {remove["path"] for remove in actions(path, 6, "remove")} == {foreign}
    assert_sound(spark, path, range(710))
    assert_rows_in_their_cubes(spark, path)


def test_a_fraction_leaves_alone_what_its_sample_does_not_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    write_table(rows(spark, 0, 600), path=path, columns_to_index=["a", "b"], cube_size=CUBE_SIZE)
    for number in range(4):
        light = "hash(a, b) < -1500000000" if number < 2 else "hash(a, b) > 0"
        write_table(rows(spark, 600 + 100 * number, 100).where(light), path=path)
    table = QbeastTable.for_path(spark, path)
    sampled = {file.path for file in table.files(0.2)}
    assert not table.optimize(fraction=0.0).changed
    assert table.optimize(fraction=0.2).changed
    removed = {remove["path"] for remove in actions(path, 5, "remove")}
    assert removed == {actions(path, version, "add")[0]["path"] for version in (1, 2)}
    assert removed <= sampled
    for first in (2000, 2100, 2200):
        rows(spark, first, 100).write.format("delta").mode("append").save(path)
    table.optimize(revision_id="unindexed", fraction=0.5)
    oldest = {actions(path, version, "add")[0]["path"] for version in (6, 7)}
    assert {remove["path"] for remove in actions(path, 9, "remove")} == oldest
    with pytest.raises(InvalidOptions, match="not between 0 and 1"):
        table.optimize(fraction=1.5)


def test_history_that_cannot_be_read_fails_an_optimize_before_it_commits(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    for first in (0, 300, 600):
        write_table(
            rows(spark, first, 300),
            path=path,
            columns_to_index=["a", "b"],
            cube_size=CUBE_SIZE,
            properties={"delta.checkpointInterval": "1"},
        )
    log = tmp_path / "_delta_log"
    (log / f"{0:020}.json").write_text("not JSON\n")
    (log / f".{0:020}.json.crc").unlink()
    table, before = QbeastTable.for_path(spark, path), last_version(path)
    with pytest.raises(ExecutionFailed):
        table.optimize()
    assert last_version(path) == before
    assert plain(spark, path).count() == 900


def test_an_optimize_needs_no_sql_on_files(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    for first in (0, 300, 600):
        write_table(
            rows(spark, first, 300), path=path, columns_to_index=["a", "b"], cube_size=CUBE_SIZE
        )
    with changed_settings(spark, {"spark.sql.runSQLOnFiles": "false"}):
        result = QbeastTable.for_path(spark, path).optimize()
    assert result.changed
    assert result.bytes_written_since == sum(
        add["size"] for v in range(3) for add in actions(path, v, "add")
    )
