"""Columns whose names look like something else to DESCRIBE, and relations that are not there."""

from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.qbeast import QbeastColumn
from dbt.tests.util import get_connection, relation_from_name, run_dbt
from dbt_common.exceptions import DbtDatabaseError
from pyspark.sql import SparkSession

from tests.integration.dbt.projects import message_of

MODEL = """
{{ config(materialized='incremental', unique_key=KEY) }}
select {{ 2 if is_incremental() else 1 }} as id, 'a' as `#b`, 3 as last
"""
COLUMNS = [("id", "int"), ("#b", "string"), ("last", "int")]
MODELS = {
    "appended.sql": MODEL.replace("KEY", "none"),
    "merged.sql": MODEL.replace("KEY", "'id'"),
    "seen.sql": "select * from {{ ref('appended') }}",
}
SNAPSHOTS = """
snapshots:
  - name: history
    relation: ref('merged')
    config: {unique_key: id, strategy: check, check_cols: all, hard_deletes: new_record}
"""


# Delta stores a column called count(1) only with column mapping.
REPEATED = """
{{ config(store_failures=true, severity='warn') }}
select id, count(*) from {{ ref('appended') }} group by id
"""


class TestColumnNames:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return MODELS

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"history.yml": SNAPSHOTS}

    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, str]:
        return {"repeated.sql": REPEATED}

    def test_a_name_that_starts_with_a_hash_hides_no_column(
        self, project: Any, spark: SparkSession
    ) -> None:
        schema, adapter = project.test_schema, project.adapter
        run_dbt(["build"])
        results = run_dbt(["build"])
        assert message_of(results, "repeated") == "Got 2 results, configured to warn if != 0"
        for name in ("appended", "merged", "history"):
            table = spark.table(f"{schema}.{name}").select("id", "`#b`", "last")
            assert sorted(table.collect()) == [(1, "a", 3), (2, "a", 3)], name

        def columns(name: str) -> list[QbeastColumn]:
            found: list[QbeastColumn] = adapter.get_columns_in_relation(
                relation_from_name(adapter, name)
            )
            return found

        spark.sql(f"create table {schema}.declared (v varchar(9), c char(2), s string) using delta")
        with get_connection(adapter):
            for name in ("appended", "seen"):
                assert [(c.name, c.dtype) for c in columns(name)] == COLUMNS
            assert columns("appended")[1].quoted == "`#b`"
            declared = [(c.name, c.dtype) for c in columns("declared")]
            assert declared == [("v", "varchar(9)"), ("c", "char(2)"), ("s", "string")]
            assert columns("missing") == []
            spark.sql(f"drop table {schema}.appended")
            with pytest.raises(DbtDatabaseError, match="TABLE_OR_VIEW_NOT_FOUND"):
                columns("seen")

    def test_a_path_and_a_catalog_in_a_name_hide_no_column(
        self, project: Any, spark: SparkSession, tmp_path: Path
    ) -> None:
        adapter, stored = project.adapter, tmp_path / "my.events"
        spark.sql("select 1 as id, 'a' as `#b`, 3 as last").write.format("delta").save(str(stored))
        relations = [
            adapter.Relation.create(schema="delta", identifier=f"`{stored}`"),
            adapter.Relation.create(schema=f"spark_catalog.{project.test_schema}", identifier="t"),
            adapter.Relation.create(schema=f"`{project.test_schema}`", identifier="`t`"),
        ]
        spark.sql(
            f"create table {project.test_schema}.t using delta as select * from {relations[0]}"
        )
        with get_connection(adapter):
            for relation in relations:
                found = adapter.get_columns_in_relation(relation)
                assert [(c.name, c.dtype) for c in found] == COLUMNS, relation
