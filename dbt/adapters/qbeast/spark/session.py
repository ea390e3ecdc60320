"""The Spark session of this process, found or started once, and the sessions of its nodes."""

import logging
import os
import re
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

import pyspark
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.qbeast import lock as warehouse_lock
from dbt.adapters.qbeast.credentials import STATE_DIRECTORY, QbeastCredentials, local_path
from dbt.adapters.qbeast.spark import environment
from dbt.adapters.qbeast.spark.settings import (
    CATALOG_KEY,
    DELTA_CATALOG,
    DELTA_EXTENSION,
    start_settings,
)
from dbt_common.exceptions import DbtRuntimeError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from qbeast_core import copy_settings, is_alive, start_spark

logger = AdapterLogger("Qbeast")


@dataclass(frozen=True)
class SharedSession:
    """The process's session."""

    spark: SparkSession
    warehouse: str
    catalog: str
    started_with: QbeastCredentials | None = None
    """The profile that it was started with; None if it was not started here."""
    lock: warehouse_lock.WarehouseLock | None = None

    @property
    def started_here(self) -> bool:
        """Whether dbt started it, and not a notebook or a cluster job."""
        return self.started_with is not None


_shared: SharedSession | None = None
_shared_guard = threading.RLock()


def shared_session(credentials: QbeastCredentials) -> SharedSession:
    """The session of this process; the first call finds a running one or starts Spark.

    Raises DbtRuntimeError if the running session lacks Delta or uses another warehouse or catalog
    than the profile, if dbt started it for a profile with another master or fixed setting, if Java
    is missing, or if another process holds the warehouse.
    """
    global _shared
    with _shared_guard:
        _check_not_connect(credentials)
        if _shared is not None and is_alive(_shared.spark):
            _check_same_place(_shared, credentials)
            _check_same_start(_shared, credentials)
            return _shared
        if _shared is not None and _shared.lock is not None:
            _shared.lock.release()  # that Spark has been stopped
        running = _running_session()
        _shared = _adopt(running, credentials) if running else _start(credentials)
        return _shared


def node_session(shared: SharedSession, credentials: QbeastCredentials) -> SparkSession:
    """A session for one dbt connection, with its own temporary views, current schema and settings.

    It starts with the settings of the profile, and without those of another profile that the shared
    session was started with. If it was not started here, also with the settings that its owner
    changed at run time.
    """
    session = shared.spark.newSession()
    if shared.started_with is None:
        copy_settings(shared.spark, session)
    else:
        _reset(session, shared.started_with, credentials)
    for key, value in credentials.spark_config.items():
        if session.conf.get(key, None) != value and session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session


def _reset(session: SparkSession, starter: QbeastCredentials, present: QbeastCredentials) -> None:
    """Resets what the starter's profile sets and the present one does not."""
    defaults = start_settings(present)
    for key in starter.spark_config.keys() - present.spark_config.keys():
        if not session.conf.isModifiable(key):
            continue
        if key in defaults:
            session.conf.set(key, defaults[key])
        else:
            session.conf.unset(key)


def _check_not_connect(credentials: QbeastCredentials) -> None:
    remote = os.environ.get("SPARK_REMOTE") or os.environ.get("SPARK_CONNECT_MODE_ENABLED")
    if credentials.master.startswith("sc://") or remote:
        raise DbtRuntimeError(
            "Spark Connect is not supported, because the index needs the JVM of a classic session: "
            "set `master` to local[*], spark://host:7077 or yarn, and unset SPARK_REMOTE"
        )


def _running_session() -> SparkSession | None:
    if SparkContext._active_spark_context is None:
        return None
    return SparkSession.builder.getOrCreate()


# -- a session that was already running


def _adopt(spark: SparkSession, credentials: QbeastCredentials) -> SharedSession:
    extensions = spark.conf.get("spark.sql.extensions", None) or ""
    if DELTA_EXTENSION not in extensions or spark.conf.get(CATALOG_KEY, None) is None:
        raise DbtRuntimeError(
            "The Spark session of this process has no Delta Lake: spark.sql.extensions is "
            f"{extensions!r} and must contain {DELTA_EXTENSION}, and {CATALOG_KEY} is "
            f"{spark.conf.get(CATALOG_KEY, None)!r} and must be {DELTA_CATALOG}. Start the "
            "session with both settings, or run dbt in a new process, where it starts its own."
        )
    shared = SharedSession(
        spark,
        warehouse=spark.conf.get("spark.sql.warehouse.dir") or "",
        catalog=_catalog_of(spark),
    )
    _check_same_place(shared, credentials)
    logger.info(
        f"Using the Spark {spark.version} session of this process "
        f"({spark.sparkContext.master}, warehouse {shared.warehouse})"
    )
    return shared


def _check_same_place(shared: SharedSession, credentials: QbeastCredentials) -> None:
    """Raises if the warehouse or catalog of the profile differs from the session's.

    Its defaults count only for a session that was started here.
    """
    if credentials.warehouse or shared.started_here:
        _check_equal("warehouse", credentials.warehouse_location(), shared.warehouse)
    if credentials.catalog or shared.started_here:
        wanted, present = credentials.catalog_kind(), shared.catalog
        # The session's settings do not tell an embedded Derby catalog from a configured Hive one.
        if not (present == "hive" and wanted == "derby"):
            _check_equal("catalog", wanted, present)


def _check_same_start(shared: SharedSession, credentials: QbeastCredentials) -> None:
    """Raises if the profile needs a session that was started in another way."""
    if shared.started_with is None:
        return
    _check_equal("master", credentials.master, shared.started_with.master)
    before, now = start_settings(shared.started_with), start_settings(credentials)
    for key in sorted(shared.started_with.spark_config.keys() | credentials.spark_config.keys()):
        if before.get(key) != now.get(key) and not shared.spark.conf.isModifiable(key):
            raise DbtRuntimeError(
                f"`spark_config` of the profile differs in {key} from that of the target that "
                "started the Spark session of this process, and Spark reads this setting only when "
                "it starts. Use the same value, or run dbt in a separate process."
            )


def _check_equal(what: str, wanted: str, present: str) -> None:
    if _normal(wanted) != _normal(present):
        raise DbtRuntimeError(
            f"The profile sets the {what} {wanted}, but the Spark session of this process uses "
            f"{present}. Change the profile, or run dbt in a separate process."
        )


def _normal(location: str) -> str:
    path = local_path(location)
    return location.rstrip("/") if path is None else os.path.realpath(path)


def _catalog_of(spark: SparkSession) -> str:
    if spark.conf.get("spark.sql.catalogImplementation", "in-memory") != "hive":
        return "memory"
    uris = spark.conf.get("spark.hadoop.hive.metastore.uris", None)
    return uris or spark.conf.get("hive.metastore.uris", None) or "hive"


# -- a session that dbt starts


def _start(credentials: QbeastCredentials) -> SharedSession:
    warehouse = credentials.warehouse_location()
    managed_by_others = "PYSPARK_GATEWAY_PORT" in os.environ  # spark-submit has started the JVM
    if not managed_by_others:
        environment.check_java()
    lock_directory = credentials.lock_directory()
    held = warehouse_lock.acquire(lock_directory, warehouse) if lock_directory else None
    try:
        settings = start_settings(credentials)
        logger.info(
            f"Starting Spark {pyspark.__version__} with Delta {environment.DELTA_VERSION} on "
            f"{credentials.master} (warehouse {warehouse}, catalog {credentials.catalog_kind()})"
        )
        # It would print as JSON what dbt's own error says anyway.
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        # Spark reads this setting only in a program that spark-submit starts.
        if python := settings.get("spark.pyspark.python"):
            os.environ.setdefault("PYSPARK_PYTHON", python)
        if credentials.is_local:
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        conf = SparkConf().setAll(list(settings.items()))
        if managed_by_others:
            spark = SparkSession.builder.config(conf=conf).getOrCreate()
        else:
            spark = _from_new_jvm(conf, _state_directory(credentials))
    except BaseException:
        if held is not None:
            held.release()
        raise
    return SharedSession(spark, warehouse, credentials.catalog_kind(), credentials, held)


def _from_new_jvm(conf: SparkConf, state_directory: Path) -> SparkSession:
    state_directory.mkdir(parents=True, exist_ok=True)
    log_path = state_directory / "spark.log"
    with open(log_path, "wb") as log:
        try:
            return start_spark(conf, log)
        except Exception as error:
            raise DbtRuntimeError(_start_failure(log_path, error)) from error


def _start_failure(log_path: Path, error: Exception) -> str:
    lines = log_path.read_text(encoding="utf-8", errors="replace").splitlines()
    telling = [line for line in lines if re.search("error|exception|unresolved", line, re.I)]
    reason = (telling or lines or [str(error)])[0].strip()
    return f"Spark did not start: {reason} (see {log_path} for the full output)"


def _state_directory(credentials: QbeastCredentials) -> Path:
    """Directory of the JVM's output: in a local warehouse, otherwise a temporary directory."""
    directory = credentials.local_warehouse()
    if directory is None:
        return Path(tempfile.mkdtemp(prefix="dbt-qbeast-"))
    return directory / STATE_DIRECTORY
