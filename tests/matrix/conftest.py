"""The storage that the matrix runs on, and how many cells and steps a run compared."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from pytest import TerminalReporter

from qbeast_core.delta import statistics
from tests.matrix.features import FEATURES, NOTHING
from tests.matrix.operations import STEPS
from tests.support.faulty_store import FaultyStore, installed


@pytest.fixture(scope="module")
def store(spark: SparkSession) -> Iterator[FaultyStore]:
    with installed(spark) as faulty:
        yield faulty


@pytest.fixture(scope="module", autouse=True)
def statistics_as_of_large_writes() -> Iterator[None]:
    """Statistics come from the files' footers, where the schema allows it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics, "MIN_ROWS", 0)
        yield


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    taken = [
        value
        for report in terminalreporter.getreports("passed")
        for name, value in report.user_properties
        if name == "steps"
    ]
    if taken:
        features = sum(each is not NOTHING for each in FEATURES)
        terminalreporter.line(
            f"matrix: {features} features x {len(STEPS)} operations: "
            f"{len(taken)} cells, {sum(taken)} steps"
        )
