"""Macros of a package that replace dbt's own, where the adapter builds tables without them."""

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file
from pyspark.sql import SparkSession

from tests.integration.dbt.projects import message_of

MODEL = "{{ config(CONFIG) }} select id, 1 as n from range(3)"
HISTORY = """
snapshots:
  - name: history
    relation: ref('rebuilt')
    config: {unique_key: id, strategy: check, check_cols: all, columns_to_index: [id]}
"""
MACROS = """
{% macro spark__get_merge_sql(target, source, unique_key, dest_columns, incremental_predicates) %}
  select 1
{% endmacro %}
{% macro default__snapshot_merge_sql(target, source, insert_cols) %} select 1 {% endmacro %}
{% macro spark__location_clause() %}{% endmacro %}
"""


class TestMacrosOfAPackage:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        configs = {
            "merged": "materialized='incremental', unique_key='id'",
            "rebuilt": "materialized='table', columns_to_index='id'",
            "appended": "materialized='qbeast', columns_to_index='id'",
        }
        return {f"{name}.sql": MODEL.replace("CONFIG", config) for name, config in configs.items()}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, Any]:
        return {"history.yml": HISTORY}

    @pytest.fixture(scope="class")
    def packages(self) -> dict[str, Any]:
        return {"packages": [{"local": "company"}]}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        order = ["test", "company", "dbt"]
        return {"dispatch": [{"macro_namespace": "dbt", "search_order": order}]}

    def test_those_that_change_rows_are_errors_and_others_one_warning(
        self, project: Any, spark: SparkSession
    ) -> None:
        company = Path(project.project_root, "company")
        (company / "macros").mkdir(parents=True)
        write_file("{name: company, version: '1.0'}", company, "dbt_project.yml")
        write_file(MACROS, company, "macros", "own.sql")
        run_dbt(["deps"])
        results, log = run_dbt_and_capture(["build"], expect_pass=False)
        for name, macro in (
            ("merged", "spark__get_merge_sql"),
            ("history", "default__snapshot_merge_sql"),
        ):
            told = message_of(results, name)
            assert f"the macro {macro} of company is not called" in told, told
        assert log.count("macro spark__location_clause of company has no effect on tables") == 1
        tables = spark.sql(f"show tables in {project.test_schema}").collect()
        assert sorted(row.tableName for row in tables) == ["appended", "rebuilt"]
