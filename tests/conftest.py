"""One Spark session for the whole test run."""

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Local Spark with Delta and a Hive metastore in memory; started once, stopped at the end."""
    from delta import configure_spark_with_delta_pip

    warehouse = tmp_path_factory.mktemp("warehouse")
    settings = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(warehouse),
        "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:tests;create=true",
        "spark.driver.extraJavaOptions": "-Dderby.stream.error.field=java.lang.System.err",
        "spark.driver.memory": "2g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        # Spark 4.2 can wait for ever when a Python UDF reads Parquet's columns as they are.
        "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    # Spark's Python workers are this interpreter, not whichever python3 comes first on the PATH.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = configure_spark_with_delta_pip(SparkSession.builder.master("local[2]"))
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
