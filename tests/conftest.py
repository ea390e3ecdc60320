"""Fixtures for all tests: one Spark session per process, and a browser where a test needs it."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
from pyspark.sql import SparkSession

from qbeast_core.jvm.settings import changed_settings
from tests.support import spark_session
from tests.support.views import temporary_views

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# A busy machine is no fault of an example.
hypothesis.settings.register_profile("without deadlines", deadline=None)
hypothesis.settings.load_profile("without deadlines")

EXHAUSTIVE = Path(__file__).parent / "exhaustive.txt"


@cache
def exhaustive_patterns() -> list[str]:
    """The patterns of `tests/exhaustive.txt`."""
    lines = EXHAUSTIVE.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def is_exhaustive(test: str) -> bool:
    """Whether `make test` leaves out the test with this id."""
    # In a pattern, only `*` is special: brackets belong to parameters.
    patterns = (f"tests/{line}".replace("[", "[[]") for line in exhaustive_patterns())
    return any(fnmatchcase(test, pattern) for pattern in patterns)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that `make test` leaves out."""
    for item in items:
        if is_exhaustive(item.nodeid):
            item.add_marker(pytest.mark.exhaustive)


_shared: list[SparkSession] = []
"""The session of the fixture `spark`, once a test has asked for it."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Local Spark with Delta and an in-memory Hive metastore, tuned for tables of a few rows."""
    session = spark_session.start_for_tests(tmp_path_factory.mktemp("warehouse"))
    _shared.append(session)
    yield session
    _shared.clear()
    session.stop()


@pytest.fixture(scope="module", autouse=True)
def no_view_is_left() -> Iterator[None]:
    """The tests of a process share its session: a view of one module would hide others' tables."""
    yield
    # Not the active session, which can be that of a dbt node: its views end with it.
    for session in _shared:
        assert temporary_views(session) == []


@pytest.fixture(scope="module")
def as_for_large_data(spark: SparkSession) -> Iterator[None]:
    """Spark's default settings for a module's tests: compiled queries and adaptive execution."""
    with changed_settings(spark, spark_session.LARGE_DATA):
        yield


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real browser, installed if there is none. Without one the tests fail."""
    from tests.support.browser import chromium

    with chromium() as running:
        yield running
