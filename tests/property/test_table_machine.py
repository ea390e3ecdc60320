"""A part of what `make fuzz` does for ten minutes: two tables that meet each operation."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import hypothesis
import pytest
from hypothesis.stateful import run_state_machine_as_test
from pyspark.sql import SparkSession

from qbeast_core.jvm.settings import changed_settings
from tests.fuzz.machine import OPERATIONS, QUICK, TableMachine

CHANGES = sum(not operation.is_read for operation in OPERATIONS.values())


def test_a_table_is_what_its_operations_make_of_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TableMachine, "spark", spark, raising=False)
    monkeypatch.setattr(TableMachine, "directory", tmp_path, raising=False)
    monkeypatch.setattr(TableMachine, "performed", Counter())
    monkeypatch.setattr(TableMachine, "reads_of_a_version", 4)
    monkeypatch.setattr(TableMachine, "most_ahead", 0)
    few = hypothesis.settings(
        # Hypothesis takes the simplest of all first.
        max_examples=2,
        stateful_step_count=2 * CHANGES,
        derandomize=True,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    with changed_settings(spark, QUICK):
        run_state_machine_as_test(TableMachine, settings=few)
    assert set(TableMachine.performed) == set(OPERATIONS)
    assert TableMachine.performed.total() >= 6 * CHANGES
