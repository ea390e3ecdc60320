"""Interrupted writes leave the table unchanged, and the next write succeeds."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable, failpoints, write_table
from qbeast_core.errors import (
    ExecutionFailed,
    IncompatibleTable,
    NoSpace,
    QbeastError,
    StorageRefused,
)
from tests.integration.core.faulty_files import DENIED, FULL, data_files
from tests.integration.core.killed_operations import (
    CREATED,
    GROWN,
    KILLABLE,
    place_of_created,
)
from tests.integration.core.operation_process import WHILE_WRITING
from tests.support.delta_log import last_version, live_adds, plain
from tests.support.invariants import assert_sound
from tests.support.killing import killed_process


def killed(operation: str, die_at: str, warehouse: str | Path, path: str | Path) -> None:
    """Do an operation of `KILLABLE` in a process that is killed."""
    wanted = {"operation": operation, "die_at": die_at}
    wanted |= {"warehouse": str(warehouse), "path": str(path)}
    killed_process(Path(__file__).with_name("operation_process.py"), json.dumps(wanted))


def numbers(spark: SparkSession, first: int, count: int) -> Any:
    return spark.range(first, first + count, 1, 2).selectExpr("id", "id * 31 % 211 as a")


def warehouse_of(spark: SparkSession) -> str:
    return str(Path(place_of_created(spark)).parent)


@pytest.mark.parametrize(
    ("name", "die_at"),
    [
        ("overwrite", failpoints.BETWEEN_PASSES),
        ("append: one file", WHILE_WRITING),
        ("merge", failpoints.FILES_WRITTEN),
        ("update", failpoints.BEFORE_COMMIT),
    ],
)
def test_a_process_killed_before_the_commit_leaves_the_table_unchanged(
    spark: SparkSession, killable_tables: Path, tmp_path: Path, name: str, die_at: str
) -> None:
    operation, path = KILLABLE[name], str(tmp_path / "t")
    shutil.copytree(killable_tables / GROWN, path)
    version, before = last_version(path), live_adds(path)
    rows = {row.id: (row.a, row.n) for row in plain(spark, path).collect()}
    killed(name, die_at, tmp_path / "warehouse", path)
    orphans = {file.name for file in Path(path).rglob("*.parquet")} - set(before)
    # The process was killed after it began to write files.
    assert bool(orphans) == (die_at != failpoints.BETWEEN_PASSES)
    assert (last_version(path), live_adds(path)) == (version, before)
    assert_sound(spark, path, list(rows))
    operation.act(spark, path)
    assert last_version(path) == version + 1
    expected = operation.expected(rows)
    assert {row.id: (row.a, row.n) for row in plain(spark, path).collect()} == expected
    assert_sound(spark, path, list(expected))


def test_a_process_killed_after_the_commit_leaves_a_new_table_that_the_next_write_adopts(
    spark: SparkSession,
) -> None:
    name, place = CREATED, Path(place_of_created(spark))
    killed("create", failpoints.AFTER_COMMIT, place.parent, place)
    assert last_version(place) == 0
    assert not spark.catalog.tableExists(name)
    assert not QbeastTable.is_qbeast(spark, name)
    # Which rows an append of the same name is to keep is not known.
    with pytest.raises(IncompatibleTable, match=r"holds rows of .*creation.*CREATE TABLE") as told:
        write_table(numbers(spark, 1000, 200), table=name, columns_to_index=["a"])
    assert str(place) in str(told.value)
    assert last_version(place) == 0
    # The user never saw that table: another write creates it.
    result = write_table(
        numbers(spark, 1000, 200), table=name, columns_to_index=["a"], mode="error"
    )
    assert (result.version, result.rows) == (1, 200)
    assert spark.table(name).count() == 200
    assert_sound(spark, place, range(1000, 1200))
    spark.sql(f"drop table {name}")


def test_a_new_table_that_fails_before_its_commit_is_not_there(spark: SparkSession) -> None:
    name = "default.cut_off"

    def fail() -> None:
        raise RuntimeError("cut off")

    with (
        failpoints.at(failpoints.BEFORE_COMMIT, fail),
        pytest.raises(RuntimeError, match="cut off"),
    ):
        write_table(numbers(spark, 0, 100), table=name, columns_to_index=["a"])
    assert not spark.catalog.tableExists(name)
    assert last_version(Path(warehouse_of(spark)) / "cut_off") == -1
    assert write_table(numbers(spark, 0, 100), table=name, columns_to_index=["a"]).version == 0
    assert spark.table(name).count() == 100
    spark.sql(f"drop table {name}")


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_query_that_fails_while_writing_changes_nothing(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    path, source = str(tmp_path / "t"), tmp_path / "source"
    write_table(numbers(spark, 0, 200), path=path, columns_to_index=["a"], cube_size=50)
    before = live_adds(path)
    numbers(spark, 200, 100).write.parquet(str(source))
    rows = spark.read.parquet(str(source))

    def lose_files() -> None:
        for file in source.glob("*.parquet"):
            file.unlink()

    with (
        failpoints.at(failpoints.BETWEEN_PASSES, lose_files),
        pytest.raises(ExecutionFailed) as failed,
    ):
        write_table(rows, path=path, mode=mode)
    assert "parquet" in str(failed.value)
    assert (last_version(path), live_adds(path)) == (0, before)
    assert_sound(spark, path, range(200))
    assert write_table(numbers(spark, 200, 100), path=path).rows == 100


def test_a_place_that_cannot_be_written_gives_an_error_and_nothing_else(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(ExecutionFailed):
        write_table(
            numbers(spark, 0, 100), path=str(tmp_path / "file" / "t"), columns_to_index=["a"]
        )
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "not a directory"


@pytest.mark.parametrize("name", ["append", "append: one file", "overwrite", "merge", "optimize"])
def test_storage_that_is_full_or_read_only_is_an_error_of_its_own_and_changes_nothing(
    spark: SparkSession, killable_tables: Path, tmp_path: Path, name: str
) -> None:
    operation, path = KILLABLE[name], str(tmp_path / "t")
    shutil.copytree(killable_tables / GROWN, path)
    version, before = last_version(path), live_adds(path)
    faults: list[tuple[str, type[ExecutionFailed], str]] = [
        (FULL, NoSpace, "No space left on device.*Free space"),
        (DENIED, StorageRefused, "Permission denied.*Check that the user who runs Spark"),
    ]
    for fault, error, words in faults:
        with data_files(spark, fault), pytest.raises(error, match=words) as raised:
            operation.act(spark, path)
        assert type(raised.value) is error
        assert (last_version(path), live_adds(path)) == (version, before)
    operation.act(spark, path)
    assert last_version(path) > version
    assert_sound(spark, path)


def test_a_new_table_on_a_full_disk_is_not_there(spark: SparkSession) -> None:
    with data_files(spark, FULL), pytest.raises(NoSpace):
        KILLABLE["create"].act(spark, "")
    assert not spark.catalog.tableExists(CREATED)
    assert last_version(place_of_created(spark)) == -1
    KILLABLE["create"].act(spark, "")
    assert spark.table(CREATED).count() == 200
    spark.sql(f"drop table {CREATED}")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to read-only directories")
def test_a_read_only_table_stays_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_table(numbers(spark, 0, 100), path=str(path), columns_to_index=["a"])
    path.chmod(0o555)
    try:
        with pytest.raises(ExecutionFailed):
            write_table(numbers(spark, 100, 100), path=str(path))
    finally:
        path.chmod(0o755)
    assert last_version(path) == 0
    assert plain(spark, path).count() == 100


def test_a_log_that_cannot_be_written_to_stays_as_it_is(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The files can be written, the commit cannot: a directory stands where it would go."""
    path = tmp_path / "t"
    write_table(numbers(spark, 0, 100), path=str(path), columns_to_index=["a"])
    taken = path / "_delta_log" / f"{1:020}.json"

    def take() -> None:
        (taken / "inside").mkdir(parents=True, exist_ok=True)

    with failpoints.at(failpoints.BEFORE_COMMIT, take), pytest.raises(QbeastError):
        write_table(numbers(spark, 100, 100), path=str(path))
    (taken / "inside").rmdir()
    taken.rmdir()
    assert_sound(spark, path, range(100))
