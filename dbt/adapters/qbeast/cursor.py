"""A connection's handle and its cursor: SQL run on the node's own Spark session."""

import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.qbeast.session import activate
from dbt.adapters.qbeast.sql import run_sql
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import DataFrame, Row, SparkSession

logger = AdapterLogger("Qbeast")

_JOB_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
_CANCEL_SECONDS = 0.2


class SessionHandle:
    """What dbt holds for one connection: a Spark session and the group of the jobs that it runs."""

    def __init__(self, session: SparkSession, shared: SparkSession, name: str) -> None:
        self.session = session
        self.name = name
        self.job_group = f"dbt-qbeast-{uuid.uuid4().hex[:8]}-{name}"
        self._shared = shared
        self._idle = threading.Event()
        self._idle.set()
        self._cancelled = False

    def cursor(self) -> "Cursor":
        return Cursor(self)

    @contextmanager
    def running(self) -> Iterator[SparkSession]:
        """The session made active in this thread, with every Spark job in this node's group.

        Raises DbtRuntimeError when the node has been cancelled.
        """
        if self._cancelled:
            raise DbtRuntimeError(f"{self.name} was cancelled")
        context = self.session.sparkContext
        before = {key: context.getLocalProperty(key) for key in _JOB_PROPERTIES}
        activate(self.session)
        context.setJobGroup(self.job_group, self.name, interruptOnCancel=True)
        was_idle = self._idle.is_set()
        self._idle.clear()
        try:
            yield self.session
        finally:
            if was_idle:
                self._idle.set()
            for key, value in before.items():
                context.setLocalProperty(key, value)  # type: ignore[arg-type]

    def cancel(self) -> None:
        """Cancels this node's jobs, those that it is about to start included. Returns at once."""
        self._cancelled = True
        threading.Thread(target=self._cancel_until_idle, daemon=True).start()

    def close(self) -> None:
        activate(self._shared)

    def rollback(self) -> None:
        """Spark has no transactions."""

    def _cancel_until_idle(self) -> None:
        # One call is not enough: it is lost when no job of the group is active at that moment.
        while not self._idle.is_set():
            self.session.sparkContext.cancelJobGroup(self.job_group)
            self._idle.wait(_CANCEL_SECONDS)


class Cursor:
    """DB-API's cursor, as far as dbt uses it."""

    def __init__(self, handle: SessionHandle) -> None:
        self._handle = handle
        self._frame: DataFrame | None = None
        self._rows: list[Row] | None = None

    @property
    def description(self) -> Sequence[tuple[str, str, None, None, None, None, bool]]:
        """Name, Spark type and nullability of each column of the result."""
        if self._frame is None:
            return []
        return [
            (f.name, f.dataType.simpleString(), None, None, None, None, f.nullable)
            for f in self._frame.schema.fields
        ]

    def execute(self, sql: str, bindings: Sequence[Any] | None = None) -> None:
        """Runs a command at once; a query is analysed now and run when its rows are fetched.

        Args:
            sql: one statement; a semicolon at its end is dropped.
            bindings: values for the `%s` in the statement, in their order, of any Python type
                that Spark has a literal for.
        """
        self._rows = None
        sql = sql.strip().rstrip(";")
        with self._handle.running() as session:
            if bindings is None:
                self._frame = run_sql(session, sql)
            else:
                self._frame = run_sql(session, _with_markers(sql, len(bindings)), bindings)

    def run(self) -> None:
        """Runs a query for its effects (`assert_true`, a failing cast) without fetching rows."""
        if self._frame is not None and self._frame.columns:
            with self._handle.running():
                self._frame.write.format("noop").mode("overwrite").save()

    def fetchall(self) -> list[Row]:
        return self._fetch(None)

    def fetchmany(self, limit: int) -> list[Row]:
        return self._fetch(limit)

    def fetchone(self) -> Row | None:
        if self._rows is None:
            self._rows = self._fetch(1)
        return self._rows.pop(0) if self._rows else None

    def close(self) -> None:
        self._frame = None
        self._rows = None

    def _fetch(self, limit: int | None) -> list[Row]:
        if self._frame is None:
            return []
        with self._handle.running():
            return self._frame.collect() if limit is None else self._frame.take(limit)


def _with_markers(sql: str, count: int) -> str:
    """dbt writes `%s` where a value goes, Spark takes `?`."""
    parts = sql.split("%s")
    if len(parts) - 1 != count:
        raise DbtRuntimeError(f"the statement has {len(parts) - 1} places (%s) for {count} values")
    return "?".join(parts)
