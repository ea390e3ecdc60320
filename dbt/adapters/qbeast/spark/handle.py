"""A connection's handle: the node's own Spark session, and the jobs and views that it makes."""

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
    """What dbt holds for one connection, which is one node from its first statement to its end.

    Args:
        session: the node's own.
        shared: the process's.
        name: the node's, as the user knows it.
        progress_seconds: the time between lines that tell how far a statement is; None for none.
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
            with self._progress() if was_idle else nullcontext():
                yield self.session
        finally:
            if was_idle:
                self._idle.set()
            for key, value in before.items():
                context.setLocalProperty(key, value)  # type: ignore[arg-type]

    def frame(self, sql: str, bindings: Sequence[Any] | None = None) -> DataFrame:
        """Runs a command or analyses a query; `tablesample` in it is answered through the index.

        Every statement comes through here. The views that stand for samples live until the node
        ends, for a temporary view made of one of them is analysed again whenever it is used. A unit
        test's samples are all rows of its fixtures, of which no index tells what to draw.

        Args:
            bindings: values of the statement's `?`, in their order.
        """
        if "tablesample" in sql.lower():
            sql = self._with_all_rows(sql) if self._is_unit_test else self._with_samples(sql)
        return self.session.sql(sql) if bindings is None else self.session.sql(sql, list(bindings))

    def cancel(self) -> None:
        """Cancels this node's jobs, those that it is about to start included. Returns at once."""
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
        # One call is not enough: it is lost when no job of the group is active at that moment.
        while not self._idle.is_set():
            self.session.sparkContext.cancelJobGroup(self.job_group)
            self._idle.wait(_CANCEL_SECONDS)
