"""Nodes that run at the same time: no view, setting or name of one reaches another."""

import re
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from pyspark.sql import SparkSession

from tests.support.views import temporary_views

WITH_HOOK = """
{{ config(materialized='table', pre_hook=["set time zone 'ZONE'",
   "create temporary view of_this_model as select 'ZONE' as zone"]) }}
select current_timezone() as here, zone from of_this_model
"""
WITHOUT_HOOK = "{{ config(materialized='table') }} select current_timezone() as here"
ON_RUN_START = [
    "/* for */ -- all models\nset time zone 'Asia/Tokyo'",
    "CREATE OR REPLACE TEMP VIEW of_hooks AS SELECT 1 AS id",
    "create temporary function own as 'org.apache.hadoop.hive.ql.udf.UDFPI'",
    "{{ in_macro() }}",
    "use default",
    "create or replace global temporary view of_all as select 1 as id",
    "-- set a = b\nselect 'set a = b'",
]
IN_MACRO = """
{% macro in_macro() %}{% do run_query("set spark.sql.shuffle.partitions = 3") %}{% endmacro %}
"""
ZONES = ("Asia/Tokyo", "Europe/Paris", "America/Lima")


class TestHooks:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        hooked = {f"zone{i}.sql": WITH_HOOK.replace("ZONE", z) for i, z in enumerate(ZONES)}
        return {**hooked, "no_zone.sql": WITHOUT_HOOK}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, Any]:
        return {"in_macro.sql": IN_MACRO}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        at_end = ["set time zone 'Asia/Tokyo'", "drop view global_temp.of_all"]
        return {"on-run-start": list(ON_RUN_START), "on-run-end": at_end}

    def test_a_set_in_a_hook_stays_in_its_model(self, project: Any, spark: SparkSession) -> None:
        _, log = run_dbt_and_capture(["run", "--threads", "4"])
        warned = re.findall("`(.*)` in on-run-start has no effect on models", log)
        assert warned == [
            "set time zone 'Asia/Tokyo'",
            "CREATE OR REPLACE TEMP VIEW of_hooks AS SELECT 1 AS id",
            "create temporary function own as 'org.apache.hadoop.hive.ql.udf.UDFPI'",
            "set spark.sql.shuffle.partitions = 3",
            "use default",
        ]
        for i, zone in enumerate(ZONES):
            row = spark.table(f"{project.test_schema}.zone{i}").first()
            assert (row.here, row.zone) == (zone, zone)
        plain = spark.table(f"{project.test_schema}.no_zone").first().here
        assert plain == spark.sql("select current_timezone()").first()[0]
        assert temporary_views(spark) == []


SAME_ALIAS = """
{{ config(alias='same', schema='NAME', materialized='incremental',
          incremental_strategy='merge', unique_key='id') }}
select id, 'NAME' as origin from range(5)
"""
SAME_ALIAS_INDEXED = """
{{ config(alias='indexed', schema='NAME', materialized='qbeast', columns_to_index='id',
          incremental_strategy='append') }}
select id, 'NAME' as origin from range(5)
{% if is_incremental() %} where id < 0 {% endif %}
"""


class TestSameAlias:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            name: {
                f"merged_{name}.sql": SAME_ALIAS.replace("NAME", name),
                f"indexed_{name}.sql": SAME_ALIAS_INDEXED.replace("NAME", name),
            }
            for name in ("one", "two")
        }

    @pytest.fixture(scope="class", autouse=True)
    def drop_schemas(self, unique_schema: str, spark: SparkSession) -> Any:
        yield
        for name in ("one", "two"):
            spark.sql(f"drop schema if exists {unique_schema}_{name} cascade")

    def test_the_same_alias_in_two_schemas_at_once(self, project: Any, spark: SparkSession) -> None:
        for _ in range(2):
            run_dbt(["run", "--threads", "4"])
        for name in ("one", "two"):
            for alias in ("same", "indexed"):
                rows = spark.table(f"{project.test_schema}_{name}.{alias}").collect()
                assert [row.origin for row in rows] == [name] * 5
