"""The first pass over a query's rows."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from qbeast_core.operations.measuring import measure
from qbeast_core.options import parse_columns, resolve_columns
from qbeast_core.spark import statistics
from qbeast_core.spark.catalyst import about_rows


@pytest.mark.parametrize("partitions", [1, 3])
def test_letting_go_of_rows_early_draws_the_same_ones(spark: SparkSession, partitions: int) -> None:
    rows = spark.range(0, 60_000, 1, partitions)
    by_draw = rows.withColumn("draw", F.rand(statistics._SEED)).orderBy("draw")
    expected = {row.id for row in by_draw.limit(100).collect()}
    assert {row.id for row in statistics.drawn_rows(rows, 100).collect()} == expected


@pytest.mark.parametrize(("cube_size", "drawn"), [(None, 1 << 15), (500, 1 << 17)])
def test_small_cubes_ask_for_a_larger_sample(
    spark: SparkSession, cube_size: int | None, drawn: int
) -> None:
    rows = spark.range(150_000)
    transformers = resolve_columns(parse_columns("id"), rows.schema)

    measured = measure(rows, transformers, ["id"], cube_size)

    assert measured.rows == 150_000
    numbers = measured.sample.numbers[:, 0]
    assert len(set(numbers)) == len(numbers) == drawn


def test_the_rows_of_files_are_not_expected_to_be_too_few(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = {"id": "id", "few": "id % 7", "text": "concat('word ', id % 1000)"}
    given = spark.range(100_000).selectExpr(*(f"{sql} as {name}" for name, sql in columns.items()))
    given.coalesce(1).write.parquet(str(tmp_path / "t"))
    stored = spark.read.parquet(str(tmp_path / "t"))

    expected = about_rows(stored.select("few"))
    assert 100_000 <= expected <= 3_200_000
    assert about_rows(stored.crossJoin(stored)) > 100_000**2
    assert about_rows(spark.range(10**15).crossJoin(stored).crossJoin(stored)) > 2**63
