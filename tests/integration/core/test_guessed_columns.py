"""Columns chosen from no rows are a guess: the first rows of the table choose again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from qbeast_core import QbeastTable, convert_to_qbeast, write_table
from qbeast_core.write import sizing
from tests.support.delta_log import configuration, last_version, plain, revisions
from tests.support.invariants import assert_rows_in_their_cubes, assert_sound


def rows(spark: SparkSession, first: int = 0, last: int = 600) -> DataFrame:
    """By the types `day` is the best column, by the rows `id`."""
    return spark.range(first, last).selectExpr("id", "date'2024-01-01' as day")


def days(spark: SparkSession) -> DataFrame:
    """Rows that `day` tells apart, and `id` does not."""
    return spark.range(600).selectExpr(
        "1L as id", "date_add(date'2024-01-01', cast(id as int)) as day"
    )


def columns(spark: SparkSession, path: str) -> list[str]:
    return QbeastTable.for_path(spark, path).columns_to_index


@pytest.fixture
def guessed(spark: SparkSession, tmp_path: Path) -> str:
    """A table without rows that guessed `day`."""
    path = str(tmp_path / "t")
    write_table(rows(spark, 0, 0), path=path, columns_to_index="auto:1", cube_size=100)
    assert columns(spark, path) == ["day"]
    assert configuration(path)["qbeast.chosenFrom"] == "0"
    return path


def replace_some(spark: SparkSession, path: str) -> Any:
    return QbeastTable.for_path(spark, path).replace_where(rows(spark), "id >= 0")


def replace_keys(spark: SparkSession, path: str) -> Any:
    return QbeastTable.for_path(spark, path).replace_matching(rows(spark), on="id")


def merge(spark: SparkSession, path: str) -> Any:
    return QbeastTable.for_path(spark, path).merge(rows(spark), on="id")


def append(spark: SparkSession, path: str) -> Any:
    return write_table(rows(spark), path=path, columns_to_index="auto:1")


def append_without_options(spark: SparkSession, path: str) -> Any:
    return write_table(rows(spark), path=path)


def rebuild(spark: SparkSession, path: str) -> Any:
    return write_table(rows(spark), path=path, mode="overwrite", columns_to_index="auto:1")


def rebuild_without_options(spark: SparkSession, path: str) -> Any:
    return write_table(rows(spark), path=path, mode="overwrite", cube_size=100)


@pytest.mark.parametrize(
    "write",
    [
        append,
        append_without_options,
        merge,
        replace_some,
        replace_keys,
        rebuild,
        rebuild_without_options,
    ],
)
def test_the_first_rows_choose_however_they_come(
    spark: SparkSession, guessed: str, write: Callable[[SparkSession, str], Any]
) -> None:
    result = write(spark, guessed)
    assert str(result.column_choice).startswith("columns_to_index auto chose id of 2 columns")
    table = assert_sound(spark, guessed, range(600), where="id < 100")
    assert table.columns_to_index == ["id"]
    assert_rows_in_their_cubes(spark, guessed)
    stored = configuration(guessed)
    assert (stored["columnsToIndex"], stored["qbeast.chosenFrom"]) == ("id", "600")
    assert {revision.columns for revision in revisions(guessed).values()} == {("id",)}


def test_a_write_without_rows_and_a_named_column_leave_the_guess(
    spark: SparkSession, guessed: str
) -> None:
    version = last_version(guessed)
    write_table(rows(spark, 0, 0), path=guessed, columns_to_index="auto:1")
    QbeastTable.for_path(spark, guessed).merge(rows(spark, 0, 0), on="id")
    assert last_version(guessed) == version
    write_table(rows(spark), path=guessed, columns_to_index="day")
    assert assert_sound(spark, guessed, range(600)).columns_to_index == ["day"]


def test_a_rebuild_without_rows_keeps_what_rows_chose(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    write_table(rows(spark), path=path, columns_to_index="auto:1")
    write_table(rows(spark, 0, 0), path=path, mode="overwrite", columns_to_index="auto:1")
    write_table(days(spark), path=path, columns_to_index="auto:1")
    assert columns(spark, path) == ["id"]
    write_table(
        rows(spark, 0, 0), path=path, mode="overwrite", columns_to_index="auto:1", rechoose=True
    )
    assert columns(spark, path) == ["day"]
    append(spark, path)
    assert columns(spark, path) == ["id"]


def test_a_rebuild_chooses_again_where_there_were_only_few_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    write_table(days(spark).limit(3), path=path, columns_to_index="auto:1")
    assert columns(spark, path) == ["day"]
    rebuild(spark, path)
    assert columns(spark, path) == ["id"]


def test_a_converted_table_is_indexed_by_what_its_first_rows_choose(
    spark: SparkSession, tmp_path: Path
) -> None:
    def converted(name: str) -> str:
        path = str(tmp_path / name)
        rows(spark, 0, 0).write.format("delta").save(path)
        assert convert_to_qbeast(spark, path, "auto:1", 100).columns == ("day",)
        return path

    appended, foreign = converted("appended"), converted("foreign")
    append(spark, appended)
    assert assert_sound(spark, appended, range(600)).columns_to_index == ["id"]
    # Rows that another writer added count when the index is made.
    rows(spark).write.format("delta").mode("append").save(foreign)
    QbeastTable.for_path(spark, foreign).optimize()
    assert assert_sound(spark, foreign, range(600), where="id < 100").columns_to_index == ["id"]
    assert_rows_in_their_cubes(spark, foreign)


def test_a_merge_that_moves_rows_by_the_chosen_columns(spark: SparkSession, guessed: str) -> None:
    rows(spark).write.format("delta").mode("append").save(guessed)
    source = rows(spark, 0, 400).selectExpr("id", "id + 1000 as new", "day")
    table = QbeastTable.for_path(spark, guessed)
    table.merge(source, on="id", update={"id": "source.new"}, insert=False)
    table.optimize()
    ids = [*range(400, 600), *range(1000, 1400)]
    assert assert_sound(spark, guessed, ids, where="id < 1100").columns_to_index == ["id"]
    assert_rows_in_their_cubes(spark, guessed)


def test_a_guess_by_an_older_version_is_still_replaced(spark: SparkSession, guessed: str) -> None:
    spark.sql(f"alter table delta.`{guessed}` unset tblproperties ('qbeast.chosenFrom')")
    append(spark, guessed)
    assert assert_sound(spark, guessed, range(600)).columns_to_index == ["id"]
    # What it chose from rows stays.
    spark.sql(f"alter table delta.`{guessed}` unset tblproperties ('qbeast.chosenFrom')")
    write_table(days(spark), path=guessed, mode="overwrite", columns_to_index="auto:1")
    assert columns(spark, guessed) == ["id"]


def test_slices_follow_the_columns_that_were_chosen(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "own")
    write_table(rows(spark, 0, 0), path=path, columns_to_index="auto:1", slices=True)
    append(spark, path)
    table = assert_sound(spark, path, range(600))
    assert table.columns_to_index == ["id"]
    by_slice = plain(spark, path).where("_qbeast_slice >= 2").select("id").collect()
    assert sorted(by_slice) == sorted(table.sample(0.25).select("id").collect())
    # The slices of rows that another writer added are those of the guess.
    foreign = str(tmp_path / "foreign")
    write_table(rows(spark, 0, 0), path=foreign, columns_to_index="auto:1", slices=True)
    rows(spark).write.format("delta").mode("append").save(foreign)
    write_table(rows(spark, 600, 700), path=foreign, columns_to_index="auto:1")
    assert assert_sound(spark, foreign, range(700)).columns_to_index == ["day"]


def test_the_first_rows_decide_the_automatic_cube_size(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizing, "_MIN_FILE_BYTES", 60)
    at_once, path = str(tmp_path / "at_once"), str(tmp_path / "t")
    write_table(rows(spark), path=at_once, columns_to_index="id")
    expected = QbeastTable.for_path(spark, at_once).cube_size
    write_table(rows(spark, 0, 0), path=path, columns_to_index="id")
    assert QbeastTable.for_path(spark, path).cube_size < expected
    merge(spark, path)
    assert assert_sound(spark, path, range(600)).cube_size == expected
    write_table(rows(spark, 0, 0), path=path, mode="overwrite", columns_to_index="id")
    append_without_options(spark, path)
    assert assert_sound(spark, path, range(600)).cube_size == expected
    assert configuration(path)["cubeSize"] == str(expected)
