"""A write stores the rows of one evaluation, even of random queries and changing sources."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from qbeast_core import QbeastTable, failpoints, write_table
from qbeast_core.delta.reads import TableReads, reads_of
from qbeast_core.delta.transaction import Transaction
from qbeast_core.errors import SourceChanged
from qbeast_core.jvm.gateway import Jvm
from qbeast_core.jvm.settings import changed_settings
from qbeast_core.spark import drawing, evaluation
from qbeast_core.spark.evaluation import is_repeatable, is_repeatable_in, is_scan
from tests.integration.core.other_threads import Once
from tests.support.delta_log import last_version, live_adds, plain
from tests.support.invariants import assert_rows_in_their_cubes, assert_sound

pytestmark = pytest.mark.usefixtures("as_for_large_data")


@pytest.fixture(scope="module")
def sources(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, DataFrame]:
    """The same 1000 rows as a Delta table, as Parquet files, and computed."""
    base = tmp_path_factory.mktemp("sources")
    rows = spark.range(0, 1000, 1, 2).selectExpr("id", "id % 7 as k", "id * 0.5D as x")
    rows.write.format("delta").save(str(base / "delta"))
    rows.write.parquet(str(base / "parquet"))
    rows.write.json(str(base / "json"))
    return {
        "range": rows,
        "delta": spark.read.format("delta").load(str(base / "delta")),
        "parquet": spark.read.parquet(str(base / "parquet")),
        "json": spark.read.json(str(base / "json")),
    }


def by_rank(rows: DataFrame) -> DataFrame:
    return rows.withColumn("rank", F.row_number().over(Window.orderBy("k")))


def own_code(rows: DataFrame) -> DataFrame:
    return rows.withColumn("u", F.udf(lambda _: random.random(), "double")("id"))


def batches(rows: DataFrame) -> DataFrame:
    return rows.mapInArrow(lambda batch: batch, rows.schema)


QUERIES: dict[str, tuple[bool, Callable[[DataFrame], DataFrame]]] = {
    "as it is": (True, lambda rows: rows),
    "filter and project": (True, lambda rows: rows.where("k > 2").selectExpr("id", "hash(x) as h")),
    "join": (True, lambda rows: rows.join(rows.select("id"), "id")),
    "union": (True, lambda rows: rows.union(rows)),
    "distinct": (
        True,
        lambda rows: rows.sparkSession.sql("select distinct k from {rows}", rows=rows),
    ),
    "cast to a struct": (
        True,
        lambda rows: rows.selectExpr("cast(struct(id) as struct<n: double>) as s"),
    ),
    "one row of each": (False, lambda rows: rows.dropDuplicates(["k"])),
    "count by group": (True, lambda rows: rows.groupBy("k").agg(F.count("*"), F.max("x"))),
    "explode": (True, lambda rows: rows.select("id", F.explode(F.array("k", "id")).alias("e"))),
    "sort": (True, lambda rows: rows.orderBy("k")),
    "rand": (False, lambda rows: rows.withColumn("r", F.rand())),
    "seeded rand": (False, lambda rows: rows.withColumn("r", F.rand(3))),
    "uuid": (False, lambda rows: rows.selectExpr("id", "uuid() as u")),
    "monotonic id": (False, lambda rows: rows.withColumn("m", F.monotonically_increasing_id())),
    "now": (False, lambda rows: rows.selectExpr("id", "current_timestamp() as t")),
    "today": (False, lambda rows: rows.selectExpr("id", "current_date() as t")),
    "now as a string": (False, lambda rows: rows.selectExpr("id", "'now'::timestamp as t")),
    "today as a string": (False, lambda rows: rows.where("timestamp_seconds(id)::date < 'today'")),
    "now as an expression": (
        False,
        lambda rows: rows.selectExpr("concat('n', 'ow')::timestamp_ntz as t"),
    ),
    "to_date of today": (False, lambda rows: rows.selectExpr("to_date('today') as t")),
    "now in a subquery": (
        False,
        lambda rows: rows.sparkSession.sql(
            "select * from {rows} where timestamp_seconds(id) < (select to_timestamp('now'))",
            rows=rows,
        ),
    ),
    "a string cast to a date": (
        True,
        lambda rows: rows.selectExpr("cast('2020-01-01' as date) as t", "'now' as s"),
    ),
    "input file": (False, lambda rows: rows.withColumn("f", F.input_file_name())),
    "limit": (False, lambda rows: rows.limit(10)),
    "sorted limit": (False, lambda rows: rows.orderBy("k").limit(10)),
    "sample": (False, lambda rows: rows.sample(0.5)),
    "window": (False, by_rank),
    "sum of doubles": (False, lambda rows: rows.groupBy("k").agg(F.sum("x"))),
    "first": (False, lambda rows: rows.groupBy("k").agg(F.first("id"))),
    "repeatable aggregates": (
        True,
        lambda rows: rows.groupBy("k").agg(
            F.expr("count_if(id > 3)"),
            F.expr("bool_and(id > 3)"),
            F.expr("bit_xor(id)"),
            F.approx_count_distinct("id"),
            F.median("x"),
            F.expr("percentile_disc(0.5) within group (order by x)"),
        ),
    ),
    "pivot": (True, lambda rows: rows.groupBy("k").pivot("k", [1, 2]).agg(F.max("id"))),
    "mode": (False, lambda rows: rows.groupBy("k").agg(F.mode("id"))),
    "any value": (False, lambda rows: rows.groupBy("k").agg(F.any_value("id"))),
    "standard deviation": (False, lambda rows: rows.groupBy("k").agg(F.stddev("id"))),
    "correlation": (False, lambda rows: rows.groupBy("k").agg(F.corr("id", "x"))),
    "regression": (False, lambda rows: rows.groupBy("k").agg(F.regr_slope("id", "x"))),
    "approximate percentile": (
        False,
        lambda rows: rows.groupBy("k").agg(F.percentile_approx("id", 0.5)),
    ),
    "histogram": (False, lambda rows: rows.groupBy("k").agg(F.histogram_numeric("id", F.lit(3)))),
    "sketch": (False, lambda rows: rows.groupBy("k").agg(F.hll_sketch_agg("id"))),
    "aggregate in a subquery": (
        False,
        lambda rows: rows.sparkSession.sql(
            "select * from {rows} where id > (select std(id) from range(9))", rows=rows
        ),
    ),
    "collect list": (False, lambda rows: rows.groupBy("k").agg(F.collect_list("id"))),
    "python udf": (False, own_code),
    "python batches": (False, batches),
    "repartition": (True, lambda rows: rows.repartition(3)),
    "repartition by": (True, lambda rows: rows.repartition(3, "k")),
    "repartition by chance": (False, lambda rows: rows.repartition(3, F.rand())),
    "coalesce": (True, lambda rows: rows.coalesce(1)),
    "drop duplicates by": (False, lambda rows: rows.dropDuplicates(["k"])),
    "scalar subquery": (False, lambda rows: rows.where("id < (select 7)")),
    "cached": (False, lambda rows: rows.cache()),
}


@pytest.mark.parametrize("query", QUERIES)
def test_only_plans_that_are_understood_count_as_repeatable(
    sources: dict[str, DataFrame], query: str
) -> None:
    expected, made = QUERIES[query]
    rows = made(sources["delta"])
    try:
        if expected:
            assert is_repeatable(rows)
        elif query not in ("scalar subquery", "cached", "drop duplicates by"):
            assert not is_repeatable(rows)
        # The others may be taken either way; they are right if they are written right.
        assert is_repeatable(made(sources["parquet"])) == is_repeatable(rows)
    finally:
        for source in sources.values():
            source.unpersist()


SCANS = {"a string cast to a date", "as it is", "filter and cast"}
OF_SCANS: dict[str, Callable[[DataFrame], DataFrame]] = {
    **{query: made for query, (_, made) in QUERIES.items() if query != "cached"},
    "filter and cast": lambda rows: rows.where(
        "k > 2 and (x < 9 or k in (3, 4)) and x is not null"
    ).selectExpr("cast(id as int) as a", "k as b"),
    "costly filter": lambda rows: rows.where("cast(id as string) rlike '^[1-5]+$'"),
    "filter by a subquery": lambda rows: rows.where("k > (select max(id) from range(3))"),
}


@pytest.mark.parametrize("query", OF_SCANS)
def test_only_what_reads_columns_of_files_counts_as_a_scan(
    sources: dict[str, DataFrame], query: str
) -> None:
    for by_columns in ("delta", "parquet"):
        assert is_scan(OF_SCANS[query](sources[by_columns])) == (query in SCANS)
    for computed in ("json", "range"):
        assert not is_scan(OF_SCANS[query](sources[computed]))


SIDE_COLUMNS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "now": lambda rows: rows.withColumn("side", F.current_timestamp()),
    "today": lambda rows: rows.selectExpr("*", "current_date() as side"),
    "today as a string": lambda rows: rows.selectExpr("*", "cast('today' as date) as side"),
    "rand": lambda rows: rows.withColumn("side", F.rand()),
    "uuid": lambda rows: rows.selectExpr("*", "uuid() as side"),
    "rank": lambda rows: by_rank(rows).withColumnRenamed("rank", "side"),
    "rank of a rank": lambda rows: by_rank(by_rank(rows).withColumnRenamed("rank", "first")),
    "running total": lambda rows: rows.withColumn(
        "side", F.sum("x").over(Window.partitionBy("k").orderBy("id"))
    ),
    "python udf": own_code,
    "input file": lambda rows: rows.withColumn("side", F.input_file_name()),
    "scalar subquery": lambda rows: rows.sparkSession.sql(
        "select *, (select max(id) from {rows}) as side from {rows}", rows=rows
    ),
    "in a CTE": lambda rows: rows.sparkSession.sql(
        "with a as (select *, now() as side from {rows}), b as (select * from a where k > 2) "
        "select b.*, rank() over (partition by b.k order by b.x) as place "
        "from b join a on a.id = b.id",
        rows=rows,
    ),
}
"""Queries with a column that differs with each evaluation, and others that do not."""


@pytest.mark.parametrize("query", SIDE_COLUMNS)
@pytest.mark.parametrize("source", ["delta", "parquet", "range"])
def test_columns_are_repeatable_beside_others_that_are_not(
    sources: dict[str, DataFrame], query: str, source: str
) -> None:
    rows = SIDE_COLUMNS[query](sources[source])
    if (query, source) != ("scalar subquery", "range"):  # there Spark sees the same rows
        assert not is_repeatable(rows)
    assert is_repeatable_in(rows, ["id", "k"])


NOT_BESIDE: dict[str, Callable[[DataFrame], DataFrame]] = {
    "the column itself": lambda rows: rows.selectExpr("rand() as id", "k"),
    "a filter by it": lambda rows: rows.withColumn("r", F.rand()).where("r < 0.5"),
    "a filter by the time": lambda rows: rows.where("current_timestamp() > '2020-01-01'"),
    "a filter by now as a string": lambda rows: rows.where("timestamp_seconds(id) < 'now'"),
    "a filter by today in a CTE": lambda rows: rows.sparkSession.sql(
        "with a as (select *, current_date() as day from {rows}) "
        "select * from a where day > date'2020-01-01'",
        rows=rows,
    ),
    "the first of each": lambda rows: by_rank(rows).where("rank < 10"),
    "a join by rank": lambda rows: (
        by_rank(rows).join(by_rank(rows).select("rank"), "rank").select("id", "k")
    ),
    "a limit": lambda rows: rows.limit(10),
    "a sample": lambda rows: rows.sample(0.5),
    "python batches": batches,
    "an aggregate": lambda rows: rows.groupBy("id", "k").agg(F.sum("x")),
    "duplicates": lambda rows: rows.dropDuplicates(["k"]),
    "a subquery": lambda rows: rows.sparkSession.sql(
        "select * from {rows} where id < (select max(id) from {rows} where rand() < 0.5)", rows=rows
    ),
    "an order by chance": lambda rows: rows.repartition(3, F.rand()).selectExpr(
        "monotonically_increasing_id() as id", "k"
    ),
}
"""Queries whose columns `id` and `k`, or whose rows, may differ with each evaluation."""


@pytest.mark.parametrize("query", NOT_BESIDE)
def test_columns_are_not_repeatable_where_rows_are_not(
    sources: dict[str, DataFrame], query: str
) -> None:
    assert not is_repeatable_in(NOT_BESIDE[query](sources["delta"]), ["id", "k"])


def test_columns_of_views_are_repeatable(
    spark: SparkSession, sources: dict[str, DataFrame]
) -> None:
    sources["delta"].createOrReplaceTempView("evaluated_source")
    spark.sql(
        "create or replace temporary view evaluated_view as "
        "select *, now() as loaded_at from evaluated_source"
    )
    rows = spark.sql("select v.*, rand() as r from evaluated_view v")
    assert is_repeatable_in(rows, ["id", "k"])
    assert not is_repeatable_in(rows, ["id", "loaded_at"])
    assert not is_repeatable_in(rows, ["id", "r"])
    spark.catalog.dropTempView("evaluated_view")
    spark.catalog.dropTempView("evaluated_source")


@pytest.mark.parametrize("source", ["range", "delta", "parquet", "json"])
def test_sources_at_rest_are_repeatable(sources: dict[str, DataFrame], source: str) -> None:
    assert is_repeatable(sources[source])


def test_a_subquery_that_reads_another_table_is_not_taken_for_repeatable(
    spark: SparkSession, sources: dict[str, DataFrame]
) -> None:
    sources["parquet"].createOrReplaceTempView("evaluated_source")
    sources["delta"].createOrReplaceTempView("evaluated_other")
    assert not is_repeatable(
        spark.sql("select * from evaluated_source where id in (select id from evaluated_other)")
    )
    assert not is_repeatable(
        spark.sql("select *, (select max(id) from evaluated_other) as m from evaluated_source")
    )
    assert not is_repeatable(
        spark.sql("select * from evaluated_source where exists (select 1 where rand() > 2)")
    )
    spark.catalog.dropTempView("evaluated_source")
    spark.catalog.dropTempView("evaluated_other")


UNREPEATABLE: dict[str, Callable[[DataFrame], DataFrame]] = {
    "rand": lambda rows: rows.selectExpr("id", "rand() as v"),
    "uuid": lambda rows: rows.selectExpr("id", "uuid() as v"),
    "limit": lambda rows: rows.repartition(4).limit(333).selectExpr("id", "x as v"),
    "now": lambda rows: rows.selectExpr("id", "current_timestamp() as v"),
    "now as a string": lambda rows: rows.selectExpr(
        "id", "if(id % 2 = 0, timestamp_seconds(id), 'now'::timestamp) as v"
    ),
    "sample": lambda rows: rows.sample(0.4).selectExpr("id", "x as v"),
    "ties": lambda rows: by_rank(rows.repartition(4)).selectExpr("id", "rank as v"),
    "shuffled ids": lambda rows: rows.repartition(4, F.rand()).selectExpr(
        "id", "monotonically_increasing_id() as v"
    ),
    "python": lambda rows: own_code(rows).selectExpr("id", "u as v"),
}


@pytest.mark.parametrize("query", UNREPEATABLE)
def test_rows_that_change_with_each_evaluation_are_written_from_one(
    spark: SparkSession, sources: dict[str, DataFrame], tmp_path: Path, query: str
) -> None:
    rows = UNREPEATABLE[query](sources["delta"])
    result = write_table(rows, path=str(tmp_path), columns_to_index=["v"], cube_size=50)
    stored = plain(spark, tmp_path)
    ids = [row.id for row in stored.select("id").collect()]
    assert len(ids) == len(set(ids)) == result.rows
    if query in ("uuid", "ties", "shuffled ids"):
        assert stored.select("v").distinct().count() == result.rows
    if query == "now":
        assert stored.select("v").distinct().count() == 1
    if query == "limit":
        assert result.rows == 333
    if query == "ties":
        assert {row.v for row in stored.select("v").collect()} == set(range(1, 1001))
    assert_sound(spark, tmp_path, ids)
    assert_rows_in_their_cubes(spark, tmp_path)


def never_stored(rows: DataFrame) -> None:
    pytest.fail("the rows were stored")


@pytest.mark.parametrize("query", SIDE_COLUMNS)
def test_rows_are_not_stored_for_columns_that_are_not_measured(
    spark: SparkSession,
    sources: dict[str, DataFrame],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    query: str,
) -> None:
    monkeypatch.setattr(evaluation, "checkpointed", never_stored)
    rows = SIDE_COLUMNS[query](sources["delta"])
    path, ids = str(tmp_path), [row.id for row in rows.select("id").collect()]
    write_table(rows, path=path, columns_to_index=["id", "k"], cube_size=100)
    assert_sound(spark, path, ids)


def test_rows_are_not_stored_for_an_append_or_a_rebuild_either(
    spark: SparkSession,
    sources: dict[str, DataFrame],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(evaluation, "checkpointed", never_stored)
    rows = SIDE_COLUMNS["rand"](sources["delta"])
    path, ids = str(tmp_path), [row.id for row in rows.select("id").collect()]
    write_table(rows, path=path, columns_to_index=["id", "k"], cube_size=100)
    write_table(rows, path=path, cube_size=100)
    assert_sound(spark, path, [*ids, *ids])
    assert_rows_in_their_cubes(spark, path)
    # A table keeps its columns where a rebuild does not name any.
    write_table(rows, path=path, mode="overwrite", sample_key="x")
    assert_sound(spark, path, ids)


def test_own_code_runs_once_for_each_row(
    spark: SparkSession, sources: dict[str, DataFrame], tmp_path: Path
) -> None:
    calls = spark.sparkContext.accumulator(0)

    def counted(value: int) -> int:
        calls.add(1)
        return value

    rows = sources["delta"].withColumn("counted", F.udf(counted, "bigint")("id"))
    write_table(rows, path=str(tmp_path), columns_to_index=["id"], cube_size=100)
    assert calls.value == 1000
    assert_sound(spark, tmp_path, range(1000))


@pytest.mark.parametrize(
    "options",
    [
        {"columns_to_index": ["side"]},
        {"columns_to_index": ["id"], "sample_key": "side"},
        {"columns_to_index": ["id"], "sample_key": "all"},
        {"columns_to_index": "auto"},
    ],
    ids=str,
)
def test_rows_are_stored_for_columns_that_are_measured(
    spark: SparkSession,
    sources: dict[str, DataFrame],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, object],
) -> None:
    stored = []
    store = evaluation.checkpointed
    monkeypatch.setattr(evaluation, "checkpointed", lambda rows: stored.append(rows) or store(rows))
    rows = sources["delta"].withColumn("side", F.rand())
    write_table(rows, path=str(tmp_path), cube_size=100, **options)
    assert len(stored) == 1
    assert_sound(spark, tmp_path, range(1000))
    assert_rows_in_their_cubes(spark, tmp_path)


@pytest.mark.parametrize("skipping", ["true", "false"])
def test_a_source_table_that_grows_between_the_passes_gives_one_of_its_versions(
    spark: SparkSession, tmp_path: Path, skipping: str
) -> None:
    source, path = str(tmp_path / "source"), str(tmp_path / "t")
    spark.range(0, 1000, 1, 2).selectExpr("id", "id % 97 as a").write.format("delta").save(source)
    rows = spark.read.format("delta").load(source)

    def grow(first: int) -> None:
        more = spark.range(first, first + 500, 1, 1).selectExpr("id", "id % 97 as a")
        more.write.format("delta").mode("append").save(source)

    other = Once(lambda: grow(1000))
    with (
        changed_settings(spark, {"spark.databricks.delta.stats.skipping": skipping}),
        failpoints.at(failpoints.BETWEEN_PASSES, other),
    ):
        result = write_table(rows, path=path, columns_to_index=["a"], cube_size=100)
    assert other.happened
    assert result.rows == 1000
    assert_sound(spark, path, range(1000))
    with failpoints.at(failpoints.BETWEEN_PASSES, Once(lambda: grow(1500))):
        again = write_table(
            spark.read.format("delta").load(source),
            path=path,
            mode="overwrite",
            columns_to_index=["a"],
        )
    assert again.rows == 1500
    assert_sound(spark, path, range(1500))


def before_measuring(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Let others act after Spark has estimated the rows, before they are measured."""
    expected = drawing.estimated_rows

    def estimated_rows(measured: DataFrame) -> int:
        result = expected(measured)
        act()
        return result

    monkeypatch.setattr(drawing, "estimated_rows", estimated_rows)


@pytest.mark.parametrize("operation", ["write", "replace_where"])
def test_a_source_table_that_grows_before_it_is_measured_gives_one_of_its_versions(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    source, path = str(tmp_path / "source"), str(tmp_path / "t")

    def grow() -> None:
        more = spark.range(500, 505).selectExpr("id", "id % 97 as a")
        more.write.format("delta").mode("append").save(source)

    spark.range(0, 1000, 1, 2).selectExpr("id", "id % 97 as a").write.format("delta").save(source)
    rows = spark.read.format("delta").load(source)
    if operation == "replace_where":
        write_table(rows.where("id < 300"), path=path, columns_to_index=["a"])
    other = Once(grow)
    before_measuring(monkeypatch, other)
    if operation == "write":
        written = write_table(rows, path=path, columns_to_index=["a", "id"]).rows
    else:
        written = QbeastTable.for_path(spark, path).replace_where(rows, "id >= 0").rows_inserted
    assert other.happened
    assert written == 1000
    assert_sound(spark, path, range(1000))


def test_rows_read_from_the_table_that_grows_before_they_are_measured_are_read_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path)
    rows = spark.range(0, 600, 1, 2).selectExpr("id", "id % 97 as a")
    write_table(rows.where("id < 300"), path=path, columns_to_index=["a", "id"], cube_size=50)
    again = spark.read.format("delta").load(path).selectExpr("id + 1000 as id", "a")
    other = Once(lambda: write_table(rows.where("id >= 300"), path=path))
    before_measuring(monkeypatch, other)
    write_table(again, path=path)
    assert other.happened
    assert_sound(spark, path, [*range(600), *range(1000, 1600)])


def test_a_table_that_delta_reads_by_its_newer_reader_is_found_in_a_query(
    spark: SparkSession, tmp_path: Path
) -> None:
    one, other = (str(tmp_path / name) for name in ("one", "other"))
    for path in (one, other):
        spark.range(9).write.format("delta").save(path)
    with changed_settings(spark, {"spark.databricks.delta.v2.enableMode": "STRICT"}):
        rows = spark.sql(f"select id from delta.`{one}`")
    assert reads_of(rows, one) is TableReads.NEWEST
    assert reads_of(rows, other) is TableReads.NONE


def test_a_source_table_that_is_replaced_between_the_passes_gives_one_version(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, path = str(tmp_path / "source"), str(tmp_path / "t")

    def fill(first: int) -> None:
        new = spark.range(first, first + 1000, 1, 2).selectExpr("id", "id % 97 as a")
        new.write.format("delta").mode("overwrite").save(source)

    fill(0)
    rows = spark.read.format("delta").load(source).where("a < 90")
    with failpoints.at(failpoints.BETWEEN_PASSES, Once(lambda: fill(5000))):
        write_table(rows, path=path, columns_to_index=["a", "id"], cube_size=100)
    assert_sound(spark, path, [i for i in range(1000) if i % 97 < 90])


@pytest.mark.parametrize("change", ["one more file", "other rows in the same file"])
def test_files_that_change_between_the_passes_give_one_evaluation_or_an_error(
    spark: SparkSession, tmp_path: Path, change: str
) -> None:
    source, path = tmp_path / "source", str(tmp_path / "t")
    write_parquet(spark, source / "a.parquet", range(1000), tmp_path)
    rows = spark.read.parquet(str(source))

    def alter() -> None:
        name = "b.parquet" if change == "one more file" else "a.parquet"
        write_parquet(spark, source / name, range(4000, 5500), tmp_path)

    try:
        with failpoints.at(failpoints.BETWEEN_PASSES, alter):
            write_table(rows, path=path, columns_to_index=["a"], cube_size=100)
    except SourceChanged:
        assert last_version(path) == -1
    except Exception as error:
        # Spark may find out itself that the file is another one.
        assert "parquet" in str(error).lower()
        assert last_version(path) == -1
    else:
        assert_sound(spark, path)
        ids = Counter(row.id for row in plain(spark, path).collect())
        assert ids in (Counter(range(1000)), Counter(range(4000, 5500)))


def write_parquet(spark: SparkSession, file: Path, ids: range, scratch: Path) -> None:
    """One Parquet file of these rows, put in place at once."""
    made = scratch / "scratch"
    rows = spark.range(ids.start, ids.stop, 1, 1).selectExpr("id", "id % 97 as a")
    rows.write.mode("overwrite").parquet(str(made))
    file.parent.mkdir(exist_ok=True)
    next(made.glob("part-*.parquet")).rename(file)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def test_rows_lost_after_they_were_counted_abort_the_write(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The second pass sees fewer rows than the first: a source that Spark holds for the same."""
    source, path = tmp_path / "source", str(tmp_path / "t")
    write_table(spark.range(50).selectExpr("id", "id as a"), path=path, columns_to_index=["a"])
    for number in range(2):
        write_parquet(
            spark, source / f"{number}.parquet", range(number * 100, number * 100 + 100), tmp_path
        )
    rows = spark.read.parquet(str(source))
    assert is_repeatable(rows)
    before = live_adds(path)
    with (
        changed_settings(spark, {"spark.sql.files.ignoreMissingFiles": "true"}),
        failpoints.at(failpoints.BETWEEN_PASSES, (source / "1.parquet").unlink),
        pytest.raises(SourceChanged, match=r"100 rows were written, but 200"),
    ):
        write_table(rows, path=path, mode="overwrite")
    assert live_adds(path) == before
    assert last_version(path) == 0


def test_a_damaged_file_is_not_replaced_by_what_can_be_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark can skip such files, and then counts the same rows each time."""
    path = str(tmp_path)
    rows = spark.range(0, 700, 1, 2).selectExpr("id", "id * 31 % 211 as a", "'' as note")
    write_table(rows, path=path, columns_to_index=["a"], cube_size=100)
    table = QbeastTable.for_path(spark, path)
    plain(spark, path).limit(20).write.format("delta").mode("append").save(path)
    damaged = tmp_path / next(each for each, add in live_adds(path).items() if not add.get("tags"))
    own_id = pq.read_table(damaged)["id"][0].as_py()
    # So many that they would make up for the lost ones.
    new = spark.range(0, 900).selectExpr(f"{own_id} as id", "id % 7 as a", "'' as note")
    others = new.selectExpr("1000 + row_number() over (order by a) as id", "a", "note")
    chunk = pq.read_metadata(damaged).row_group(0).column(1)
    assert chunk.path_in_schema == "a"
    with damaged.open("r+b") as file:
        file.seek(chunk.dictionary_page_offset or chunk.data_page_offset)
        file.write(b"\xff" * chunk.total_compressed_size)
    damaged.with_name(f".{damaged.name}.crc").unlink()
    version = last_version(path)
    with changed_settings(spark, {"spark.sql.files.ignoreCorruptFiles": "true"}):
        for change in (
            lambda: table.update({"note": "'x'"}, "id >= 0"),
            lambda: table.optimize("unindexed"),
            lambda: table.drop_columns("note"),
            lambda: table.merge(new.limit(1).union(others), "id", update={"note": "'y'"}),
            lambda: table.replace_where(new, f"id = {own_id}"),
            lambda: table.replace_matching(new, on="id"),
        ):
            with pytest.raises(SourceChanged, match="ignoreCorruptFiles"):
                change()
    assert last_version(path) == version


def test_a_users_rows_show_new_files_after_they_were_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, paths = str(tmp_path / "source"), [str(tmp_path / name) for name in ("first", "next")]
    spark.range(5).write.format("delta").save(source)
    written, merged = (spark.read.format("delta").load(source) for _ in range(2))
    for path in (paths[0], paths[0], paths[1]):
        write_table(written, path=path, columns_to_index=["id"])
    QbeastTable.for_path(spark, paths[1]).merge(merged, on="id")
    # A DataFrame that was collected before would not show them in plain Spark either.
    spark.range(5, 8).write.format("delta").mode("append").save(source)
    for rows in (written, merged):
        assert sorted(row.id for row in rows.collect()) == list(range(8))


def test_a_table_appended_to_itself_doubles(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    rows = spark.range(0, 700, 1, 2).selectExpr("id", "id * 31 % 211 as a")
    write_table(rows, path=path, columns_to_index=["a", "id"], cube_size=100)
    result = write_table(plain(spark, path), path=path)
    assert (result.rows, result.new_revision) == (700, False)
    assert_sound(spark, path, [*range(700), *range(700)])
    assert_rows_in_their_cubes(spark, path)


def test_a_table_overwritten_from_itself_keeps_the_rows_that_are_left(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    rows = spark.range(0, 700, 1, 2).selectExpr("id", "id * 31 % 211 as a")
    write_table(rows, path=path, columns_to_index=["a"], cube_size=100)
    kept = plain(spark, path).where("id % 3 = 1")
    write_table(kept, path=path, mode="overwrite", columns_to_index=["id"])
    assert_sound(spark, path, range(1, 700, 3))


def test_the_stored_rows_are_released_after_the_write(spark: SparkSession, tmp_path: Path) -> None:
    def stored() -> int:
        return int(spark.sparkContext._jsc.sc().getPersistentRDDs().size())

    before = stored()
    rows = spark.range(100).selectExpr("id", "rand() as r")
    write_table(rows, path=str(tmp_path), columns_to_index=["r"])
    assert stored() <= before


def test_an_interrupt_leaves_no_transaction_active(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_table(spark.range(5), path=tmp_path, columns_to_index="id")
    transaction = Transaction(spark, str(tmp_path))
    transactions = Jvm(spark).singleton("org.apache.spark.sql.delta.OptimisticTransaction")

    def interrupted(started: object) -> None:
        transactions.setActive(started)
        raise KeyboardInterrupt

    replaced = SimpleNamespace(setActive=interrupted, clearActive=transactions.clearActive)
    monkeypatch.setattr(Jvm, "singleton", lambda *_: replaced)
    with pytest.raises(KeyboardInterrupt), transaction.pinned_reads():
        pass
    assert transactions.getActive().isEmpty()
