"""Spark's caches of a table follow its changes, as with plain Delta."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import nullcontext

import pytest
from pyspark.sql import DataFrame, SparkSession

from qbeast_core import QbeastTable, write_table
from qbeast_core.delta.spark_cache import refresh_cached
from qbeast_core.jvm.gateway import Jvm

INDEXED, PLAIN = "cached_tables.indexed", "cached_tables.plain"
VIEW = "cached_view"


def rows(spark: SparkSession, first: int, count: int) -> DataFrame:
    return spark.range(first, first + count, 1, 1).selectExpr("id", "id % 2 = 0 as ok")


def location(spark: SparkSession, name: str) -> str:
    found = spark.sql(f"describe detail {name}").first()
    assert found is not None
    return str(found.location)


@pytest.fixture
def held(spark: SparkSession) -> Iterator[dict[str, dict[str, DataFrame]]]:
    """For the indexed table and its plain twin: DataFrames and a view that Spark has cached."""
    spark.sql("create database cached_tables")
    write_table(rows(spark, 0, 100), table=INDEXED, columns_to_index=["id"])
    rows(spark, 0, 100).write.format("delta").saveAsTable(PLAIN)
    found = {}
    for name in (INDEXED, PLAIN):
        path = location(spark, name)
        found[name] = {
            "by name": spark.table(name),
            "by path": spark.read.format("delta").load(path),
            "filtered": spark.table(name).where("id >= 0"),
            "computed": spark.sql(f"select id + 1 as id from delta.`{path}`"),
        }
        for frame in found[name].values():
            assert frame.cache().count() == 100
        view = f"{VIEW}_{name.split('.')[1]}"
        spark.sql(f"create temporary view {view} as select * from {name} where id > 3")
        spark.sql(f"cache table {view}")
        found[name]["view"] = spark.table(view)
    yield found
    spark.catalog.clearCache()
    for name in (INDEXED, PLAIN):
        spark.catalog.dropTempView(f"{VIEW}_{name.split('.')[1]}")
    spark.sql("drop database cached_tables cascade")


def append(spark: SparkSession) -> None:
    write_table(rows(spark, 100, 50), table=INDEXED)
    rows(spark, 100, 50).write.format("delta").mode("append").saveAsTable(PLAIN)


def rewrite_by_itself(spark: SparkSession) -> None:
    """The cached table is the source, so rows that the cache lacks would be lost."""
    write_table(spark.table(INDEXED).where("ok"), table=INDEXED, mode="overwrite")
    overwriting = spark.table(PLAIN).where("ok").write.format("delta").mode("overwrite")
    overwriting.saveAsTable(PLAIN)


def delete(spark: SparkSession) -> None:
    QbeastTable.for_name(spark, INDEXED).delete("id < 10")
    spark.sql(f"delete from {PLAIN} where id < 10")


def update(spark: SparkSession) -> None:
    QbeastTable.for_name(spark, INDEXED).update({"id": "id + 1000"}, "id < 20")
    spark.sql(f"update {PLAIN} set id = id + 1000 where id < 20")


def merge(spark: SparkSession) -> None:
    changes = rows(spark, 90, 30)
    QbeastTable.for_name(spark, INDEXED).merge(changes, "id")
    spark.sql(
        f"merge into {PLAIN} t using {{changes}} s on t.id = s.id "
        "when matched then update set * when not matched then insert *",
        changes=changes,
    )


def replace_rows(spark: SparkSession) -> None:
    new = rows(spark, 500, 3)
    QbeastTable.for_name(spark, INDEXED).replace_where(new, "id >= 100")
    replacing = new.write.format("delta").mode("overwrite").option("replaceWhere", "id >= 100")
    replacing.saveAsTable(PLAIN)


def overwrite_by_path(spark: SparkSession) -> None:
    write_table(rows(spark, 7, 30), path=location(spark, INDEXED), mode="overwrite")
    overwriting = rows(spark, 7, 30).write.format("delta").mode("overwrite")
    overwriting.save(location(spark, PLAIN))


STEPS: list[Callable[[SparkSession], None]] = [
    append,
    rewrite_by_itself,
    delete,
    update,
    merge,
    replace_rows,
    overwrite_by_path,
]


def test_cached_rows_are_those_of_the_table_after_each_change(
    spark: SparkSession, held: dict[str, dict[str, DataFrame]]
) -> None:
    for step in STEPS:
        step(spark)
        newest = QbeastTable.for_name(spark, INDEXED).dataframe()
        ids = sorted(row.id for row in newest.collect())
        for name in (INDEXED, PLAIN):
            # A DataFrame keeps its plan once it has been collected.
            selected = {kind: df.select("id").collect() for kind, df in held[name].items()}
            cached = {kind: sorted(row.id for row in found) for kind, found in selected.items()}
            assert cached["by name"] == cached["by path"] == cached["filtered"] == ids, step
            assert cached["view"] == [id_ for id_ in ids if id_ > 3], step
            # Plain Delta does not refresh these in each case.
            assert name == PLAIN or cached["computed"] == [id_ + 1 for id_ in ids], step


def test_cached_rows_from_before_a_change_of_the_schema_follow_too(
    spark: SparkSession, held: dict[str, dict[str, DataFrame]]
) -> None:
    fixed = QbeastTable.for_name(spark, INDEXED)
    sample = fixed.sample(0.5).cache()
    before = sorted(sample.collect())
    write_table(
        rows(spark, 100, 10).selectExpr("*", "'x' as more"), table=INDEXED, merge_schema=True
    )
    write_table(rows(spark, 110, 10).selectExpr("*", "'y' as more"), table=INDEXED)
    assert {name: df.count() for name, df in held[INDEXED].items()} == {
        **dict.fromkeys(("by name", "by path", "filtered", "computed"), 120),
        "view": 116,
    }
    assert sorted(sample.collect()) == before
    assert spark.table(INDEXED).where("more = 'y'").count() == 10
    # Rows whose columns are gone cannot be computed again.
    other = spark.range(5).selectExpr("id as other")
    write_table(other, table=INDEXED, mode="overwrite", columns_to_index=["other"])
    assert spark.table(INDEXED).count() == 5


def test_rows_that_cannot_be_refreshed_are_a_warning(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    jvm = Jvm(spark)
    refresh_cached(jvm, "unknown://nowhere", nullcontext())
    assert not caplog.records, "nothing is cached"
    cached = spark.range(3).cache()
    try:
        with caplog.at_level(logging.WARNING):
            refresh_cached(jvm, "unknown://nowhere", nullcontext())
    finally:
        cached.unpersist()
    assert "refreshByPath('unknown://nowhere')" in caplog.text
