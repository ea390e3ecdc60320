"""Lines that tell how far a model is while it runs."""

import re
from typing import Any

import pytest
from dbt.tests.util import run_dbt_and_capture
from pyspark.sql import SparkSession

EVENTS = """
{{ config(materialized='qbeast', columns_to_index='id') }}
select id, uuid() as name from range(20000) where rand() >= 0
"""


class Progress:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {"events.sql": EVENTS, "plain.sql": EVENTS.replace("'qbeast'", "'table'")}


class TestProgress(Progress):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, spark: SparkSession) -> dict[str, Any]:
        return {"type": "qbeast", "threads": 4, "progress": 0.01}

    def test_phases_and_tasks_are_told(self, project: Any) -> None:
        _, log = run_dbt_and_capture(["run"])
        for told in ("storing the rows of the query", "measuring the indexed columns", "writing"):
            assert f"model.test.events: {told}" in log
        assert re.search(r"model\.test\.\w+: [a-z ]+, \d+ of \d+ tasks, \d+ s", log)


class TestNoProgress(Progress):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, spark: SparkSession) -> dict[str, Any]:
        return {"type": "qbeast", "threads": 4, "progress": False}

    def test_a_profile_can_turn_it_off(self, project: Any) -> None:
        _, log = run_dbt_and_capture(["run"])
        assert "model.test.events: " not in log
