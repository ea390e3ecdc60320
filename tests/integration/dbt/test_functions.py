"""Functions of a project become functions of Spark.

Grants, which Spark lacks, cause a warning.
"""

from typing import Any

import pytest
from dbt.tests.util import run_dbt_and_capture
from pyspark.sql import SparkSession

from tests.integration.dbt.projects import message_of

FUNCTIONS = {
    "times.sql": "price * factor -- the factor has a default",
    "latest.sql": "select max(id) from {{ ref('numbers') }}",
    "total.sql": "sum(n)",
    "slow.py": "def slow(n):\n    return n\n",
    "functions.yml": """
functions:
  - name: times
    description: It's a product
    config: {volatility: deterministic, grants: {select: [ann]}, persist_docs: {relation: true}}
    arguments:
      - {name: price, data_type: bigint}
      - {name: factor, data_type: bigint, default_value: 2}
    returns: {data_type: bigint}
  - name: latest
    config: {volatility: stable}
    returns: {data_type: bigint}
  - name: total
    config: {type: aggregate}
    arguments: [{name: n, data_type: bigint}]
    returns: {data_type: bigint}
  - name: slow
    config: {runtime_version: '3.11', entry_point: slow}
    arguments: [{name: n, data_type: bigint}]
    returns: {data_type: bigint}
""",
}
MODELS = {
    "numbers.sql": "{{ config(materialized='table', columns_to_index='id') }} "
    "select id from range(5)",
    "products.sql": "{{ config(materialized='view', grants={'select': ['ann']}) }} "
    "select {{ function('times') }}(id) as twice, {{ function('times') }}(id, 3) as thrice, "
    "{{ function('latest') }}() as latest from {{ ref('numbers') }}",
}


class TestFunctions:
    @pytest.fixture(scope="class")
    def functions(self) -> dict[str, str]:
        return FUNCTIONS

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return MODELS

    def test_scalar_functions_in_sql_are_stored_and_others_rejected(
        self, project: Any, spark: SparkSession
    ) -> None:
        results, log = run_dbt_and_capture(["build"], expect_pass=False)
        failed = {result.node.name for result in results if result.status == "error"}
        assert failed == {"total", "slow"}
        assert "has type: aggregate" in message_of(results, "total")
        assert "Use type: scalar" in message_of(results, "total")
        assert "is written in python" in message_of(results, "slow")
        assert "Write it in SQL" in message_of(results, "slow")
        schema = project.test_schema
        rows = spark.table(f"{schema}.products").collect()
        assert sorted(rows) == [(2 * n, 3 * n, 4) for n in range(5)]
        described = spark.sql(f"describe function extended {schema}.times").collect()
        assert "It's a product" in "\n".join(row[0] for row in described)
        assert "`stable` volatility specified on function `latest`" in log
        for name in ("times", "products"):
            assert f"{schema}.{name}: `grants` has no effect" in log
        # Again, over the functions and the view that are there.
        results, _ = run_dbt_and_capture(["build", "--exclude", "total", "slow"])
        assert len(results) == 4
