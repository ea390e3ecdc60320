"""A table whose log begins with a checkpoint: its index is that of the checkpoint."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pytest
from pyspark.sql import DataFrame, SparkSession

from qbeast_core import QbeastTable, write_table
from qbeast_core.jvm.settings import changed_settings
from tests.support.delta_log import last_version, plain
from tests.support.invariants import assert_samples

PART_SIZE = "spark.databricks.delta.checkpoint.partSize"


def by_spark(spark: SparkSession, path: str) -> None:
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path).checkpoint()


def in_parts(spark: SparkSession, path: str) -> None:
    with changed_settings(spark, {PART_SIZE: "4"}):
        by_spark(spark, path)


def of_version_2(spark: SparkSession, path: str) -> None:
    spark.sql(f"alter table delta.`{path}` set tblproperties ('delta.checkpointPolicy' = 'v2')")
    by_spark(spark, path)


def by_delta_rs(spark: SparkSession, path: str) -> None:
    deltalake.DeltaTable(path).create_checkpoint()


KINDS: dict[str, tuple[Callable[[SparkSession, str], None], str]] = {
    "classic": (by_spark, "*.checkpoint.parquet"),
    "in parts": (in_parts, "*.checkpoint.*.*.parquet"),
    "V2": (of_version_2, "_sidecars/*.parquet"),
    "delta-rs": (by_delta_rs, "*.checkpoint.parquet"),
}


def rows(spark: SparkSession, first: int, count: int) -> DataFrame:
    return spark.range(first, first + count, 1, 2).selectExpr("id", "id * 31 % 211 + id as a")


@pytest.fixture(scope="module")
def indexed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of two revisions, which no test changes."""
    path = tmp_path_factory.mktemp("indexed") / "t"
    write_table(rows(spark, 0, 200), path=str(path), columns_to_index=["a"], cube_size=20)
    write_table(rows(spark, 200, 100), path=str(path))
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_outlives_the_log_before_a_checkpoint(
    spark: SparkSession, indexed: Path, tmp_path: Path, kind: str
) -> None:
    checkpoint, pattern = KINDS[kind]
    with_log, path = tmp_path / "with-log", str(tmp_path / "t")
    shutil.copytree(indexed, with_log)
    checkpoint(spark, str(with_log))
    log = with_log / "_delta_log"
    assert len(list(log.glob(pattern))) > (1 if kind == "in parts" else 0)
    newest = last_version(with_log)
    for version in range(newest):
        for file in {*log.glob(f"{version:020}.*"), *log.glob(f".{version:020}.*")}:
            file.unlink()
    assert not (log / f"{0:020}.json").exists()
    # At a new path, this process has not cached anything of the log.
    with_log.rename(path)

    table, before = QbeastTable.for_path(spark, path), QbeastTable.for_path(spark, str(indexed))
    assert table.revisions == before.revisions and len(table.revisions) == 3
    assert sorted(table.blocks().collect()) == sorted(before.blocks().collect())
    assert sorted(map(str, table.files())) == sorted(map(str, before.files()))
    read = plain(spark, path).selectExpr("id", "hash(a)", "a < 90").collect()
    assert sorted(row.id for row in read) == list(range(300))
    assert_samples(table, [tuple(row) for row in read], [(0.1, None), (0.5, "a < 90")])
    assert table.check().ok

    assert not write_table(rows(spark, 100, 50), path=path).new_revision
    after = QbeastTable.for_path(spark, path)
    assert after.sample(1.0).count() == 350 and after.check().ok
    assert after.index_metrics().unindexed_files == 0
