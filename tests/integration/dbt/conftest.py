"""dbt's own test fixtures on the adapter, all on the run's one Spark session."""

from collections.abc import Iterator
from typing import Any

import pytest
from dbt.tests.fixtures.project import *  # noqa: F403 - fixtures are found by name
from pyspark.sql import SparkSession

from tests.integration.dbt.processes import end_all


@pytest.fixture(scope="class")
def dbt_profile_target(spark: SparkSession) -> dict[str, Any]:
    return {"type": "qbeast", "threads": 4}


@pytest.fixture
def no_process_left() -> Iterator[None]:
    """No process outlives the test that started it, also where that fails."""
    yield
    end_all()
