"""Names are found whatever their case: of schemas, of models and seeds, and of columns."""

from typing import Any

import pytest
from dbt.tests.util import get_connection, run_dbt
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable
from tests.integration.dbt.projects import comments

COLUMNS = (
    "{% if var('later', false) %}2 as ID, 'b' as NAME{% else %}1 as Id, 'a' as Name{% endif %}"
)
MODELS = {
    "Rows.sql": (
        "{{ config(materialized='table') }} "
        "{% do adapter.check_schema_exists(database=none, schema=target.schema) %} select "
    )
    + COLUMNS,
    "Seen.sql": "{{ config(materialized='view') }} select * from {{ ref('Rows') }}",
    "Added.sql": (
        "{{ config(materialized='incremental', unique_key='iD', columns_to_index=['NAME'], "
        "on_schema_change='sync_all_columns') }} select * from {{ ref('Seen') }}"
    ),
    "AddedPlain.sql": (
        "{{ config(materialized='incremental', unique_key='iD', "
        "on_schema_change='sync_all_columns') }} select * from {{ ref('Rows') }}"
    ),
    "Described.sql": (
        "{{ config(materialized='view', persist_docs={'columns': true}) }} "
        "select 1 as Id, 2 as Quoted, 3 as Other"
    ),
    "models.yml": """
models:
  - name: Described
    columns:
      - {name: ID, description: the number}
      - {name: quoted, description: of another column, quote: true}
      - {name: Other, description: the other, quote: true}
  - name: Rows
    config: {contract: {enforced: true}}
    columns:
      - {name: ID, data_type: int, data_tests: [unique, not_null]}
      - {name: name, data_type: string}
  - name: Added
    columns: [{name: id, data_tests: [unique]}]
sources:
  - name: own
    schema: "{{ target.schema }}"
    config: {freshness: {warn_after: {count: 1, period: hour}}}
    tables: [{name: rOWS}]
""",
}
SNAPSHOTS = """
snapshots:
  - name: History
    relation: ref('Rows')
    config:
      {unique_key: id, strategy: check, check_cols: all, hard_deletes: new_record,
       columns_to_index: [ID]}
  - name: HistoryPlain
    relation: ref('Rows')
    config:
      unique_key: ID
      strategy: check
      check_cols: [nAME]
      hard_deletes: new_record
      snapshot_meta_column_names: {dbt_valid_to: Valid_To, dbt_is_deleted: Is_Deleted}
"""


class TestMixedCase:
    @pytest.fixture(scope="class")
    def unique_schema(self, request: Any, prefix: str) -> str:
        return f"{prefix}_Analytics_CI"

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return MODELS

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"Given.csv": "Id,Name\n1,a\n"}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"snapshots.yml": SNAPSHOTS}

    def test_every_kind_of_node_runs_again_on_what_it_has_made(
        self, project: Any, spark: SparkSession
    ) -> None:
        schema = project.test_schema
        run_dbt(["build"])
        run_dbt(["build"])
        for name in ("history", "historyplain"):
            assert spark.table(f"{schema}.{name}").count() == 1

        # The source's columns come in another case, and its row is another one.
        run_dbt(["build", "--vars", "{later: true}"])
        for name in ("added", "addedplain"):
            rows = spark.table(f"{schema}.{name}").orderBy("id").collect()
            assert [tuple(each) for each in rows] == [(1, "a"), (2, "b")], name
        for name, deleted in (("history", "dbt_is_deleted"), ("historyplain", "is_deleted")):
            table = spark.table(f"{schema}.{name}").orderBy("id", deleted)
            rows = table.select("id", "name", deleted).collect()
            expected = [(1, "a", "False"), (1, "a", "True"), (2, "b", "False")]
            assert [tuple(each) for each in rows] == expected, name
        run_dbt(["snapshot", "--vars", "{later: true}"])
        assert spark.table(f"{schema}.history").count() == len(rows)
        assert QbeastTable.for_name(spark, f"{schema}.history").check().ok

        assert comments(spark, f"{schema}.described") == {"Id": "the number", "Other": "the other"}

        catalog = run_dbt(["docs", "generate"])
        names = {key.rpartition(".")[2] for key in catalog.nodes}
        models = {"Rows", "Seen", "Added", "AddedPlain", "Described"}
        assert names == models | {"History", "HistoryPlain", "Given"}
        assert len(catalog.sources) == 1
        (fresh,) = run_dbt(["source", "freshness"]).results
        assert fresh.status == "pass"
        with get_connection(project.adapter):
            assert project.adapter.check_schema_exists(None, schema)
            assert not project.adapter.check_schema_exists(None, f"{schema}_2")
        run_dbt(["run-operation", "optimize", "--args", "{models: [Added, History]}"])
