"""The first pass over a query's rows."""

from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from qbeast_core.errors import SourceChanged
from qbeast_core.jvm.catalyst import estimated_rows
from qbeast_core.jvm.settings import changed_settings
from qbeast_core.options import parse_columns, resolve_columns
from qbeast_core.spark import drawing
from qbeast_core.spark.statistics import Bounds
from qbeast_core.write.measure import measure
from tests.support.counters import counting


@pytest.mark.parametrize("partitions", [1, 3])
def test_letting_go_of_rows_early_draws_the_same_ones(spark: SparkSession, partitions: int) -> None:
    rows = spark.range(0, 60_000, 1, partitions)
    by_draw = rows.withColumn("draw", F.rand(drawing._SEED)).orderBy("draw")
    expected = {row.id for row in by_draw.limit(100).collect()}
    assert {row.id for row in drawing.drawn_rows(rows, 100).collect()} == expected


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


@pytest.mark.parametrize("limit", [1000, 1 << 15])
def test_rows_are_counted_once_where_spark_would_sort_them_to_draw_so_many(
    spark: SparkSession, limit: int
) -> None:
    rows = spark.range(0, 150_000, 1, 3)
    transformers = resolve_columns(parse_columns("id"), rows.schema)
    before = measure(rows, transformers, ["id"], None)

    key = "spark.sql.execution.topKSortFallbackThreshold"
    with changed_settings(spark, {key: str(limit)}):
        measured = measure(rows, transformers, ["id"], None)

    assert (measured.rows, measured.bounds) == (150_000, before.bounds)
    assert set(measured.sample.numbers[:, 0]) == set(before.sample.numbers[:, 0])
    assert len(measured.sample.numbers) == 1 << 15


@pytest.mark.parametrize("count", [0, 7, 150_000])
def test_all_ways_to_measure_rows_find_the_same(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    columns = {
        "id": "id",
        "day": "date_add(date'2020-01-01', cast(id % 1000 as int))",
        "part": "case id % 9 when 0 then null when 1 then double('NaN') "
        "when 2 then double('Infinity') else id / 7 end",
        "price": "cast(id % 321 as decimal(9, 2))",
        "name": "concat('word ', id % 1000)",
        "place": "if(id % 5 = 0, null, concat('at ', id))",
    }
    given = spark.range(0, count, 1, 3).selectExpr(
        *(f"{s} as {name}" for name, s in columns.items())
    )
    given.write.parquet(str(tmp_path / "t"))
    rows = spark.read.parquet(str(tmp_path / "t"))
    kinds = "id,day,part,price,name:hash,place:quantiles"
    transformers = resolve_columns(parse_columns(kinds), rows.schema)
    collected = measure(rows, transformers, ["id", "name"], None)
    monkeypatch.setattr(drawing, "ONE_TASK_BYTES", -1)
    with counting(spark) as once:
        observed = measure(rows, transformers, ["id", "name"], None)

    monkeypatch.setattr(drawing, "_MANY_ROWS", 0)
    with counting(spark) as twice:
        scanned = measure(rows, transformers, ["id", "name"], None)

    assert twice.jobs > once.jobs, "it was not scanned twice"
    assert (scanned.rows, scanned.bounds) == (observed.rows, observed.bounds)
    assert (collected.rows, collected.bounds) == (observed.rows, observed.bounds)
    ids = scanned.sample.numbers[:, 0]
    assert len(set(ids)) == len(ids) == pytest.approx(min(count, 1 << 15), rel=0.03)
    if count > 1 << 15:
        # Each thirtieth of the rows has its share, by six standard deviations.
        assert np.histogram(ids, 30, (0, count))[0] == pytest.approx(len(ids) / 30, rel=0.18)
    by_id = dict(zip(observed.sample.numbers[:, 0], observed.sample.weights, strict=True))
    both = [i for i, number in enumerate(ids) if number in by_id]
    assert len(both) >= min(count, 1000)
    assert [scanned.sample.weights[i] for i in both] == [by_id[ids[i]] for i in both]


@pytest.mark.parametrize("count", [1 << 15, (1 << 15) + 1])
def test_rows_are_counted_where_more_come_than_expected(spark: SparkSession, count: int) -> None:
    """An estimate leaves out how many rows an array becomes."""
    rows = spark.range(1).selectExpr(f"explode(sequence(1L, {count}L)) as id")
    assert estimated_rows(rows) < 100

    with counting(spark) as asked:
        measured = measure(rows, resolve_columns(parse_columns("id"), rows.schema), ["id"], None)

    assert asked.jobs == (1 if count == 1 << 15 else 2)
    assert measured.rows == count and measured.bounds == (Bounds(1, count),)
    assert len(set(measured.sample.numbers[:, 0])) == 1 << 15


def test_a_source_that_loses_rows_before_sampling_fails_the_write(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, count in (("full", 1000), ("empty", 0)):
        spark.range(0, count, 1, 1).write.parquet(str(tmp_path / name))
    full, empty = (next((tmp_path / name).glob("*.parquet")) for name in ("full", "empty"))
    rows = spark.read.parquet(str(tmp_path / "full"))
    monkeypatch.setattr(drawing, "_MANY_ROWS", 0)

    def replace_rows(counted: int) -> int:
        assert counted == 1000
        full.with_name(f".{full.name}.crc").unlink()
        full.write_bytes(empty.read_bytes())
        return 100

    with pytest.raises(SourceChanged, match="it had 1000 rows at first, and none later"):
        drawing.aggregated_and_drawn(rows, rows, [], replace_rows)


def test_the_rows_of_files_are_not_expected_to_be_too_few(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = {"id": "id", "few": "id % 7", "text": "concat('word ', id % 1000)"}
    given = spark.range(100_000).selectExpr(*(f"{sql} as {name}" for name, sql in columns.items()))
    given.coalesce(1).write.parquet(str(tmp_path / "t"))
    stored = spark.read.parquet(str(tmp_path / "t"))

    expected = estimated_rows(stored.select("few"))
    assert 100_000 <= expected <= 3_200_000
    assert estimated_rows(stored.crossJoin(stored)) > 100_000**2
    assert estimated_rows(spark.range(10**15).crossJoin(stored).crossJoin(stored)) > 2**63
