"""Fixtures of several modules of tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.core.killed_operations import make_tables


@pytest.fixture(scope="module")
def killable_tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the tables that the operations of `KILLABLE` start from."""
    directory = tmp_path_factory.mktemp("tables")
    make_tables(spark, directory)
    return directory
