"""Samples in dbt: data tests, the macro, and `tablesample` in any SQL."""

from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable
from tests.integration.dbt.projects import message_of

EVENTS = """
{{ config(materialized='qbeast', columns_to_index=['id', 'kind'], cube_size=500) }}
select id, cast(id % 7 as string) as kind from range(5000)
"""
BY_MACRO = """
{{ config(materialized='table') }}
select s.id from {{ qbeast_sample(ref('events'), 0.1) }} s join {{ ref('events') }} e using (id)
"""
BY_SQL = """
{{ config(materialized='qbeast', columns_to_index='id') }}
with picked as (select * from {{ ref('events') }} tablesample (10 percent) where id >= 1000)
select id from picked
"""
BY_VARIABLE = "{{ config(materialized='table') }} select id from {{ qbeast_sample(ref('events')) }}"
UNINDEXED = "{{ config(materialized='table') }} select id from range(1000)"
OF_UNINDEXED = (
    "{{ config(materialized='table') }} select id from {{ ref('unindexed') }} "
    "tablesample (50 percent)"
)
SCHEMA = """
models:
  - name: events
    columns:
      - name: id
        data_tests:
          - not_null:
              config: {sample: 0.1, where: "id >= 1000"}
          - unique:
              config: {meta: {sample: 0.5}}
          - accepted_values:
              arguments: {values: [-1], quote: false}
              config: {sample: 0.1, severity: warn}
"""


class TestSampling:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            "events.sql": EVENTS,
            "by_macro.sql": BY_MACRO,
            "by_sql.sql": BY_SQL,
            "by_variable.sql": BY_VARIABLE,
            "unindexed.sql": UNINDEXED,
            "of_unindexed.sql": OF_UNINDEXED,
            "schema.yml": SCHEMA,
        }

    def test_samples_are_those_of_the_index(self, project: Any, spark: SparkSession) -> None:
        results, log = run_dbt_and_capture(["build", "--vars", "{qbeast_sample: 0.2}"])
        schema = project.test_schema
        table = QbeastTable.for_name(spark, f"{schema}.events")

        def ids(name: str) -> set[int]:
            return {row.id for row in spark.table(f"{schema}.{name}").collect()}

        tenth = {row.id for row in table.sample(0.1).collect()}
        assert 0 < len(tenth) < 1000
        assert ids("by_macro") == tenth
        assert ids("by_sql") == {i for i in tenth if i >= 1000}
        assert ids("by_variable") == {row.id for row in table.sample(0.2).collect()}

        # The test saw a tenth of the rows: that many have a value that is not accepted.
        (accepted,) = [r for r in results if r.node.name.startswith("accepted_values")]
        assert accepted.failures == len(tenth)
        assert 0 < len(ids("of_unindexed")) < 1000
        assert f"{schema}.unindexed" in log  # left to Spark, and said so

    def test_a_wrong_fraction_is_an_error(self, project: Any) -> None:
        failed = run_dbt(
            ["run", "-s", "by_variable", "--vars", "{qbeast_sample: 1.1}"], expect_pass=False
        )
        assert "between 0 and 1" in message_of(failed, "by_variable")
        failed = run_dbt(["run", "-s", "by_variable"], expect_pass=False)
        assert "needs a fraction" in message_of(failed, "by_variable")
