"""TABLESAMPLE through the index: the same rows as `QbeastTable.sample`, from no more files."""

from collections.abc import Iterator
from typing import Any

import pytest
from dbt.adapters.qbeast.relation import RUN_SAMPLE_COMMENT
from dbt.adapters.qbeast.sampling.rewriting import Rewritten, drop_views, rewrite_tablesample
from dbt_common.exceptions import DbtRuntimeError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from benchmarks.scans import scanned
from qbeast_core import QbeastTable, write_table
from tests.support.views import temporary_views

ROWS = 20_000
SCHEMA = "sampling"


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[None]:
    """`orders` and `2024_Orders` are indexed; `plain` is Delta, `files` Parquet, `old` a view."""
    spark.sql(f"create schema {SCHEMA}")
    orders = spark.range(0, ROWS, numPartitions=4).selectExpr(
        "id",
        "cast(pmod(hash(id, 1), 1000) as int) as customer",
        "date_add(date'2024-01-01', cast(pmod(hash(id, 2), 366) as int)) as day",
        "timestamp'2024-01-01 00:00:00' + make_interval(0, 0, 0, 0, cast(id as int)) as moment",
        "concat('order ', id) as comment",
    )
    write_table(
        orders, table=f"{SCHEMA}.orders", columns_to_index=["id", "day"], cube_size=ROWS // 40
    )
    write_table(
        orders.where("id < 4000"),
        table=f"{SCHEMA}.`2024_Orders`",
        columns_to_index=["customer:linear", "id"],
        cube_size=200,
    )
    orders.limit(1000).write.format("delta").saveAsTable(f"{SCHEMA}.plain")
    orders.limit(1000).write.format("parquet").saveAsTable(f"{SCHEMA}.files")
    spark.sql(f"create view {SCHEMA}.old as select * from {SCHEMA}.orders")
    spark.sql(f"use {SCHEMA}")
    yield
    spark.sql("use default")
    spark.sql(f"drop schema {SCHEMA} cascade")


@pytest.fixture
def orders(spark: SparkSession, tables: None) -> QbeastTable:
    return QbeastTable.for_name(spark, f"{SCHEMA}.orders")


def run(spark: SparkSession, sql: str) -> DataFrame:
    """What the adapter does with a statement; every sample in it must be answered by the index."""
    rewritten = rewrite_tablesample(spark, sql)
    assert rewritten.warnings == ()
    assert rewritten.sql != sql
    try:
        return spark.sql(rewritten.sql)
    finally:
        drop_views(spark, rewritten.views)


def value(spark: SparkSession, sql: str) -> Any:
    (row,) = run(spark, sql).collect()
    return row[0]


def ids(rows: DataFrame) -> set[int]:
    found = [row[0] for row in rows.select("id").collect()]
    assert len(found) == len(set(found))
    return set(found)


def files_scheduled(rows: DataFrame) -> int:
    """Runs a query and adds up the files that its scans listed (Spark's metric numFiles)."""
    rows.collect()
    return scanned(rows).files


@pytest.mark.parametrize("percent", ["1", "10", "33.3", "100", "0"])
def test_rows_are_those_of_the_sample(
    spark: SparkSession, orders: QbeastTable, percent: str
) -> None:
    rows = run(spark, f"select * from sampling.orders tablesample ({percent} percent)")

    assert rows.schema == spark.table("sampling.orders").schema
    expected = orders.sample(float(percent) / 100)
    assert sorted(rows.collect()) == sorted(expected.collect())


@pytest.mark.parametrize(
    "relation",
    [
        "orders tablesample (10 percent)",
        "spark_catalog.sampling.orders tablesample (10 percent)",
        "`sampling`.`ORDERS` TABLESAMPLE (10 PERCENT) REPEATABLE (7)",
        "sampling.orders tablesample (10 percent) as o",
        "sampling.orders tablesample (10 percent) o (id, a, b, c, d)",
        "(select * from sampling.orders tablesample (10 percent)) q",
        "(select * from sampling.orders where true) tablesample (10 percent)",
        "(sampling.orders tablesample (10 percent))",
        "sampling.orders tablesample (10 percent) lateral view explode(array(1)) e as x",
    ],
)
def test_every_way_to_name_the_table(
    spark: SparkSession, orders: QbeastTable, relation: str
) -> None:
    rows = run(spark, f"select /*+ coalesce(1) */ * from {relation} where id >= 0")

    assert ids(rows) == ids(orders.sample(0.1))
    assert files_scheduled(rows) == len(orders.files(0.1))


@pytest.mark.parametrize("where", ["", "where id < 300", "where _qbeast_slice >= 4"])
def test_a_sample_has_the_columns_of_the_stored_table(
    spark: SparkSession, tables: None, where: str
) -> None:
    rows = spark.table("sampling.orders").limit(2000)
    options: dict[str, Any] = {"columns_to_index": "id", "cube_size": 200, "slices": True}
    write_table(rows, table="sampling.sliced", mode="overwrite", **options)
    stored = spark.table("sampling.sliced")
    tenth = QbeastTable.for_name(spark, "sampling.sliced").sample(0.1, with_slices=True)
    expected = ids(tenth.where(where.removeprefix("where ") or "true"))
    assert expected

    for percent in ("10", "100", "0"):
        text = f"sliced tablesample ({percent} percent)"
        assert run(spark, f"select * from {text} {where}").schema == stored.schema
        without = f"select * except (_qbeast_slice) from {text}"
        assert run(spark, without).columns == rows.columns
    found = run(spark, f"select * from sliced tablesample (10 percent) {where}")
    assert ids(found) == expected
    sql = f"create view in_view as select * from sliced tablesample (10 percent) {where}"
    spark.sql(rewrite_tablesample(spark, sql).sql)
    assert spark.table("in_view").columns == stored.columns
    assert ids(spark.table("in_view")) == expected
    spark.sql("drop view in_view")


def test_a_name_that_starts_with_a_digit(spark: SparkSession, tables: None) -> None:
    rows = run(spark, "select 2024_orders.id from sampling.2024_Orders tablesample (20 percent)")

    assert ids(rows) == ids(QbeastTable.for_name(spark, "sampling.`2024_Orders`").sample(0.2))


def test_each_side_of_a_join_is_sampled(spark: SparkSession, orders: QbeastTable) -> None:
    few, many = ids(orders.sample(0.1)), ids(orders.sample(0.3))

    assert few < many
    tenth, third = "orders tablesample (10 percent)", "orders tablesample (30 percent)"
    inner = value(spark, f"select count(*) from {tenth} a join {third} b on a.id = b.id")
    assert inner == len(few)
    missing = value(spark, f"select count(*) from {third} a left anti join {tenth} b using (id)")
    assert missing == len(many - few)
    commas = value(spark, f"select count(a.id) from {tenth} a, {third} b where a.id = b.id")
    assert commas == len(few)
    whole = value(spark, f"select count(*) from orders o full join {tenth} a on o.id = a.id")
    assert whole == ROWS


def test_subqueries_are_sampled(spark: SparkSession, orders: QbeastTable) -> None:
    few = ids(orders.sample(0.1))
    tenth = "sampling.orders tablesample (10 percent)"

    assert ids(run(spark, f"select id from orders where id in (select id from {tenth})")) == few
    assert value(spark, f"select (select count(*) from {tenth})") == len(few)
    exists = f"select id from orders o where exists (select 1 from {tenth} t where t.id = o.id)"
    assert ids(run(spark, exists)) == few
    lateral = f"select o.id from orders o, lateral (select 1 from {tenth} t where t.id = o.id)"
    assert ids(run(spark, lateral)) == few


def test_unions_and_windows_are_sampled(spark: SparkSession, orders: QbeastTable) -> None:
    tenth = "sampling.orders tablesample (10 percent)"
    union = run(spark, f"select id from {tenth} where id < 9 union select id from {tenth}")
    assert ids(union) == ids(orders.sample(0.1))

    first = run(
        spark,
        "select id, customer from (select *, row_number() over (partition by customer order by id)"
        f" as place from {tenth}) where place = 1 and customer < 100",
    )
    expected: dict[int, int] = {}
    for row in orders.sample(0.1).where("customer < 100").orderBy("id").collect():
        expected.setdefault(row.customer, row.id)
    assert ids(first) == set(expected.values())


CONDITIONS = [
    "day between date'2024-03-01' and date'2024-03-20'",
    "day between '2024-03-01' and '2024-03-20' and id > 15000",
    "id < 1000",
    "id < 1000 or id > 19000",
    "id in (5, 500, 15000)",
    "id = 17",
    "1000 > id and comment like 'order 1%'",
    "day >= date_add(date'2024-01-01', 300)",
    "id is null",
    "customer = 5",
    "not (id >= 500)",
    "year(day) = 2024",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_filters_of_the_statement_choose_files(
    spark: SparkSession, orders: QbeastTable, condition: str
) -> None:
    rows = run(spark, f"select * from orders tablesample (10 percent) where {condition}")

    assert sorted(rows.collect()) == sorted(orders.sample(0.1, where=condition).collect())
    assert files_scheduled(rows) <= len(orders.files(0.1, where=condition))


def test_a_filter_saves_files(spark: SparkSession, orders: QbeastTable) -> None:
    where = "day between date'2024-03-01' and date'2024-03-20' and id < 5000"
    rows = run(spark, f"select count(*) from orders tablesample (25 percent) where {where}")

    everything = len(orders.files())
    assert everything >= 20
    assert 0 < files_scheduled(rows) < len(orders.files(0.25)) < everything


@pytest.mark.parametrize(
    "query",
    [
        "select o.id from {tenth} o where o.id < 1000",
        "select * from (select id, day from {tenth}) where id < 1000",
        "with w as (select * from {tenth}) select id from w where id < 1000",
        "select o.id from {tenth} o join (select 7 as seven) s on o.id < 1000",
        "select o.id from {tenth} o left join plain p on o.id = p.id where o.id < 1000",
        "select id from (select * from {tenth} order by id limit 100000) where id < 1000"
        " union all select id from orders where false",
        "select id from (select *, max(day) over (partition by id) m from {tenth}) where id < 1000",
    ],
)
def test_filters_reach_the_table_as_far_as_spark_pushes_them(
    spark: SparkSession, orders: QbeastTable, query: str
) -> None:
    rows = run(spark, query.format(tenth="sampling.orders tablesample (10 percent)"))

    assert ids(rows) == ids(orders.sample(0.1, where="id < 1000"))
    pushed = "limit" not in query
    others = len(spark.table("plain").inputFiles()) if "plain" in query else 0
    expected = orders.files(0.1, where="id < 1000" if pushed else None)
    assert files_scheduled(rows) <= len(expected) + others


@pytest.mark.parametrize(
    "query",
    [
        "with w as (select * from {tenth}) select id from w where id < 900"
        " union all select id from w where id > 19000",
        "with w as (select id, rand() r from {tenth}) select id from w where id < 900"
        " union all select id from w where id > 19000",
        "from {tenth} select id where id < 900 select id where id > 19000",
    ],
)
def test_a_table_read_twice_keeps_the_rows_of_both_filters(
    spark: SparkSession, orders: QbeastTable, query: str
) -> None:
    rows = run(spark, query.format(tenth="sampling.orders tablesample (10 percent)"))

    assert ids(rows) == ids(orders.sample(0.1, where="id < 900 or id > 19000"))


def test_a_filter_in_one_scalar_subquery_does_not_narrow_another(
    spark: SparkSession, orders: QbeastTable
) -> None:
    (row,) = run(
        spark,
        "with w as (select * from sampling.orders tablesample (10 percent)) select"
        " (select max(id) from w where id < 900), (select count(*) from w)",
    ).collect()

    assert row[0] == max(ids(orders.sample(0.1, where="id < 900")))
    assert row[1] == orders.sample(0.1).count()


def test_a_filter_on_the_clock_loses_no_row(spark: SparkSession, orders: QbeastTable) -> None:
    tenth = "sampling.orders tablesample (10 percent)"
    rows = run(spark, f"select id from {tenth} where moment < now() and day <= current_date()")

    assert ids(rows) == ids(orders.sample(0.1))


def test_a_random_filter_stays_in_the_query(spark: SparkSession, orders: QbeastTable) -> None:
    rows = run(spark, "select id from orders tablesample (10 percent) where rand() < 2 and id < 99")

    assert ids(rows) == ids(orders.sample(0.1, where="id < 99"))


def test_a_table_created_from_a_sample(spark: SparkSession, orders: QbeastTable) -> None:
    sql = (
        "create or replace table sampling.made using delta as"
        " with w as (select * from orders tablesample (10 percent)) select id from w where id < 999"
    )
    rewritten = rewrite_tablesample(spark, sql)
    assert not spark.catalog.tableExists("sampling.made")  # nothing has been executed
    spark.sql(rewritten.sql)
    drop_views(spark, rewritten.views)

    expected = ids(orders.sample(0.1, where="id < 999"))
    assert ids(spark.table("sampling.made")) == expected

    hundredth = "select id from orders tablesample (1 percent)"
    run(spark, f"insert into sampling.made {hundredth} where id > 999")
    run(
        spark,
        f"merge into sampling.made m using ({hundredth}) s"
        " on m.id = s.id when not matched then insert (id) values (s.id)",
    )
    assert ids(spark.table("sampling.made")) == expected | ids(orders.sample(0.01))
    spark.sql("drop table sampling.made")


def test_a_stored_view_is_portable(spark: SparkSession, orders: QbeastTable) -> None:
    sql = (
        "create or replace view sampling.tenth as select orders.id"
        " from sampling.orders tablesample (10 percent)"
    )
    rewritten = rewrite_tablesample(spark, sql)
    spark.sql(rewritten.sql)

    assert rewritten.views == ()
    assert ids(spark.newSession().table("sampling.tenth")) == ids(orders.sample(0.1))
    spark.sql("drop view sampling.tenth")


def test_a_temporary_view_needs_its_views_until_it_is_dropped(
    spark: SparkSession, orders: QbeastTable
) -> None:
    sql = "create temporary view tenth as select id from orders tablesample (10 percent)"
    rewritten = rewrite_tablesample(spark, sql)
    spark.sql(rewritten.sql)

    assert ids(spark.table("tenth")) == ids(orders.sample(0.1))
    assert ids(spark.table("tenth").where("id < 99")) == ids(orders.sample(0.1, where="id < 99"))
    spark.catalog.dropTempView("tenth")
    drop_views(spark, rewritten.views)


@pytest.mark.parametrize("command", ["create temporary view few as", "cache lazy table few as"])
def test_a_query_that_runs_later_is_not_narrowed_by_a_variable(
    spark: SparkSession, orders: QbeastTable, command: str
) -> None:
    spark.sql("declare or replace variable most bigint default 99")
    few = "select id from orders tablesample (10 percent) where id < most"
    rewritten = rewrite_tablesample(spark, f"{command} {few}")
    spark.sql(rewritten.sql)
    spark.sql("set variable most = 9999")

    assert ids(spark.table("few")) in (
        ids(orders.sample(0.1, where="id < 99")),
        ids(orders.sample(0.1, where="id < 9999")),
    )
    spark.catalog.clearCache()  # the cached plan has the variable's first value
    spark.catalog.dropTempView("few")
    drop_views(spark, rewritten.views)
    spark.sql("drop temporary variable most")


def test_a_temporary_view_is_not_narrowed_by_what_may_change(
    spark: SparkSession, orders: QbeastTable
) -> None:
    changing = "id < if(current_database() = 'sampling', 99, 999)"
    few = f"select id from orders tablesample (10 percent) where {changing}"
    sql = f"create temporary view few as {few}"
    rewritten = rewrite_tablesample(spark, sql)
    spark.sql(rewritten.sql)
    spark.sql("use default")
    try:
        found = ids(spark.table("few"))
    finally:
        spark.sql("use sampling")
    assert found in (
        ids(orders.sample(0.1, where="id < 99")),
        ids(orders.sample(0.1, where="id < 999")),
    )
    spark.catalog.dropTempView("few")
    drop_views(spark, rewritten.views)


def test_explain_shows_the_plan_and_runs_nothing(spark: SparkSession, orders: QbeastTable) -> None:
    plan = value(spark, "explain select * from orders tablesample (10 percent) where id < 99")

    assert "TahoeBatchFileIndex" in plan
    assert "Sample" not in plan


def test_a_table_named_by_its_path(spark: SparkSession, orders: QbeastTable) -> None:
    (detail,) = spark.sql("describe detail sampling.orders").collect()
    rows = run(spark, f"select id from delta.`{detail.location}` tablesample (10 percent)")

    assert ids(rows) == ids(orders.sample(0.1))


@pytest.mark.parametrize("version", ["@v0", "@20260102030405000"])
def test_an_old_version_named_in_a_path_is_left_to_spark(
    spark: SparkSession, orders: QbeastTable, version: str
) -> None:
    (detail,) = spark.sql("describe detail sampling.orders").collect()
    sql = f"select id from delta.`{detail.location}{version}` tablesample (10 percent)"
    (warning,) = rewrite_tablesample(spark, sql).warnings

    assert warning.endswith("the index can sample only the current version of a table")


@pytest.mark.parametrize("relation", ["sampling.plain", "sampling.files", "sampling.old"])
def test_what_has_no_index_is_sampled_by_spark_with_a_warning(
    spark: SparkSession, tables: None, relation: str
) -> None:
    sql = f"select * from {relation} tablesample (50 percent), {relation} tablesample (1 percent)"
    reason = "it is not a table with a Qbeast index, so all of it is read"

    assert rewrite_tablesample(spark, sql) == Rewritten(
        sql, warnings=(f"TABLESAMPLE of {relation} is left to Spark: {reason}",)
    )
    assert spark.sql(f"select * from {relation} tablesample (50 percent)").count() > 0


@pytest.mark.parametrize(
    "relation",
    [
        "sampling.missing tablesample (1 percent)",
        "no_such_schema.orders tablesample (1 percent)",
        "no_such_catalog.sampling.orders tablesample (1 percent)",
        "delta.`/no/such/path` tablesample (1 percent)",
        "global_temp.orders tablesample (1 percent)",
    ],
)
def test_what_does_not_exist_is_left_for_spark_to_report(
    spark: SparkSession, tables: None, relation: str
) -> None:
    sql = f"select * from {relation}"
    rewritten = rewrite_tablesample(spark, sql)

    assert rewritten.sql == sql
    with pytest.raises(AnalysisException):
        spark.sql(sql)


def test_a_temporary_view_hides_the_table_of_its_name(spark: SparkSession, tables: None) -> None:
    spark.range(10).createOrReplaceTempView("orders")
    try:
        sql = "select count(*) from orders tablesample (100 percent)"
        rewritten = rewrite_tablesample(spark, sql)
        assert rewritten.sql == sql
        assert len(rewritten.warnings) == 1
        assert (
            value(spark, "select count(*) from sampling.orders tablesample (100 percent)") == ROWS
        )
    finally:
        spark.catalog.dropTempView("orders")


def test_samples_with_and_without_an_index_in_one_statement(
    spark: SparkSession, orders: QbeastTable
) -> None:
    rewritten = rewrite_tablesample(
        spark,
        "select o.id from orders tablesample (10 percent) o"
        " left join plain tablesample (3 rows) p on o.id = p.id",
    )

    assert rewritten.warnings == (
        "TABLESAMPLE of plain is left to Spark: the index supports (p percent), not (3 rows)",
    )
    assert ids(spark.sql(rewritten.sql)) == ids(orders.sample(0.1))
    drop_views(spark, rewritten.views)


def test_a_statement_that_names_the_schema_of_a_column_is_left_to_spark(
    spark: SparkSession, tables: None
) -> None:
    # A view has no schema in its name, so `sampling.orders.id` cannot be resolved on it.
    sql = "select sampling.orders.id from sampling.orders tablesample (10 percent)"
    rewritten = rewrite_tablesample(spark, sql)

    assert (rewritten.sql, rewritten.views) == (sql, ())
    (warning,) = rewritten.warnings
    assert warning.startswith("TABLESAMPLE of sampling.orders is left to Spark: ")
    assert "sampling" in warning
    assert temporary_views(spark) == []


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("select sampling.orders.id from {}", "Spark rejects the rewritten statement"),
        ("select id from sampling.plain tablesample (10 percent MARK)", "not a table with a Q"),
        ("begin select * from {}; end", "only single statements"),
        ("select id from {} where id < ?", "has `?` placeholders".replace("?", r"\?")),
        ("execute immediate 'select id from {}'", "only when it runs it"),
        ("execute immediate 'select id from {} where id < ?' using 7", "only when it runs it"),
    ],
)
def test_a_sample_of_the_run_is_never_left_to_spark(
    spark: SparkSession, tables: None, sql: str, reason: str
) -> None:
    text = sql.format("sampling.orders tablesample (10 percent MARK)").replace(
        "MARK", RUN_SAMPLE_COMMENT
    )
    with pytest.raises(DbtRuntimeError, match=f"(?s){reason}.*`sample: false`.*qbeast_sample: 1"):
        rewrite_tablesample(spark, text)
    assert temporary_views(spark) == []


def test_an_error_in_the_users_sql_leaves_the_text_unchanged(
    spark: SparkSession, tables: None
) -> None:
    sql = "select no_such_column from sampling.orders tablesample (10 percent)"

    assert rewrite_tablesample(spark, sql) == Rewritten(sql)
    assert temporary_views(spark) == []


def test_views_of_two_statements_do_not_meet(spark: SparkSession, tables: None) -> None:
    sql = (
        "select count(*) from orders tablesample (10 percent) a join orders tablesample (5 percent)"
    )
    first = rewrite_tablesample(spark, sql)
    second = rewrite_tablesample(spark, sql)

    assert len({*first.views, *second.views}) == 4
    assert set(temporary_views(spark)) == {*first.views, *second.views}
    drop_views(spark, first.views)
    drop_views(spark, [*first.views, *second.views])
    assert temporary_views(spark) == []


def test_an_analysed_query_outlives_its_views(spark: SparkSession, orders: QbeastTable) -> None:
    rows = run(spark, "select id from orders tablesample (10 percent)")

    assert temporary_views(spark) == []
    assert ids(rows) == ids(orders.sample(0.1))


def test_a_statement_without_a_sample_is_returned_untouched(spark: SparkSession) -> None:
    sql = "select 'tablesample (1 percent)' -- tablesample\n"

    assert rewrite_tablesample(spark, sql) == Rewritten(sql)
