"""Temporary views of the session that all tests of a process share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession


def temporary_views(spark: SparkSession) -> list[str]:
    """The names of the session's temporary views."""
    # Spark's catalog.listTables does not work without generated code.
    return [view.viewName for view in spark.sql("show views").collect() if view.isTemporary]


@contextmanager
def viewed(rows: DataFrame) -> Iterator[None]:
    """The rows as a temporary view `source` inside the block."""
    rows.createOrReplaceTempView("source")
    try:
        yield
    finally:
        rows.sparkSession.catalog.dropTempView("source")
