"""The Spark sessions that tests use: local, with Delta, and quick to start on small data."""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession

_MEMORY = "-XX:+UseSerialGC -Xmn512m -XX:MetaspaceSize=512m"
# The first compiler alone has 48 MB for its code. Spark fills them within minutes and then compiles
# again and again.
JAVA_OPTIONS = f"-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m {_MEMORY}"
"""For a JVM of a few minutes, which the second compiler would cost more than it gains."""
LONG_RUNNING = {
    "spark.driver.defaultJavaOptions": (
        "-XX:Tier4InvocationThreshold=20000 -XX:Tier4MinInvocationThreshold=3000 "
        "-XX:Tier4CompileThreshold=40000 -XX:Tier4BackEdgeThreshold=160000 "
        f"-XX:ReservedCodeCacheSize=512m {_MEMORY}"
    )
}
"""For a JVM of hundreds of tests: the second compiler too, but only for the hottest methods.

Its work is paid for after 50 tests of the core; from then on a test takes a third less.
"""
_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.driver.defaultJavaOptions": JAVA_OPTIONS,
    "spark.driver.memory": "2g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    # By default a VACUUM lists the files of the smallest table in 10,000 tasks.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
    # Spark 4.2 can wait for ever when a Python UDF reads Parquet's columns as they are.
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
    # PySpark would tell the JVM where in the code each column is made, by a third of all calls.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Descriptions of plans for a user interface that nobody opens, and checks of Spark's own rules.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.lightweightPlanChangeValidation": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
SMALL_DATA = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""A query is not compiled, nor planned again while it runs; a handful of rows takes less time."""
LARGE_DATA = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
}
"""Spark's own settings, as the tables of users meet them."""
_MEMORY_METASTORE = {
    "spark.sql.catalogImplementation": "hive",
    "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:tests;create=true",
    "spark.driver.extraJavaOptions": "-Dderby.stream.error.field=java.lang.System.err",
}


def start(warehouse: Path | str, *, hive: bool = False, **settings: str) -> SparkSession:
    """A new session in this process.

    Args:
        hive: with a Hive metastore in memory, as dbt's embedded default has one on disk.
        settings: Spark's settings that differ, with `__` for the dots.
    """
    # Spark's Python workers are this interpreter, not whichever python3 comes first on the PATH.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    own = {name.replace("__", "."): value for name, value in settings.items()}
    builder = SparkSession.builder.master("local[2]").config(
        "spark.sql.warehouse.dir", str(warehouse)
    )
    for key, value in (_SETTINGS | (_MEMORY_METASTORE if hive else {}) | own).items():
        builder = builder.config(key, value)
    with _only_process_that_downloads():
        session = configure_spark_with_delta_pip(builder).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


@contextmanager
def _only_process_that_downloads() -> Iterator[None]:
    """Ivy's cache of jars is not made for two processes that fill it at the same time."""
    with open(Path(tempfile.gettempdir()) / f"qbeast-tests-{os.getuid()}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
