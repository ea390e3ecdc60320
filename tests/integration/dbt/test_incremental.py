"""Incremental models with an index, in each strategy."""

from typing import Any

import pytest
from dbt.tests.util import patch_microbatch_end_time, run_dbt, write_file
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable
from tests.integration.dbt.projects import adapter_response, message_of

MODEL = """
{{ config(materialized='qbeast', columns_to_index=['id', 'kind'], CONFIG) }}
{% if is_incremental() %}
select * from values (2, 'b', 20d), (3, 'c', 30d) as t(id, kind, price)
{% else %}
select * from values (1, 'a', 1d), (2, 'b', 2d) as t(id, kind, price)
{% endif %}
"""
STRATEGIES = {
    "merged": "unique_key='id'",
    "excluded": "unique_key=['id', 'kind'], merge_exclude_columns=['price']",
    "updated": "incremental_strategy='merge', unique_key='id', merge_update_columns=['kind']",
    "narrowed": "unique_key='id', incremental_predicates=['DBT_INTERNAL_DEST.id > 2']",
    "delete_insert": "incremental_strategy='delete+insert', unique_key='id'",
    "kept": "incremental_strategy='delete+insert', unique_key='id', "
    "incremental_predicates=['id != 2']",
    "overwritten": "incremental_strategy='insert_overwrite'",
    "replaced": "incremental_strategy='replace_where', incremental_predicates=['id >= 2']",
    "appended": "incremental_strategy='append'",
    "own": "incremental_strategy='doubling'",
}
ROWS = {
    "merged": [(1, 1.0), (2, 20.0), (3, 30.0)],
    "excluded": [(1, 1.0), (2, 2.0), (3, 30.0)],
    "updated": [(1, 1.0), (2, 2.0), (3, 30.0)],
    "narrowed": [(1, 1.0), (2, 2.0), (2, 20.0), (3, 30.0)],
    "delete_insert": [(1, 1.0), (2, 20.0), (3, 30.0)],
    "kept": [(1, 1.0), (2, 2.0), (2, 20.0), (3, 30.0)],
    "overwritten": [(2, 20.0), (3, 30.0)],
    "replaced": [(1, 1.0), (2, 20.0), (3, 30.0)],
    "appended": [(1, 1.0), (2, 2.0), (2, 20.0), (3, 30.0)],
    "own": [(1, 1.0), (2, 2.0), (2, 40.0), (3, 60.0)],
}
OWN = """
{% macro get_incremental_doubling_sql(arg_dict) %}
  insert into {{ arg_dict['target_relation'] }}
  select id, kind, price * 2 from {{ arg_dict['temp_relation'] }}
{% endmacro %}
"""


class TestStrategies:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {f"{name}.sql": MODEL.replace("CONFIG", c) for name, c in STRATEGIES.items()}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, Any]:
        return {"own.sql": OWN}

    def test_each_strategy_changes_the_rows_that_it_is_to(
        self, project: Any, spark: SparkSession
    ) -> None:
        first = run_dbt(["run"])
        assert all(result.message.startswith("rebuilt 2 rows") for result in first)
        second = run_dbt(["run"])
        for name, expected in ROWS.items():
            table = f"{project.test_schema}.{name}"
            rows = spark.table(table).select("id", "price").collect()
            assert sorted((row.id, float(row.price)) for row in rows) == expected, name
        for name in ("merged", "delete_insert", "replaced"):
            table = f"{project.test_schema}.{name}"
            assert QbeastTable.for_name(spark, table).check().ok, name
        assert message_of(second, "merged").startswith("merged 1 row inserted, 1 updated, 1 file")
        assert adapter_response(project, "merged")["rows_updated"] == 1
        assert message_of(second, "replaced").startswith("replaced 2 rows inserted, 1 deleted")


CHANGING = """
{{ config(materialized='incremental', columns_to_index='id', unique_key='id',
          on_schema_change=var('mode')) }}
{% if is_incremental() %} select {{ var('columns') }} {% else %}
select 1 as id, 'a' as old, 1 as same {% endif %}
"""


class TestSchemaChange:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {"changing.sql": CHANGING}

    def test_columns_come_and_go_as_the_mode_says(self, project: Any, spark: SparkSession) -> None:
        table = f"{project.test_schema}.changing"

        def run(mode: str, columns: str, full: bool = False, expect_pass: bool = True) -> str:
            variables = f'{{mode: {mode}, columns: "{columns}"}}'
            refresh = ["--full-refresh"] if full else []
            results = run_dbt(["run", "--vars", variables, *refresh], expect_pass=expect_pass)
            return message_of(results, "changing")

        run("ignore", "", full=True)
        run("ignore", "1 as id, 2 as same, 9 as extra")
        assert spark.table(table).collect() == [(1, "a", 2)]

        run("append_new_columns", "2 as id, 3 as same, 9 as extra")
        assert sorted(spark.table(table).collect()) == [(1, "a", 2, None), (2, None, 3, 9)]

        run("sync_all_columns", "3 as id, 4 as same, 'x' as other")
        assert spark.table(table).columns == ["id", "same", "other"]
        assert sorted(spark.table(table).collect())[-1] == (3, 4, "x")
        assert QbeastTable.for_name(spark, table).check().ok

        told = run("sync_all_columns", "4 as same, 'x' as other", expect_pass=False)
        assert "is indexed by 'id'" in told and "--full-refresh" in told
        told = run("fail", "3 as id, 4 as same", expect_pass=False)
        assert "gone: other" in told
        assert spark.table(table).count() == 3


INPUT = """
{{ config(materialized='table', event_time='at', columns_to_index='at') }}
select id, timestamp '2020-01-01 00:00:00' + make_interval(0, 0, 0, id) as at from range(3)
"""
BATCHED = """
{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at',
          batch_size='day', begin='2020-01-01', columns_to_index=['at', 'id']) }}
select * from {{ ref('input') }}
"""


class TestMicrobatch:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {"input.sql": INPUT, "batched.sql": BATCHED}

    def test_a_batch_replaces_its_own_rows(self, project: Any, spark: SparkSession) -> None:
        table = f"{project.test_schema}.batched"
        for _ in range(2):
            with patch_microbatch_end_time("2020-01-03 13:57:00"):
                run_dbt(["run"])
            assert sorted(row.id for row in spark.table(table).collect()) == [0, 1, 2]
        assert QbeastTable.for_name(spark, table).check().ok


PYTHON = """
import pandas as pd

def model(dbt, session):
    dbt.config(materialized="qbeast", columns_to_index=["id"], unique_key="id")
    if dbt.is_incremental:
        return pd.DataFrame({"id": [2, 3], "n": [20, 30]})
    return session.createDataFrame([(1, 1), (2, 2)], "id long, n long")
"""
BROKEN = """
def model(dbt, session):
    return 1 / 0
"""


class TestPythonModels:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {"counted.py": PYTHON}

    def test_its_result_is_indexed_and_merged(self, project: Any, spark: SparkSession) -> None:
        run_dbt(["run"])
        run_dbt(["run"])
        table = f"{project.test_schema}.counted"
        assert sorted(spark.table(table).collect()) == [(1, 1), (2, 20), (3, 30)]
        assert QbeastTable.for_name(spark, table).columns_to_index == ["id"]

        write_file(BROKEN, project.project_root, "models/counted.py")
        (failed,) = run_dbt(["run"], expect_pass=False)
        assert "ZeroDivisionError: division by zero" in failed.message
        assert "models/counted.py (line " in failed.message
