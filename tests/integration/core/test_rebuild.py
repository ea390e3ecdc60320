"""A rebuild can reuse the previous tree: its query runs once, and each row is in its cube."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qbeast_core import QbeastTable, WriteResult, phases, write_table
from qbeast_core.write.rebuild_key import REBUILD_KEY
from tests.support.delta_log import configuration, live_adds, plain
from tests.support.invariants import assert_rows_in_their_cubes, assert_sound

ROWS = 3_000
OPTIONS: dict[str, Any] = {"columns_to_index": ["x", "id:hash"], "cube_size": 250}


def rows(spark: SparkSession, count: int = ROWS, scale: str = "1") -> DataFrame:
    """Rows with a repeatable `x`, which Spark takes for random."""
    spread = f"pmod(hash(id), 10000) * {scale}"
    return spark.range(0, count, 1, 3).selectExpr(
        "id", f"cast(if(rand() < 2, {spread}, null) as int) as x", "repeat('t', 9) as text"
    )


def rebuilt(df: DataFrame, path: Path, **changed: Any) -> tuple[WriteResult, list[str]]:
    """Overwrite the table; its result and its phases."""
    seen: list[str] = []
    with phases.listening(seen.append):
        result = write_table(df, path=str(path), mode="overwrite", **{**OPTIONS, **changed})
    return result, seen


def assert_holds(spark: SparkSession, path: Path, df: DataFrame) -> None:
    assert sorted(plain(spark, path).select(df.columns).collect()) == sorted(df.collect())
    assert_sound(spark, path, range(df.count()))
    assert_rows_in_their_cubes(spark, path)


def twice(path: Path, df: DataFrame, **changed: Any) -> None:
    """Write a table twice, so that the next rebuild can reuse its tree."""
    for _ in range(2):
        _, seen = rebuilt(df, path, **changed)
        assert phases.MEASURING in seen
    assert REBUILD_KEY in configuration(path)


@pytest.fixture(scope="module")
def origin(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("origin") / "t"
    twice(path, rows(spark))
    return path


@pytest.fixture
def path(origin: Path, tmp_path: Path) -> Path:
    """A table of `rows` whose next rebuild can reuse its tree."""
    return Path(shutil.copytree(origin, tmp_path / "t"))


ONE_PASS = [phases.PLANNING, phases.WRITING, phases.COMMITTING]


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"slices": True},
        {"sample_key": "id"},
        {"columns_to_index": ["x:quantiles"]},
        {"cube_size": "auto"},
        {"column_stats": {"x_min": -5, "x_max": 20_000}},
    ],
    ids=str,
)
def test_similar_rows_are_rebuilt_in_one_pass(
    spark: SparkSession, tmp_path: Path, changed: dict[str, Any]
) -> None:
    path, df = tmp_path / "t", rows(spark)
    twice(path, df, **changed)
    measured = live_adds(path)
    result, seen = rebuilt(df, path, **changed)

    assert seen == ONE_PASS
    assert result.rows == ROWS and result.revision_id == 1
    again = live_adds(path)
    assert not set(measured) & set(again)
    assert len(again) == len(measured) == result.files
    assert_holds(spark, path, df)
    assert rebuilt(df, path, **changed)[1] == ONE_PASS


def test_the_query_is_evaluated_once(spark: SparkSession, path: Path) -> None:
    calls = spark.sparkContext.accumulator(0)

    def counted(number: int) -> int:
        calls.add(1)
        return number

    df = rows(spark).withColumn("n", F.udf(counted, "bigint")("id"))
    for source in (df, df.withColumn("x", F.col("x") * 3)):
        calls.value = 0
        assert rebuilt(source, path)[0].rows == ROWS
        assert calls.value == ROWS


OUTGROWN: dict[str, Callable[[SparkSession], DataFrame]] = {
    "a wider range": lambda spark: rows(spark, scale="3"),
    "a row beyond it": lambda spark: rows(spark).selectExpr(
        "id", "if(id = 7, 10000, x) as x", "text"
    ),
    "many more rows": lambda spark: rows(spark, 5 * ROWS),
    "far fewer rows": lambda spark: rows(spark, ROWS // 10),
    "rows in one place": lambda spark: rows(spark).selectExpr(
        "id", "cast(id % 100 as int) as x", "text"
    ),
}


@pytest.mark.parametrize("kind", OUTGROWN)
def test_a_rebuild_plans_a_new_tree_when_rows_outgrow_it(
    spark: SparkSession, path: Path, tmp_path: Path, kind: str
) -> None:
    df = OUTGROWN[kind](spark)
    _, seen = rebuilt(df, path)

    # The query is not stored. The files of the first attempt are read instead.
    assert seen == [phases.PLANNING, phases.WRITING, phases.MEASURING, *ONE_PASS]
    assert_holds(spark, path, df)
    rebuilt(df, tmp_path / "at once")
    assert len(live_adds(path)) == len(live_adds(tmp_path / "at once"))


def test_a_value_just_beyond_a_wide_range_is_found(spark: SparkSession, tmp_path: Path) -> None:
    wide = [f"cast(x as bigint) * {10**14} as x", "id", "text"]
    path, df = tmp_path / "t", rows(spark).selectExpr(*wide)
    twice(path, df)
    (highest,) = df.agg(F.max("x")).first() or ()
    beyond = df.withColumn("x", F.expr(f"if(x = {highest}, x + 1, x)"))
    assert rebuilt(beyond, path)[1].count(phases.WRITING) == 2

    found = QbeastTable.for_path(spark, str(path)).sample(1.0, where=f"x > {highest}")
    assert [row.x for row in found.collect()] == [highest + 1]


def test_slices_are_recomputed_for_rows_that_outgrow_the_tree(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, df = tmp_path / "t", OUTGROWN["a row beyond it"](spark)
    twice(path, rows(spark), slices=True)
    assert rebuilt(df, path, slices=True)[1].count(phases.WRITING) == 2
    assert_holds(spark, path, df)


def test_an_empty_rebuild_leaves_an_empty_table(spark: SparkSession, path: Path) -> None:
    assert rebuilt(rows(spark, 0), path)[0].rows == 0
    assert not live_adds(path) and REBUILD_KEY not in configuration(path)
    assert rebuilt(rows(spark), path)[0].rows == ROWS
    assert_holds(spark, path, rows(spark))


def test_other_options_make_another_tree(spark: SparkSession, origin: Path, tmp_path: Path) -> None:
    changes: list[dict[str, Any]] = [
        {"columns_to_index": ["id", "x"]},
        {"columns_to_index": ["x", "id"]},
        {"columns_to_index": "auto"},
        {"cube_size": 700},
        {"cube_size": "auto"},
        {"sample_key": "id"},
        {"column_stats": {"x_min": -5, "x_max": 20_000}},
    ]
    for number, changed in enumerate(changes):
        path = Path(shutil.copytree(origin, tmp_path / str(number)))
        assert phases.MEASURING in rebuilt(rows(spark), path, **changed)[1]


def test_column_mapping_mode_none_counts_as_unmapped(spark: SparkSession, tmp_path: Path) -> None:
    unmapped = {"properties": {"delta.columnMapping.mode": "none"}}
    twice(tmp_path, rows(spark), **unmapped)
    assert rebuilt(rows(spark), tmp_path, **unmapped)[1] == ONE_PASS
    assert_holds(spark, tmp_path, rows(spark))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"varied": 3}', "null"])
def test_an_invalid_rebuild_key_is_ignored(spark: SparkSession, path: Path, text: str) -> None:
    spark.sql(f"alter table delta.`{path}` set tblproperties ('{REBUILD_KEY}' = '{text}')")
    assert phases.MEASURING in rebuilt(rows(spark), path)[1]


def test_a_tree_with_a_single_value_in_a_column_is_not_reused(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, df = tmp_path / "t", rows(spark)
    rebuilt(df.withColumn("x", F.lit(5)), path)
    key = f"'{REBUILD_KEY}' = '{{\"varied\": []}}'"
    spark.sql(f"alter table delta.`{path}` set tblproperties ({key})")
    assert phases.MEASURING in rebuilt(df, path)[1]
    assert_holds(spark, path, df)


def test_a_column_of_another_type_makes_another_tree(spark: SparkSession, path: Path) -> None:
    df = rows(spark).withColumn("x", F.col("x").cast("double"))
    assert phases.MEASURING in rebuilt(df, path)[1]
    assert_holds(spark, path, df)


def test_other_columns_beside_the_indexed_ones_do_not_matter(
    spark: SparkSession, path: Path
) -> None:
    df = rows(spark).withColumn("more", F.lit(True)).drop("text")
    assert rebuilt(df, path)[1] == ONE_PASS
    assert_holds(spark, path, df)


def test_an_append_in_the_same_space_and_a_plain_write_come_between(
    spark: SparkSession, path: Path
) -> None:
    df = rows(spark)
    write_table(df.where("id < 50"), path=str(path))
    assert rebuilt(df, path)[1] == ONE_PASS
    assert_holds(spark, path, df)
    df.write.format("delta").mode("append").save(str(path))
    assert phases.MEASURING in rebuilt(df, path)[1]
    assert_holds(spark, path, df)


def test_a_range_that_grows_each_time_is_measured_each_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    for scale in range(1, 5):
        _, seen = rebuilt(rows(spark, scale=str(scale)), path)
        assert seen.count(phases.MEASURING) == seen.count(phases.WRITING) == 1
    assert_holds(spark, path, rows(spark, scale="4"))


def test_every_rebuild_warns_of_imprecise_samples(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.range(4_000).selectExpr("id", "id % 20 as x")
    for _ in range(3):
        with pytest.warns(match="are sampled together"):
            rebuilt(df, tmp_path / "t", columns_to_index=["x"])
