"""A table that is not stored as its model asks: the advice keeps its rows, and works literally."""

import re
import shlex
from typing import Any

import pytest
from dbt.tests.util import run_dbt, write_file
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable, write_table
from tests.integration.dbt.projects import message_of, versions

MODEL = """
{{ config(materialized='incremental', CONFIG) }}
{% if is_incremental() %} select 2 as id, 'b' as kind {% else %}
select 1 as id, 'a' as kind {% endif %}
"""
PLAIN = {
    "appended": "incremental_strategy='append'",
    "merged": "unique_key='id'",
    "overwritten": "incremental_strategy='insert_overwrite'",
    "replaced": "incremental_strategy='replace_where', incremental_predicates=['id = 2']",
    "chosen": "unique_key='id'",
    "partitioned": "incremental_strategy='append', partition_by='kind'",
    "clustered": "incremental_strategy='append'",
    "tracked": "incremental_strategy='append', alias='tracked_rows'",
    "copied": "incremental_strategy='append'",
    "parquet": "incremental_strategy='append', file_format='parquet'",
}
INDEX = "columns_to_index=['id', 'kind:hash'], sample_key='id', slices=true, cube_size=1000, "
INDEXES = {
    "chosen": "columns_to_index='auto', ",
    "partitioned": "columns_to_index='id', ",
    "clustered": "columns_to_index='id', ",
    "tracked": "columns_to_index='id', ",
    "copied": "columns_to_index='id', ",
    "parquet": "columns_to_index='id', ",
}
UNLIKE_AN_INDEX = ("clustered", "tracked", "copied")
ROWS = {"overwritten": [2], "partitioned": [1, 2]}


def command_of(message: str) -> list[str]:
    """The dbt command that a message names."""
    (found,) = re.findall(r"dbt (run-operation convert_to_qbeast --args '[^']*')", message)
    return shlex.split(found)


def call_of(message: str) -> str:
    """The Python call that a message names."""
    (found,) = re.findall(r"import write_table`: (write_table\(.*?\))\. ", message)
    return str(found)


class TestIncrementalGetsAnIndex:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {f"{name}.sql": MODEL.replace("CONFIG", config) for name, config in PLAIN.items()}

    def test_the_advice_keeps_rows_and_history(self, project: Any, spark: SparkSession) -> None:
        def table(name: str) -> str:
            return f"{project.test_schema}.{name}{'_rows' if name == 'tracked' else ''}"

        def properties_of(name: str, properties: str) -> None:
            spark.sql(f"alter table {table(name)} set tblproperties ({properties})")

        run_dbt(["run"])
        spark.sql(f"alter table {table('clustered')} cluster by (kind)")
        properties_of("tracked", "'delta.enableRowTracking' = 'true'")
        # A feature that an index does not support, and that only a copy of the table lacks.
        properties_of("copied", "'delta.feature.geospatial' = 'supported'")
        for name, config in PLAIN.items():
            kept = re.sub(r", (partition_by|file_format)='\w+'", "", config)
            text = MODEL.replace("CONFIG", INDEXES.get(name, INDEX) + kept)
            write_file(text, project.project_root, f"models/{name}.sql")
        refused = run_dbt(["run"], expect_pass=False)
        for name in PLAIN:
            message = message_of(refused, name)
            assert [row.id for row in spark.table(table(name)).collect()] == [1], message
            # The full refresh comes last. It is said to lose rows, unless it would fail too.
            before, _, after = message.partition(f"`dbt run --full-refresh -s {name}`")
            assert "write_table" in before or "convert_to_qbeast" in before, message
            assert ("are lost" in after) == (name not in UNLIKE_AN_INDEX), message
            if name in ("partitioned", "copied"):
                assert "partitioned by kind" in message or "geospatial" in message
                assert "convert_to_qbeast" not in message
                copies = "Constraints and properties are not copied" in message
                assert copies == (name == "copied"), message
                eval(call_of(message), {"write_table": write_table, "spark": spark})
                for statement in re.findall(r"`(alter table [^`]*)`", message):
                    spark.sql(statement)
            else:
                assert table(name) in message and "columns_to_index: " in message
                assert "write_table" not in message, message
                # Statements to run first.
                statements = re.findall(r"(ALTER TABLE .*?)(?: and | first)", message)
                assert len(statements) == {"clustered": 1, "tracked": 2}.get(name, 0), message
                for statement in statements:
                    spark.sql(statement)
                run_dbt(command_of(message))

        results = run_dbt(["run"])
        for name in PLAIN:
            rows = sorted(row.id for row in spark.table(table(name)).collect())
            assert rows == ROWS.get(name, [1, 2]), message_of(results, name)
            assert QbeastTable.for_name(spark, table(name)).check().ok
            before = table(name) + ("__before" if name == "copied" else "")
            first = spark.sql(f"select id from {before} version as of 0").collect()
            assert [row.id for row in first] == [1]
        indexed = QbeastTable.for_name(spark, table("merged"))
        assert (indexed.columns_to_index, indexed.sample_key) == (["id", "kind"], ["id"])
        assert indexed.slices and indexed.cube_size == 1000

        # Another index: the call keeps all rows, too.
        text = MODEL.replace("CONFIG", "columns_to_index='kind', unique_key='id'")
        write_file(text, project.project_root, "models/merged.sql")
        failed = run_dbt(["run", "-s", "merged"], expect_pass=False)
        message = message_of(failed, "merged")
        assert "is indexed by ['id', 'kind'], but the model's columns_to_index is now" in message
        assert "Restore columns_to_index. Or rewrite the table with all its rows" in message
        eval(call_of(message), {"write_table": write_table, "spark": spark})
        run_dbt(["run", "-s", "merged"])
        assert sorted(row.id for row in spark.table(table("merged")).collect()) == [1, 2]
        assert QbeastTable.for_name(spark, table("merged")).columns_to_index == ["kind"]


SNAPSHOT = """
snapshots:
  - name: whole
    relation: ref('source')
    config: {unique_key: id, strategy: check, check_cols: all, columns_to_index: COLUMNS}
  - name: parted
    relation: ref('source')
    config: {unique_key: id, strategy: check, check_cols: all, columns_to_index: COLUMNS, MORE}
"""


class TestSnapshotGetsAnIndex:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {"source.sql": "select 1 as id, '{{ var('v', 'a') }}' as kind"}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, Any]:
        text = SNAPSHOT.replace("COLUMNS", "none").replace("MORE", "partition_by: kind")
        return {"kept.yml": text}

    def test_the_advice_keeps_its_history(self, project: Any, spark: SparkSession) -> None:
        run_dbt(["build"])
        text = SNAPSHOT.replace("COLUMNS", "[id, dbt_valid_from]").replace(", MORE", "")
        write_file(text, project.project_root, "snapshots", "kept.yml")
        refused = run_dbt(["build", "--vars", "{v: b}"], expect_pass=False)
        # Other models may have its name, and no other table has that of its own.
        command = command_of(message_of(refused, "whole"))
        assert f"{{table: {project.test_schema}.whole, columns_to_index: " in command[-1]
        run_dbt(command)
        message = message_of(refused, "parted")
        assert "partitioned by kind" in message and "convert_to_qbeast" not in message
        eval(call_of(message), {"write_table": write_table, "spark": spark})
        run_dbt(["build", "--vars", "{v: b}"])
        for name in ("whole", "parted"):
            table = f"{project.test_schema}.{name}"
            rows = spark.table(table).selectExpr("kind", "dbt_valid_to is null").collect()
            assert sorted(map(tuple, rows)) == [("a", False), ("b", True)]
            assert QbeastTable.for_name(spark, table).check().ok
            assert versions(spark, table) >= 3
