"""One Spark session for each process of a test run."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests import spark_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Local Spark with Delta and a Hive metastore in memory.

    Its queries are compiled, as those of large tables are. Sessions that are derived from it, which
    dbt has one of for each thread, are quicker for it without that.
    """
    warehouse = tmp_path_factory.mktemp("warehouse")
    session = spark_session.start(warehouse, hive=True, **spark_session.INTERPRETED)
    for key in spark_session.INTERPRETED:
        session.conf.unset(key)
    yield session
    session.stop()
