"""The table that rows are changed in."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.delta.transaction import Transaction
from qbeast_core.errors import IncompatibleTable, InvalidOptions, UnknownColumn
from qbeast_core.operations.compatibility import check_writable
from qbeast_core.operations.retry import until_committed
from qbeast_core.operations.rewrite import RewriteResult
from qbeast_core.spark.schema import generation_expression, is_identity


@dataclass(frozen=True)
class Target:
    """A table by its place, and how messages call it."""

    spark: SparkSession
    location: str
    label: str

    def snapshot(self) -> TableSnapshot:
        """Its newest version, which a change starts from.

        Raises:
            IncompatibleTable: the table has features that a write would break.
        """
        newest = TableSnapshot.load(self.spark, self.location)
        check_writable(newest, self.label)
        return newest

    def until_committed(self, attempt: Callable[[Transaction], RewriteResult]) -> RewriteResult:
        """The result of the first attempt that no concurrent commit defeats.

        Raises:
            IncompatibleTable: the table has features that a write would break.
            CommitConflict: every attempt was defeated.
            CommitStateUnknown: an attempt may have been committed.
        """

        started = time.monotonic()

        def once() -> RewriteResult:
            transaction = Transaction(self.spark, self.location)
            check_writable(transaction.snapshot, self.label)
            with transaction.pinned_reads():
                transaction.read_whole_table()
                return attempt(transaction)

        result = until_committed(self.label, once)
        return replace(result, seconds=time.monotonic() - started)


def check_assignable(schema: StructType, label: str) -> None:
    """Raise IncompatibleTable for columns whose values Delta computes from others."""
    computed = [
        field.name for field in schema if generation_expression(field) or is_identity(field)
    ]
    if computed:
        raise IncompatibleTable(
            f"{label} has generated or identity columns ({', '.join(computed)}), which only "
            "Delta's own UPDATE and MERGE keep right; use these, and optimize afterwards"
        )


def expressions_of(
    schema: StructType, assignments: Mapping[str, str], option: str, label: str
) -> dict[str, Column]:
    """The SQL that columns are set to, by their names in the table's spelling.

    Raises:
        UnknownColumn: the table has no such column.
        InvalidOptions: two of the names are those of one column.
    """
    named: dict[str, str] = {}
    for name in assignments:
        found = column_of(schema, name, option, label)
        if found in named:
            raise InvalidOptions(
                f"{option} sets {found!r} of {label} twice, as {named[found]!r} and as {name!r}; "
                "set each column once"
            )
        named[found] = name
    return {found: F.expr(assignments[name]) for found, name in named.items()}


def column_of(schema: StructType, name: str, option: str, label: str) -> str:
    """A column in the table's spelling. Raises UnknownColumn."""
    wanted = str(name).lower()
    found = next((field.name for field in schema if field.name.lower() == wanted), None)
    if found is None:
        raise UnknownColumn(
            f"{option} names {name!r}, which is not a column of {label}; "
            f"the columns are {', '.join(schema.fieldNames())}"
        )
    return found
