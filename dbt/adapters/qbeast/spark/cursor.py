"""The part of a DB-API cursor that dbt uses, over a node's Spark session."""

from collections.abc import Sequence
from typing import Any

from dbt.adapters.qbeast.spark import timestamps
from dbt.adapters.qbeast.spark.handle import SessionHandle
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import DataFrame, Row


class Cursor:
    def __init__(self, handle: SessionHandle) -> None:
        self._handle = handle
        self._frame: DataFrame | None = None
        self._rows: list[Row] | None = None
        self._fetched = 0

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
        """Runs a command at once; analyses a query now and runs it when its rows are fetched.

        Args:
            sql: one statement; a semicolon at its end is dropped.
            bindings: values for the `%s` in the statement, in order, of any Python type that
                Spark has a literal for.
        """
        self._rows = None
        self._fetched = 0
        sql = sql.strip().rstrip(";")
        if bindings is not None:
            sql = _with_markers(sql, len(bindings))
        with self._handle.running():
            self._frame = self._handle.frame(sql, bindings)

    def run(self) -> None:
        """Runs a query for its effects (`assert_true`, a failing cast) without fetching rows.

        A command has run already: its result is local. No writer takes calendar intervals.
        """
        if self._frame is not None and not self._frame.isLocal() and self._frame.columns:
            with self._handle.running():
                frame = timestamps.as_sent(self._frame)
                frame.write.format("noop").mode("overwrite").save()

    def fetchall(self) -> list[Row]:
        return self._next(None)

    def fetchmany(self, limit: int) -> list[Row]:
        return self._next(limit)

    def fetchone(self) -> Row | None:
        found = self._next(1)
        return found[0] if found else None

    def close(self) -> None:
        self._frame = None
        self._rows = None

    def _next(self, limit: int | None) -> list[Row]:
        """The rows after those that were fetched, at most `limit` of them.

        Spark computes no more rows than the first call asks for, and all of them for the next call.
        """
        if self._rows is None and limit is not None and not self._fetched:
            found = self._fetch(limit)
            if len(found) < limit:
                self._rows = found
        else:
            if self._rows is None:
                self._rows = self._fetch(None)
            end = None if limit is None else self._fetched + limit
            found = self._rows[self._fetched : end]
        self._fetched += len(found)
        return found

    def _fetch(self, limit: int | None) -> list[Row]:
        if self._frame is None:
            return []
        with self._handle.running():
            return timestamps.fetch(self._frame, limit)


def _with_markers(sql: str, count: int) -> str:
    """Replaces dbt's placeholders (`%s`) with Spark's (`?`)."""
    parts = sql.split("%s")
    if len(parts) - 1 != count:
        raise DbtRuntimeError(f"the statement has {len(parts) - 1} placeholders but {count} values")
    return "?".join(parts)
