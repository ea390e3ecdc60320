"""Delete the rows that satisfy a condition."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from pyspark.sql import DataFrame

from qbeast_core.change.candidates import Candidates
from qbeast_core.change.rewrite import CommitOptions, Rewrite, RewriteResult, change_rows
from qbeast_core.delta.operations import Operation
from qbeast_core.locate.compatibility import check_removable
from qbeast_core.locate.open_table import OpenTable, WritableTable
from qbeast_core.read.sample import where_filters
from qbeast_core.spark.changes import copies, deletions, union_all
from qbeast_core.spark.conditions import Condition, parse_condition


def delete_rows(table: OpenTable, where: str, commit: CommitOptions) -> RewriteResult:
    """Delete rows; the arguments are those of `QbeastTable.delete`."""

    def decide(begun: WritableTable) -> Rewrite:
        condition = parse_condition(begun.snapshot.dataframe(), where, "where")
        return deletion(begun, condition, Operation.DELETE)

    return change_rows(table, decide, commit)


def deletion(table: OpenTable, condition: Condition, operation: Operation) -> Rewrite:
    """The rewrite that deletes the rows that satisfy a condition."""
    check_removable(table)
    candidates = Candidates.of(table, where_filters(table, condition.column))

    def deleted_rows(rows: DataFrame) -> DataFrame:
        return rows.where(condition.column)

    return deletion_from(
        candidates,
        candidates.row_counts(deleted_rows(candidates.rows())),
        operation,
        remaining_rows=lambda rows: rows.where(~condition.holds),
        deleted_rows=deleted_rows,
        predicate=condition.text,
    )


def deletion_from(
    candidates: Candidates,
    rows_to_delete: Mapping[int, int],
    operation: Operation,
    *,
    remaining_rows: Callable[[DataFrame], DataFrame],
    deleted_rows: Callable[[DataFrame], DataFrame],
    predicate: str | None = None,
) -> Rewrite:
    """The rewrite that deletes rows from some of the candidates.

    Args:
        rows_to_delete: the number of rows to delete, for each file with such rows.
        remaining_rows: those of the table's rows that remain; only called if a file keeps rows.
        deleted_rows: those of the table's rows to delete; only called for the change data feed.
        predicate: the condition for the table's history.
    """
    table = candidates.table
    removed = np.array(sorted(rows_to_delete), dtype=np.int64)
    # A file that loses all its rows is not read again.
    partly = [i for i in removed.tolist() if table.snapshot.files[i].rows != rows_to_delete[i]]
    parts = []
    if partly:
        rows = remaining_rows(table.snapshot.dataframe(np.array(partly, dtype=np.int64)))
        parts.append(copies(table.in_schema(rows), table.schema))
    if rows_to_delete and table.snapshot.has_change_feed:
        rows = deleted_rows(table.snapshot.dataframe(removed))
        parts.append(deletions(table.in_schema(rows), table.schema))
    return Rewrite(
        operation=operation,
        candidates=candidates,
        changes=union_all(parts) if parts else None,
        removed=removed,
        moves_rows=False,
        rows_deleted=sum(rows_to_delete.values()),
        predicate=predicate,
    )
