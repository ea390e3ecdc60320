"""dbt's own test fixtures on the adapter, all on the run's one Spark session."""

from typing import Any

import pytest
from dbt.tests.fixtures.project import *  # noqa: F403 - fixtures are found by name
from pyspark.sql import SparkSession


@pytest.fixture(scope="class")
def dbt_profile_target(spark: SparkSession) -> dict[str, Any]:
    return {"type": "qbeast", "threads": 4}
