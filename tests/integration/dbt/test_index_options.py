"""Automatic columns, sample keys and known ranges in the configuration of models."""

from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable
from tests.integration.dbt.projects import message_of

AUTOMATIC = """
{{ config(materialized='qbeast', columns_to_index='auto', incremental_strategy='append') }}
select id, id div 7 as day, id % 2 as flag from range(1400)
{% if is_incremental() %}where id < 9{% endif %}
"""
GROUPED = """
{{ config(materialized='qbeast', columns_to_index=['kind'], sample_key=var('key', none),
          column_stats={'kind': {'min': -1, 'max': 50}}, incremental_strategy='append') }}
select id, id % 20 as kind from range(1400) {% if is_incremental() %}where id < 9{% endif %}
"""


class TestIndexOptions:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {"automatic.sql": AUTOMATIC, "grouped.sql": GROUPED}

    def test_models_say_less_or_more_of_their_index(
        self, project: Any, spark: SparkSession
    ) -> None:
        def table(name: str) -> QbeastTable:
            return QbeastTable.for_name(spark, f"{project.test_schema}.{name}")

        _, log = run_dbt_and_capture(["run"])
        assert "automatic: columns_to_index auto chose id of 3 columns, from 1,400 rows" in log
        assert "grouped: on average 70 rows share kind and are sampled together" in log
        assert "sample_key='id'" in log
        second, log = run_dbt_and_capture(["run", "--select", "automatic"])
        assert message_of(second, "automatic").startswith("appended 9 rows")
        assert "auto chose" not in log
        assert table("automatic").columns_to_index == ["id"]

        key = ["--select", "grouped", "--vars", "{key: [id]}"]
        (refused,) = run_dbt(["run", *key], expect_pass=False)
        assert "sample_key" in refused.message and "--full-refresh" in refused.message
        _, log = run_dbt_and_capture(["run", *key, "--full-refresh"])
        assert "are sampled together" not in log
        run_dbt(["run", *key])
        found = table("grouped")
        assert found.sample_key == ["id"]
        assert found.revision_ids == [0, 1]
        assert found.latest_revision.transformations[0].to_json()["maxNumber"] == 50
        assert found.check().ok

        write_file(
            AUTOMATIC.replace("as day", "as id2"), project.project_root, "models/automatic.sql"
        )
        _, log = run_dbt_and_capture(["run", "--select", "automatic", "--full-refresh"])
        assert "auto chose id" in log
