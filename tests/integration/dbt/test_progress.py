"""Lines that show the progress of a model while it runs."""

import re
import threading
from typing import Any

import pytest
from dbt.adapters.qbeast.spark import progress
from dbt.adapters.qbeast.spark.progress import Statement
from dbt.tests.util import run_dbt_and_capture
from pyspark.sql import SparkSession

# Each of its four tasks takes half a second, many times the interval between two lines.
EVENTS = """
{{ config(materialized='qbeast', columns_to_index='id') }}
select id, uuid() as name from range(0, 20000, 1, 4)
where case when id % 5000 = 0 then java_method('java.lang.Thread', 'sleep', 500L) else '' end
    is not null
"""
PHASES = ("checkpointing the query", "measuring the indexed columns", "writing files")
PATIENCE_SECONDS = 60


class Progress:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {"events.sql": EVENTS, "plain.sql": EVENTS.replace("'qbeast'", "'table'")}


class TestProgress(Progress):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, spark: SparkSession) -> dict[str, Any]:
        return {"type": "qbeast", "threads": 4, "progress": 0.01}

    @pytest.fixture
    def lasting_phases(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each phase lasts until a line has shown it."""
        told: set[tuple[str, str]] = set()
        changed = threading.Condition()
        enter, line = Statement.enter, Statement.line

        def enter_and_wait(statement: Statement, phase: str) -> None:
            enter(statement, phase)
            with changed:
                changed.wait_for(lambda: (statement.name, phase) in told, PATIENCE_SECONDS)

        def line_and_notify(statement: Statement) -> str:
            phase = statement.phase
            text = line(statement)
            with changed:
                told.add((statement.name, phase))
                changed.notify_all()
            return text

        monkeypatch.setattr(Statement, "enter", enter_and_wait)
        monkeypatch.setattr(Statement, "line", line_and_notify)

    def test_phases_and_tasks_are_logged(
        self, project: Any, lasting_phases: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(progress, "_LATER", 0)
        _, log = run_dbt_and_capture(["run"])
        for model in ("events", "plain"):
            for phase in PHASES:
                assert f"model.test.{model}: {phase}" in log
            assert re.search(rf"model\.test\.{model}: [a-z ]+, \d of 4 tasks, \d+ s", log)


class TestNoProgress(Progress):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, spark: SparkSession) -> dict[str, Any]:
        return {"type": "qbeast", "threads": 4, "progress": False}

    def test_a_profile_can_turn_it_off(self, project: Any) -> None:
        _, log = run_dbt_and_capture(["run"])
        assert "model.test.events: " not in log
