"""Spark's settings for a session that dbt starts."""

import os

from dbt.adapters.qbeast.credentials import QbeastCredentials
from dbt.adapters.qbeast.spark import environment
from dbt_common.exceptions import DbtRuntimeError

DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
CATALOG_KEY = "spark.sql.catalog.spark_catalog"
_LOCAL_HEAP_GIB = 4
# Without this, Derby writes derby.log into the directory that dbt was started from.
_DERBY_TO_STDERR = "-Dderby.stream.error.field=java.lang.System.err"


def start_settings(credentials: QbeastCredentials) -> dict[str, str]:
    """The settings; those of the profile override the defaults."""
    given = credentials.spark_config
    warehouse = credentials.warehouse_location()
    settings = {
        "spark.app.name": "dbt-qbeast",
        "spark.master": credentials.master,
        CATALOG_KEY: DELTA_CATALOG,
        "spark.sql.warehouse.dir": warehouse,
        "spark.ui.showConsoleProgress": "false",
        # With this on, Spark 4.2 can hang when a Python UDF reads columns of Parquet files.
        "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
        # By default Spark caches the generated code of 100 stages. A run of a few models and tests
        # has more, and each of them compiled the code that reads Delta's logs again.
        "spark.sql.codegen.cache.maxEntries": "1000",
        # Recording where each column was created takes more JVM calls than creating it.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        **_catalog_settings(credentials),
        **(_local_settings() if credentials.is_local else {}),
        **given,
    }
    settings["spark.sql.extensions"] = _with(given.get("spark.sql.extensions"), DELTA_EXTENSION)
    settings.update(_jar_settings(given))
    return settings


def _catalog_settings(credentials: QbeastCredentials) -> dict[str, str]:
    catalog = credentials.catalog_kind()
    if catalog == "memory":
        return {"spark.sql.catalogImplementation": "in-memory"}
    hive = {"spark.sql.catalogImplementation": "hive"}
    if "://" in catalog:
        return {**hive, "spark.hadoop.hive.metastore.uris": catalog}
    if catalog == "derby":
        directory = credentials.local_warehouse()
        if directory is None:
            raise DbtRuntimeError(
                "The embedded catalog is stored in the warehouse, but "
                f"{credentials.warehouse_location()} is not a local directory: set `catalog` to "
                "hive, memory or the URI of a Hive metastore"
            )
        database = f"jdbc:derby:;databaseName={directory}/metastore_db;create=true"
        return {
            **hive,
            "spark.hadoop.javax.jdo.option.ConnectionURL": database,
            # Hive repeats each failing statement 10 times, also those that can never succeed: the
            # catalog has no room for a comment of 300 characters, and Spark stores it elsewhere.
            # By default it waits 2 seconds each time, and other nodes wait with it.
            "spark.hadoop.hive.hmshandler.retry.interval": "50ms",
            "spark.driver.defaultJavaOptions": _DERBY_TO_STDERR,
        }
    return hive


def _local_settings() -> dict[str, str]:
    """Defaults for small data on one machine; those of Spark and Delta are meant for clusters."""
    tasks = str(max(2, os.cpu_count() or 2))
    return {
        "spark.sql.shuffle.partitions": tasks,
        # By default VACUUM lists the files of even the smallest table in 10,000 tasks.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": tasks,
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.ui.enabled": "false",
        "spark.driver.memory": f"{_local_heap_gib()}g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }


def _local_heap_gib() -> int:
    """Heap of the one JVM that driver and executor share: at most half of the machine's memory."""
    machine_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return max(1, min(_LOCAL_HEAP_GIB, int(machine_gib / 2)))


def _jar_settings(given: dict[str, str]) -> dict[str, str]:
    named = given.get("spark.jars", "") + given.get("spark.jars.packages", "")
    if "delta-spark" in named or environment.delta_is_on_class_path():
        return {}
    package = environment.delta_package()
    return {"spark.jars.packages": _with(given.get("spark.jars.packages"), package)}


def _with(given: str | None, added: str) -> str:
    if given and added in given:
        return given
    return f"{given},{added}" if given else added
