"""Iceberg models, as far as they can be tested without Iceberg, which no Spark of ours can load.

A catalog entry of a table does not need the classes of its format. A database stands for a catalog
besides Spark's own.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from pyspark.sql import SparkSession

from qbeast_core.jvm.gateway import Jvm
from tests.integration.dbt.projects import message_of

UNREADABLE = """
{{ config(materialized='MATERIALIZED', file_format='iceberg', incremental_strategy='append') }}
select no_such_column from range(3)
"""


def set_format(spark: SparkSession, schema: str, table: str, provider: str) -> None:
    """Says in Spark's catalog that an existing table is stored in another format."""
    jvm = Jvm(spark)
    catalog = jvm.session.sessionState().catalog().externalCatalog()
    entry = catalog.getTable(schema, table)
    parts = (entry.identifier(), entry.tableType(), entry.storage(), entry.schema())
    name = "org.apache.spark.sql.catalyst.catalog.CatalogTable"
    catalog.alterTable(jvm.new(name, *parts, provider=jvm.some(provider)))


class TestRebuiltTable:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            "rebuilt.sql": UNREADABLE.replace("MATERIALIZED", "table"),
            "refreshed.sql": UNREADABLE.replace("MATERIALIZED", "incremental"),
            "changing.sql": UNREADABLE.replace("MATERIALIZED", "table"),
        }

    def test_it_is_not_dropped_for_a_query_that_fails(
        self, project: Any, spark: SparkSession
    ) -> None:
        schema = project.test_schema
        for name in ("rebuilt", "refreshed", "changing"):
            spark.sql(f"create table {schema}.{name} using parquet as select 1 as id")
        for name in ("rebuilt", "refreshed"):
            set_format(spark, schema, name, "iceberg")
        results = run_dbt(["run", "--full-refresh"], expect_pass=False)
        assert {result.status for result in results} == {"error"}
        tables = spark.sql(f"show tables in {schema}").collect()
        assert {row.tableName for row in tables} == {"rebuilt", "refreshed", "changing"}


INCREMENT = """
{{ config(materialized='incremental', file_format='iceberg', unique_key=KEY,
          incremental_strategy='STRATEGY', on_schema_change='CHANGE') }}
select cast(2 as int) as id, 'b' as a, 9 as more
"""
IN_A_CATALOG = """
{% macro generate_schema_name(custom, node) %}lake.{{ target.schema }}{% endmacro %}
"""
CREATED = ("appended", "merged", "replaced", "narrowed")


class TestOtherCatalog:
    @pytest.fixture(scope="class", autouse=True)
    def lake(self, spark: SparkSession) -> Iterator[None]:
        catalog = "spark.sql.catalog.lake"
        settings = {
            catalog: "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
            f"{catalog}.url": "jdbc:derby:memory:lake;create=true",
            f"{catalog}.driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
        }
        for key, value in settings.items():
            spark.conf.set(key, value)
        yield
        for key in settings:
            spark.conf.unset(key)

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, Any]:
        return {"names.sql": IN_A_CATALOG}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        def model(strategy: str, change: str = "append_new_columns") -> str:
            key = "none" if strategy == "append" else "'id'"
            text = INCREMENT.replace("STRATEGY", strategy).replace("CHANGE", change)
            return text.replace("KEY", key)

        return {
            "appended.sql": model("append"),
            "merged.sql": model("merge"),
            "replaced.sql": model("delete+insert"),
            "narrowed.sql": model("append", "sync_all_columns"),
        }

    def test_rows_are_added_and_the_table_is_in_the_catalog(
        self, project: Any, spark: SparkSession
    ) -> None:
        schema = f"lake.{project.test_schema}"
        spark.sql(f"create schema {schema}")
        for name in CREATED:
            gone = ", gone int" if name == "narrowed" else ""
            spark.sql(f"create table {schema}.{name} (id int, a string{gone})")
            spark.sql(f"insert into {schema}.{name} (id, a) values (1, 'a')")

        results = run_dbt(["run"], expect_pass=False)
        rows = spark.table(f"{schema}.appended").orderBy("id").collect()
        assert [row.asDict() for row in rows] == [
            {"id": 1, "a": "a", "more": None},
            {"id": 2, "a": "b", "more": 9},
        ]
        # Tables of a database have no MERGE, those of Iceberg have.
        for name in ("merged", "replaced"):
            told = message_of(results, name)
            assert "does not support MERGE INTO TABLE" in told, told
        told = message_of(results, "narrowed")
        assert "because it is in another catalog than Spark's own" in told, told
        assert spark.table(f"{schema}.narrowed").columns == ["id", "a", "gone"]

        catalog, log = run_dbt_and_capture(["docs", "generate"])
        assert set(catalog.nodes) == {f"model.test.{name}" for name in CREATED}
        assert "missing from the catalog" not in log
