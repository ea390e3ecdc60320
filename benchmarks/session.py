"""The Spark session of all sides."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession

SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.driver.memory": "4g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # What suits a machine of a few cores. Delta's own default, 50 partitions, makes all that reads
    # a log slow here, theirs more than ours.
    "spark.sql.shuffle.partitions": "8",
    "spark.databricks.delta.snapshotPartitions": "2",
    # As dbt-qbeast starts Spark: the code of more than 100 stages stays compiled, and Python does
    # not note where each column was made.
    "spark.sql.codegen.cache.maxEntries": "1000",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@contextmanager
def spark_session() -> Iterator[SparkSession]:
    """Local Spark with Delta on all cores; the same settings for every side of a comparison."""
    with tempfile.TemporaryDirectory() as warehouse:
        builder = configure_spark_with_delta_pip(SparkSession.builder.master("local[*]"))
        for key, value in {**SETTINGS, "spark.sql.warehouse.dir": warehouse}.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        try:
            yield spark
        finally:
            spark.stop()
