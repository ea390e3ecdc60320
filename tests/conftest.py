"""One Spark session for each process of a test run."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests import spark_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Local Spark with Delta and a Hive metastore in memory."""
    session = spark_session.start(tmp_path_factory.mktemp("warehouse"), hive=True)
    yield session
    session.stop()
