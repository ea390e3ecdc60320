"""The table that the tests of merges and other changes start from."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qbeast_core import write_table
from tests.support import hashed_rows
from tests.support.delta_log import plain


def rows(spark: SparkSession, first: int, count: int, shift: int = 0) -> DataFrame:
    """Hashed rows with a text."""
    return hashed_rows.rows(spark, first, count, shift).withColumn("s", F.lit("old"))


def create(spark: SparkSession, path: Path, **properties: str) -> str:
    """The path of a new table of 1500 rows in small cubes."""
    write_table(
        rows(spark, 0, 1500),
        path=str(path),
        columns_to_index=["a", "b"],
        cube_size=150,
        properties=properties,
    )
    return str(path)


def contents(spark: SparkSession, path: str) -> Counter[tuple[Any, ...]]:
    """The rows of a table, as a plain Delta reader finds them."""
    return Counter(map(tuple, plain(spark, path).collect()))


def files_holding(spark: SparkSession, path: str, condition: str) -> set[str]:
    """The names of the files that have a row which satisfies the condition."""
    found = plain(spark, path).where(condition).select(F.col("_metadata.file_name"))
    return {row[0] for row in found.distinct().collect()}


def upsert_by_delta(spark: SparkSession, path: str, source: DataFrame, key: str) -> None:
    """The same as a merge by this key, by plain Delta."""
    merge = (
        DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), f"t.{key} = s.{key}")
    )
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
