"""The rows of a query that are written to a table, in one attempt or several."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType

from pyspark.sql import DataFrame, SparkSession

from qbeast_core.jvm.gateway import Jvm


class Source:
    """The rows of a query, evaluated once for all attempts of a write.

    If the query reads the table that it changes, each attempt evaluates it again, at the version
    that its transaction starts from.

        with Source(query, checkpointed, reads_itself) as source:
            until_committed(..., lambda: ... source.rows() ...)
    """

    def __init__(
        self,
        query: DataFrame,
        store: Callable[[DataFrame], AbstractContextManager[DataFrame]],
        reads_itself: bool,
    ) -> None:
        """Takes the query and how to hold its rows.

        Args:
            store: checkpoints a query if its rows could differ when they are read again.
            reads_itself: whether the query reads the table that it changes.
        """
        self._query = query
        self._store = store
        self._held = ExitStack()
        self._rows: DataFrame | None = None
        self._reads_itself = reads_itself

    def __enter__(self) -> Source:
        if not self._reads_itself:
            self._rows = self._held.enter_context(self._store(self._query))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._held.close()

    @property
    def is_checkpointed(self) -> bool:
        """Whether the rows for all attempts were checkpointed."""
        return self._rows is not None and self._rows is not self._query

    def rows(self) -> DataFrame:
        """The rows for one attempt, which calls this once, where its transaction pins reads."""
        if self._rows is not None:
            return self._rows
        # Release the rows of the previous attempt.
        self._held.close()
        return self._held.enter_context(self._store(self._query))


def in_session(spark: SparkSession, query: DataFrame) -> DataFrame:
    """The query in the session of the table that it changes, as Delta's MERGE runs it.

    Otherwise the settings of two sessions decide which rows match, such as their time zones.
    """
    if query.sparkSession is spark:
        return query
    jvm = Jvm(spark)
    return jvm.dataframe(jvm.in_session(jvm.session, query))
