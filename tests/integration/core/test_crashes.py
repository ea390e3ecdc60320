"""Writes that are cut off leave the table as it was, and the next write goes well."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable, failpoints, write_table
from qbeast_core.errors import ExecutionFailed, IncompatibleTable, QbeastError
from tests.integration.core.brute_force import assert_sound, last_version, live_adds, plain

ROOT = Path(__file__).parents[3]


def killed_writer(failpoint: str, warehouse: str, first: int, count: int, **write: Any) -> None:
    """Write in a process of its own that is killed at the fail point."""
    wanted = {"warehouse": warehouse, "first": first, "count": count, "write": write}
    wanted["die_at"] = failpoint
    killed_process("writer_process.py", json.dumps(wanted))


def killed_process(script: str, argument: str) -> None:
    """Run a script of this directory that kills its own process."""
    ended = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(script)), argument],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stdout[-2000:]


def numbers(spark: SparkSession, first: int, count: int) -> Any:
    return spark.range(first, first + count, 1, 2).selectExpr("id", "id * 31 % 211 as a")


def warehouse_of(spark: SparkSession) -> str:
    return str(spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:")


def test_a_process_killed_before_the_commit_leaves_the_table_as_it_was(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    write_table(numbers(spark, 0, 500), path=path, columns_to_index=["a"], cube_size=50)
    before = live_adds(path)
    killed_writer(failpoints.BEFORE_COMMIT, str(tmp_path / "other"), 500, 300, path=path)
    orphans = {file.name for file in Path(path).glob("*.parquet")} - set(before)
    assert orphans  # it had written its files
    assert (last_version(path), live_adds(path)) == (0, before)
    assert_sound(spark, path, range(500))
    assert write_table(numbers(spark, 500, 300), path=path).version == 1
    assert_sound(spark, path, range(800))


def test_a_process_killed_before_the_registration_leaves_what_the_next_write_adopts(
    spark: SparkSession,
) -> None:
    name, warehouse = "default.adopted", warehouse_of(spark)
    place = Path(warehouse) / "adopted"
    killed_writer(
        failpoints.BEFORE_REGISTRATION, warehouse, 0, 300, table=name, columns_to_index=["a"]
    )
    assert last_version(place) == 0
    assert not spark.catalog.tableExists(name)
    assert not QbeastTable.is_qbeast(spark, name)
    # Which rows an append of the same name is to keep is not known.
    with pytest.raises(IncompatibleTable, match=r"holds rows of .*\.adopted.*CREATE TABLE") as told:
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
