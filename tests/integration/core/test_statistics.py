"""The first pass over a query's rows."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from qbeast_core.spark import statistics


@pytest.mark.parametrize("partitions", [1, 3])
def test_letting_go_of_rows_early_draws_the_same_ones(spark: SparkSession, partitions: int) -> None:
    rows = spark.range(0, 60_000, 1, partitions)
    by_draw = rows.withColumn("draw", F.rand(statistics._SEED)).orderBy("draw")
    expected = {row.id for row in by_draw.limit(100).collect()}
    assert {row.id for row in statistics.drawn_rows(rows, 100).collect()} == expected
