"""A connection's handle: the node's own Spark session, with its jobs and temporary views."""

import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.qbeast.spark import progress
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import DataFrame, SparkSession

from qbeast_core import activate

if TYPE_CHECKING:
    from dbt.adapters.qbeast.spark.cursor import Cursor

logger = AdapterLogger("Qbeast")

_JOB_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
_CANCEL_SECONDS = 0.2


class SessionHandle:
    """dbt's handle for one connection, which serves one node from its first statement to its last.

    Args:
        session: the node's own session.
        shared: the session that the process shares.
        name: the node's name, as the user knows it.
        progress_seconds: seconds between progress lines for a running statement; None for none.
        is_unit_test: whether the node is a unit test, whose tables are fixtures.
    """

    def __init__(
        self,
        session: SparkSession,
        shared: SparkSession,
        name: str,
        progress_seconds: float | None = None,
        *,
        is_unit_test: bool = False,
    ) -> None:
        self.session = session
        self.name = name
        self.last_header = ""
        self.job_group = f"dbt-qbeast-{uuid.uuid4().hex[:8]}-{name}"
        self._shared = shared
        self._progress_seconds = progress_seconds
        self._is_unit_test = is_unit_test
        self._sample_views: list[str] = []
        self._idle = threading.Event()
        self._idle.set()
        self._cancelled = False

    def cursor(self) -> "Cursor":
        from dbt.adapters.qbeast.spark.cursor import Cursor

        return Cursor(self)

    @contextmanager
    def running(self) -> Iterator[SparkSession]:
        """Makes the session active in this thread and puts its Spark jobs into this node's group.

        Raises DbtRuntimeError if the node has been cancelled.
        """
        context = self.session.sparkContext
        before = {key: context.getLocalProperty(key) for key in _JOB_PROPERTIES}
        was_idle = self._idle.is_set()
        # Before the test: a cancellation ends when it finds the node idle.
        self._idle.clear()
        try:
            if self._cancelled:
                raise DbtRuntimeError(f"{self.name} was cancelled")
            activate(self.session)
            context.setJobGroup(self.job_group, self.name, interruptOnCancel=True)
            with self._progress() if was_idle else nullcontext():
                yield self.session
        finally:
            if was_idle:
                self._idle.set()
            for key, value in before.items():
                context.setLocalProperty(key, value)  # type: ignore[arg-type]

    def frame(self, sql: str, bindings: Sequence[Any] | None = None) -> DataFrame:
        """Runs a command or analyses a query; answers `tablesample` in it through the index.

        Every statement passes through here. The views that stand for samples live until the node
        ends, because Spark analyses a temporary view that reads one of them again on every use. In
        a unit test, a sample is all rows of the fixture, because fixtures have no index.

        Args:
            bindings: values for the statement's `?`, in order.
        """
        if "tablesample" in sql.lower():
            sql = self._with_all_rows(sql) if self._is_unit_test else self._with_samples(sql)
        return self.session.sql(sql) if bindings is None else self.session.sql(sql, list(bindings))

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled

    def cancel(self) -> None:
        """Cancels this node's jobs, including those that it is about to start. Returns at once."""
        self._cancelled = True
        threading.Thread(target=self._cancel_until_idle, daemon=True).start()

    def close(self) -> None:
        for view in self._sample_views:
            self.session.catalog.dropTempView(view)
        self._sample_views.clear()
        activate(self._shared)

    def rollback(self) -> None:
        """Spark has no transactions."""

    def _progress(self) -> AbstractContextManager[None]:
        if self._progress_seconds is None:
            return nullcontext()
        context = self.session.sparkContext
        statement = progress.Statement(context, self.job_group, self.name, self._progress_seconds)
        return progress.reported(statement)

    def _with_all_rows(self, sql: str) -> str:
        from dbt.adapters.qbeast.sampling.spans import without_samples

        return without_samples(self.session, sql)

    def _with_samples(self, sql: str) -> str:
        from dbt.adapters.qbeast.sampling.rewriting import rewrite_tablesample

        rewritten = rewrite_tablesample(self.session, sql)
        self._sample_views += rewritten.views
        for warning in rewritten.warnings:
            logger.warning(warning)
        return rewritten.sql

    def _cancel_until_idle(self) -> None:
        # One call is not enough: it has no effect if no job of the group is active at that moment.
        while not self._idle.is_set():
            self.session.sparkContext.cancelJobGroup(self.job_group)
            self._idle.wait(_CANCEL_SECONDS)
