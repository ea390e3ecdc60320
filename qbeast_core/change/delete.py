"""Delete the rows that satisfy a condition."""

from __future__ import annotations

import numpy as np
from pyspark.sql import functions as F

from qbeast_core.change.candidates import Candidates
from qbeast_core.change.rewrite import (
    CommitOptions,
    Rewrite,
    RewriteResult,
    change_rows,
)
from qbeast_core.delta.operations import Operation
from qbeast_core.locate.compatibility import check_removable
from qbeast_core.locate.table import OpenTable, WritableTable
from qbeast_core.read.sample import where_filters
from qbeast_core.spark.changes import copies, deletions, together
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
    snapshot = table.snapshot
    candidates = Candidates.of(table, where_filters(table, condition.column))
    found = candidates.holding(candidates.rows().where(condition.column), F.count(F.lit(1)))
    removed = np.array(sorted(found), dtype=np.int64)
    # A file that loses all its rows is not read again.
    partly = [i for i in removed.tolist() if snapshot.files[i].rows != found[i][0]]
    parts = []
    if partly:
        left = table.rows(np.array(partly, dtype=np.int64)).where(~condition.holds)
        parts.append(copies(left, table.schema))
    if found and snapshot.has_change_feed:
        gone = table.rows(removed).where(condition.column)
        parts.append(deletions(gone, table.schema))
    return Rewrite(
        operation=operation,
        candidates=candidates,
        changes=together(parts) if parts else None,
        removed=removed,
        moves_rows=False,
        rows_deleted=sum(count for (count,) in found.values()),
        predicate=condition.text,
    )
