"""Rows whose numbers are hashes of their ids."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession


def rows(spark: SparkSession, first: int, count: int, shift: int = 0) -> DataFrame:
    """Ids from `first` on, with `a` and `b` between 0 and 999; `shift` is added to `a`."""
    return spark.range(first, first + count, 1, 1).selectExpr(
        "id", f"pmod(hash(id), 1000) + {shift} as a", "pmod(hash(id, 1), 1000) as b"
    )
