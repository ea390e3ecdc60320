"""A table that is put back to an earlier state while the process lives, and changed again.

Its version numbers come a second time, with other rows. Delta notices by the files of the log.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from qbeast_core import QbeastTable, write_table
from tests.support.counters import counting
from tests.support.delta_log import plain
from tests.support.invariants import assert_sound


def rows(spark: SparkSession, first: int, end: int) -> DataFrame:
    return spark.range(first, end).selectExpr("id", "id * 31 % 211 as a")


def ids(found: DataFrame) -> list[int]:
    return sorted(row.id for row in found.select("id").collect())


def undo_the_last_commit(table: Path, _backup: Path) -> None:
    last = max((table / "_delta_log").glob("*.json"))
    last.unlink()
    last.with_suffix(".crc").unlink(missing_ok=True)
    for checksum in (table / "_delta_log").glob(f".{last.stem}.*.crc"):
        checksum.unlink()


def put_the_backup_back(table: Path, backup: Path) -> None:
    shutil.rmtree(table)
    shutil.copytree(backup, table)


def append_by_delta(spark: SparkSession, path: str) -> None:
    rows(spark, 500, 530).write.format("delta").mode("append").save(path)


def append_by_us(spark: SparkSession, path: str) -> None:
    write_table(rows(spark, 500, 530), path=path)


@pytest.mark.parametrize(
    ("put_back", "append"),
    [(undo_the_last_commit, append_by_delta), (put_the_backup_back, append_by_us)],
)
def test_a_version_that_comes_again_has_its_own_rows(
    spark: SparkSession,
    tmp_path: Path,
    put_back: Callable[[Path, Path], None],
    append: Callable[[SparkSession, str], None],
) -> None:
    table, backup = tmp_path / "t", tmp_path / "backup"
    path = str(table)
    write_table(rows(spark, 0, 200), path=path, columns_to_index=["a"], cube_size=20)
    shutil.copytree(table, backup)
    write_table(rows(spark, 200, 260), path=path)
    assert QbeastTable.for_path(spark, path).sample(1.0).count() == 260
    put_back(table, backup)
    assert QbeastTable.for_path(spark, path).sample(1.0).count() == 200
    append(spark, path)
    assert QbeastTable.for_path(spark, path).version == 1
    present = [*range(200), *range(500, 530)]
    read = QbeastTable.for_path(spark, path)
    assert ids(read.dataframe()) == ids(read.sample(1.0)) == ids(plain(spark, path)) == present
    assert ids(read.sample(1.0, "id >= 500")) == present[200:]
    assert len(read.files()) == len(plain(spark, path).inputFiles())
    read.delete("id >= 520")
    read.optimize()
    assert_sound(spark, path, [*range(200), *range(500, 520)], fractions=[0.5])


def test_the_files_of_our_own_commit_are_not_read_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    write_table(rows(spark, 0, 200), path=path, columns_to_index=["a"], cube_size=20)
    write_table(rows(spark, 200, 260), path=path)
    with counting(spark) as asked:
        files = QbeastTable.for_path(spark, path).files()
    assert len(files) == len(plain(spark, path).inputFiles())
    assert asked.jobs == 0


def test_a_restore_brings_back_the_index_of_the_version(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    write_table(rows(spark, 0, 200), path=path, columns_to_index=["a"], cube_size=20)
    beyond = rows(spark, 200, 260).selectExpr("id", "a + 1000 as a")
    assert write_table(beyond, path=path).revision_id == 2
    spark.sql(f"restore table delta.`{path}` to version as of 0").collect()
    table = assert_sound(spark, path, range(200), where="a > 180")
    assert table.latest_revision.revision_id == 1
    assert all(file.revision_id == 1 for file in table.files())
    # The number is free again, for other bounds.
    again = write_table(beyond.selectExpr("id", "a + 5000 as a"), path=path)
    assert (again.new_revision, again.revision_id) == (True, 2)
    assert_sound(spark, path, range(260), where="a > 1000")
