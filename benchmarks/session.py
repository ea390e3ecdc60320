"""The Spark session that all sides share."""

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
    # Suits a machine with a few cores. With Delta's default of 50 partitions, everything that reads
    # a log is slow here, Delta more than ours.
    "spark.sql.shuffle.partitions": "8",
    "spark.databricks.delta.snapshotPartitions": "2",
    # As dbt-qbeast starts Spark: it keeps the compiled code of more than 100 stages, and Python
    # doesn't record where each column was created.
    "spark.sql.codegen.cache.maxEntries": "1000",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@contextmanager
def spark_session() -> Iterator[SparkSession]:
    """Start local Spark with Delta on all cores, with the same settings for every side."""
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
