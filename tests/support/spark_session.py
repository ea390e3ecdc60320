"""The Spark sessions of the tests: local, with Delta, and fast on small data."""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from delta import configure_spark_with_delta_pip
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

_MEMORY = "-XX:+UseSerialGC -Xmn512m -XX:MetaspaceSize=512m"
# With only the C1 compiler, the code cache is 48 MB. Spark fills it within minutes, and the JVM
# then compiles the same methods repeatedly.
JAVA_OPTIONS = f"-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m {_MEMORY}"
"""For a JVM that runs a few minutes, where the C2 compiler would cost more than it gains."""
LONG_RUNNING = {
    "spark.driver.defaultJavaOptions": (
        "-XX:Tier4InvocationThreshold=20000 -XX:Tier4MinInvocationThreshold=3000 "
        "-XX:Tier4CompileThreshold=40000 -XX:Tier4BackEdgeThreshold=160000 "
        f"-XX:ReservedCodeCacheSize=512m {_MEMORY}"
    )
}
"""For a JVM that runs hundreds of tests: also the C2 compiler, but only for the hottest methods.

It breaks even after 50 tests of the core; from then on a test takes a third less time.
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
    # By default, VACUUM lists the files of even the smallest table in 10,000 tasks.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
    # Spark 4.2 can hang when a Python UDF reads Parquet columns without conversion to rows.
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
    # Otherwise PySpark sends the JVM the code location of each column, in a third of all calls.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Skip plan descriptions for the Spark UI, which is off, and checks of Spark's own rules.
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
"""No code generation and no adaptive execution, which makes queries over a few rows faster."""
LARGE_DATA = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
}
"""Spark's defaults, as in users' sessions."""
_MEMORY_METASTORE = {
    "spark.sql.catalogImplementation": "hive",
    # Processes that share a JVM, one after the other, have a metastore each.
    "spark.hadoop.javax.jdo.option.ConnectionURL": (
        f"jdbc:derby:memory:tests-{os.getpid()};create=true"
    ),
    "spark.driver.extraJavaOptions": "-Dderby.stream.error.field=java.lang.System.err",
}
SHARED_JVM = "TESTS_SHARED_JVM"
"""The environment variable that names the JVM for `start_for_tests`: its port and its secret.

A JVM that has run tests runs more tests several times as fast as a new one.
"""
# By these, PySpark connects to a JVM instead of starting one.
_GATEWAY = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")


def start(warehouse: Path | str, *, hive: bool = False, **settings: str) -> SparkSession:
    """Start a session in this process.

    Args:
        warehouse: the directory of managed tables.
        hive: whether to use an in-memory Hive metastore, like dbt's embedded default on disk.
        settings: Spark settings to override, with `__` instead of dots.
    """
    # So that Spark's Python workers run this interpreter instead of the first python3 on the PATH.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    own = {name.replace("__", "."): value for name, value in settings.items()}
    own["spark.sql.warehouse.dir"] = str(warehouse)
    with _only_process_that_downloads():
        session = _builder(_SETTINGS | (_MEMORY_METASTORE if hive else {}) | own).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def start_for_tests(warehouse: Path | str) -> SparkSession:
    """Start the session that the tests of a process share, in the JVM of `SHARED_JVM` if it is set.

    It has an in-memory Hive metastore, and is tuned for tables of a few rows.
    """
    address = os.environ.pop(SHARED_JVM, None)
    if address is None:
        return start(warehouse, hive=True, **SMALL_DATA, **LONG_RUNNING)
    try:
        os.environ |= zip(_GATEWAY, address.split(":"), strict=True)
        return start(warehouse, hive=True, **SMALL_DATA)
    except Exception as error:
        # Otherwise the tests would fail one by one, as if they had found something.
        pytest.exit(f"no session in the shared JVM: {error}", pytest.ExitCode.INTERNAL_ERROR)
    finally:
        # Processes that a test starts need JVMs of their own.
        for name in _GATEWAY:
            os.environ.pop(name, None)


def serve_jvm() -> None:
    """Start a JVM for `start_for_tests`, print its address, and keep it until the input ends."""
    conf = SparkConf(loadDefaults=False)
    for key, value in _builder(_SETTINGS | _MEMORY_METASTORE | LONG_RUNNING)._options.items():
        conf.set(key, value)
    with _only_process_that_downloads():
        # The JVM ends with this object.
        gateway = launch_gateway(conf)
    print(f"{gateway.gateway_parameters.port}:{gateway.gateway_parameters.auth_token}", flush=True)
    sys.stdin.read()


def _builder(settings: Mapping[str, str]) -> SparkSession.Builder:
    """A builder of local sessions with Delta's jars."""
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return configure_spark_with_delta_pip(builder)


@contextmanager
def _only_process_that_downloads() -> Iterator[None]:
    """Lock out other processes, because Ivy's jar cache does not support concurrent downloads."""
    with open(Path(tempfile.gettempdir()) / f"qbeast-tests-{os.getuid()}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    serve_jvm()
