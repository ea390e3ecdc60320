"""Optimize combines the revisions that appends beyond the range leave, and the log forgets them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable, failpoints, write_table
from tests.integration.core.other_threads import Once
from tests.support.delta_log import configuration, last_version
from tests.support.invariants import assert_rows_in_their_cubes, assert_sound

APPENDS, ROWS = 8, 40


def append(
    spark: SparkSession, path: str, number: int, rows: int = ROWS, where: str = "true"
) -> None:
    """Append rows that are later than all others."""
    first = number * ROWS
    later = spark.range(first, first + rows, 1, 1).selectExpr("id", "id * 10 as t").where(where)
    write_table(later, path=path, columns_to_index=["t"], cube_size=1000)


def stored_revisions(path: str) -> set[str]:
    return {key for key in configuration(path) if key.startswith("qbeast.revision.")}


@pytest.fixture(scope="module")
def history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table after appends of later and later rows and one optimize."""
    path = str(tmp_path_factory.mktemp("history") / "t")
    # The first revision has two files.
    for where in ("id % 3 = 0", "id % 3 > 0"):
        append(spark, path, 0, where=where)
    for number in range(1, APPENDS):
        append(spark, path, number)
    table = assert_sound(spark, path, range(APPENDS * ROWS))
    assert {file.revision_id for file in table.files()} == set(range(1, APPENDS + 1))
    expected = table.optimize("all", dry_run=True)
    assert expected.rows == (APPENDS - 1) * ROWS
    assert table.optimize().changed
    return path


def test_small_revisions_join_the_latest_one(spark: SparkSession, history: str) -> None:
    table = assert_sound(spark, history, range(APPENDS * ROWS), where="t between 100 and 900")
    assert {file.revision_id for file in table.files()} == {APPENDS}
    assert_rows_in_their_cubes(spark, history)


@pytest.mark.parametrize("wanted", [None, "all", "unindexed"])
def test_a_second_optimize_writes_nothing(spark: SparkSession, history: str, wanted: str) -> None:
    before = last_version(history)
    assert not QbeastTable.for_path(spark, history).optimize(wanted).changed
    assert last_version(history) == before


def test_a_revision_that_an_optimize_makes_a_small_older_one_joins_too(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    append(spark, path, 0, rows=5)
    beyond = spark.range(100, 150, 1, 1).selectExpr("id", "id * 10 as t")
    beyond.write.format("delta").mode("append").save(path)
    assert QbeastTable.for_path(spark, path).optimize().changed
    table = assert_sound(spark, path, [*range(5), *range(100, 150)])
    assert {file.revision_id for file in table.files()} == {2}
    assert not table.optimize(dry_run=True).changed


def test_the_next_revision_drops_those_without_files(spark: SparkSession, history: str) -> None:
    assert len(stored_revisions(history)) == APPENDS + 1
    version = last_version(history)
    append(spark, history, APPENDS)
    kept = {0, APPENDS, APPENDS + 1}
    assert stored_revisions(history) == {f"qbeast.revision.{id_}" for id_ in kept}
    table = assert_sound(spark, history, range((APPENDS + 1) * ROWS))
    assert table.check().ok
    spark.sql(f"restore table delta.`{history}` to version as of {version}")
    assert len(stored_revisions(history)) == APPENDS + 1
    assert_sound(spark, history, range(APPENDS * ROWS))


def test_the_last_revision_stays_in_the_log_without_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    append(spark, path, 0)
    append(spark, path, 1)
    spark.sql(f"delete from delta.`{path}`")
    meanwhile = Once(lambda: append(spark.newSession(), path, 0))
    with failpoints.at(failpoints.BEFORE_COMMIT, meanwhile):
        append(spark, path, 2)
    # The other writer has appended to revision 2, which had no file when this one began.
    assert stored_revisions(path) == {f"qbeast.revision.{id_}" for id_ in (0, 2, 3)}
    table = assert_sound(spark, path, [*range(ROWS), *range(2 * ROWS, 3 * ROWS)])
    assert {file.revision_id for file in table.files()} == {2, 3}
    assert table.check().ok


def test_files_and_fractions_leave_small_revisions_where_they_are(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    append(spark, path, 0)
    append(spark, path, 1)
    table = QbeastTable.for_path(spark, path)
    assert not table.optimize(fraction=0.5).changed
    assert not table.optimize(files=[file.path for file in table.files()]).changed
    assert not table.optimize(2).changed
    assert table.optimize("all").changed


def test_a_large_older_revision_stays(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    append(spark, path, 0, rows=2000)
    append(spark, path, 50)
    append(spark, path, 51)
    table = QbeastTable.for_path(spark, path)
    assert table.optimize(dry_run=True).rows == ROWS
    assert table.optimize().changed
    after = assert_sound(spark, path, [*range(2000), *range(50 * ROWS, 52 * ROWS)])
    assert {file.revision_id for file in after.files()} == {1, 3}
