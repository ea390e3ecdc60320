"""The state machine of tests/fuzz for a minute; `make fuzz` runs it for ten."""

from __future__ import annotations

import time
from contextlib import ExitStack, suppress
from pathlib import Path

import hypothesis
import pytest
from hypothesis.stateful import run_state_machine_as_test
from pyspark.sql import SparkSession

from tests.fuzz.machine import QUICK, TableMachine, TimeIsUp
from tests.spark_session import setting

SECONDS = 60


def test_a_table_is_what_its_operations_make_of_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TableMachine, "spark", spark, raising=False)
    monkeypatch.setattr(TableMachine, "directory", tmp_path, raising=False)
    monkeypatch.setattr(TableMachine, "ends", time.monotonic() + SECONDS)
    few = hypothesis.settings(
        max_examples=30,
        stateful_step_count=18,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    with ExitStack() as settings:
        for key, value in QUICK.items():
            settings.enter_context(setting(spark, key, value))
        settings.enter_context(suppress(TimeIsUp))
        run_state_machine_as_test(TableMachine, settings=few)
    assert TableMachine.performed["append"] > 0
