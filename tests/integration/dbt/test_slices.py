"""Models that store slices: dbt does not see the column, whatever it does to their tables."""

from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable
from qbeast_core.model.slices import SLICE_COLUMN
from tests.integration.dbt.projects import comments, message_of

OWN_ROWS = """
{{ config(materialized='qbeast', columns_to_index=['id'], slices=var('slices', true),
          incremental_strategy=var('strategy'), on_schema_change='sync_all_columns',
          unique_key='id' if var('strategy') == 'merge' else none) }}
{% if is_incremental() %}
select * from {{ this }} where id < 9
{% else %}
select id, id % 20 as kind from range(1000)
{% endif %}
"""
GROWING = """
{{ config(materialized='incremental', columns_to_index=['id'], slices=true, unique_key='id',
          merge_exclude_columns=['kind'], on_schema_change=var('on_change', 'sync_all_columns')) }}
select id, id % 20 as kind {{ var('more', '') }} from range(1000)
{% if is_incremental() %}where id < 9{% endif %}
"""
PROMISED = """
{{ config(materialized='qbeast', columns_to_index=['id'], slices=true,
          contract={'enforced': true}) }}
select * from {{ ref('growing') }}
"""
OWN_STRATEGY = """
{% macro get_incremental_insert_again_sql(arg_dict) %}
  {%- set names = arg_dict['dest_columns'] | map(attribute='quoted') | join(', ') -%}
  insert into {{ arg_dict['target_relation'] }} ({{ names }})
  select {{ names }} from {{ arg_dict['temp_relation'] }}
{% endmacro %}

{% macro told_columns(name) %}
  {% set columns = adapter.get_columns_in_relation(ref(name)) %}
  {% do log('columns: ' ~ columns | map(attribute='name') | join(' '), info=true) %}
{% endmacro %}
"""
COLUMNS = [{"name": "id", "data_type": "bigint"}, {"name": "kind", "data_type": "bigint"}]
SCHEMA = {"version": 2, "models": [{"name": "promised", "columns": COLUMNS}]}
SAMPLE = "select id from {{ ref('own_rows') }} tablesample (25 percent)"


class TestSlices:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            "own_rows.sql": OWN_ROWS,
            "growing.sql": GROWING,
            "promised.sql": PROMISED,
            "schema.yml": SCHEMA,
            "quarter.sql": SAMPLE,
        }

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"own.sql": OWN_STRATEGY}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"vars": {"strategy": "append"}}

    def test_no_run_sees_the_column(self, project: Any, spark: SparkSession) -> None:
        def name_of(model: str) -> str:
            return f"{project.test_schema}.{model}"

        def run(model: str, *more: str, **arguments: Any) -> Any:
            return run_dbt(["run", "--select", model, *more], **arguments)

        def stored(model: str) -> list[str]:
            """The columns, after a look at whether all is well."""
            table = QbeastTable.for_name(spark, name_of(model))
            assert table.slices and table.check().ok
            assert spark.table(name_of(model)).where(f"{SLICE_COLUMN} is null").isEmpty()
            return list(spark.table(name_of(model)).columns)

        run_dbt(["run"])
        for model in ("own_rows", "growing", "promised"):
            assert stored(model) == ["id", "kind", SLICE_COLUMN]
        assert "1 / 2^k" in comments(spark, name_of("growing"))[SLICE_COLUMN]
        by_slice = spark.table(name_of("own_rows")).where(f"{SLICE_COLUMN} >= 2").select("id")
        quarter = spark.table(name_of("quarter"))
        assert sorted(quarter.collect()) == sorted(by_slice.collect()) and quarter.columns == ["id"]

        assert message_of(run("own_rows"), "own_rows").startswith("appended 9 rows")
        run("own_rows", "--vars", "strategy: insert_again")
        assert spark.table(name_of("own_rows")).count() == 1000 + 9 + 18
        run("own_rows", "--full-refresh")
        result = run("own_rows", "--vars", "strategy: merge")
        assert message_of(result, "own_rows").startswith("merged")
        assert stored("own_rows") == ["id", "kind", SLICE_COLUMN]
        assert spark.table(name_of("own_rows")).count() == 1000

        (refused,) = run(
            "own_rows", "--vars", "{strategy: append, slices: false}", expect_pass=False
        )
        assert "stores slices" in refused.message and "--full-refresh" in refused.message

        run("growing", "--vars", "on_change: fail")
        assert stored("growing") == ["id", "kind", SLICE_COLUMN]
        run("growing", "--vars", "{more: ', 1 as x'}")
        assert set(stored("growing")) == {"id", "kind", "x", SLICE_COLUMN}
        run("growing")
        assert stored("growing") == ["id", "kind", SLICE_COLUMN]

        told = ["run-operation", "told_columns", "--args", "{name: growing}"]
        _, log = run_dbt_and_capture(told)
        assert "columns: id kind" in log and SLICE_COLUMN not in log

        run("own_rows", "--vars", "{strategy: append, slices: false}", "--full-refresh")
        assert not QbeastTable.for_name(spark, name_of("own_rows")).slices
        catalog = run_dbt(["docs", "generate"])
        node = catalog.nodes["model.test.growing"]
        assert list(node.columns) == ["id", "kind", SLICE_COLUMN]
