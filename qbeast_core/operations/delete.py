"""Delete the rows that satisfy a condition."""

from __future__ import annotations

import numpy as np
from pyspark.sql import functions as F

from qbeast_core.delta.transaction import Operation, Transaction
from qbeast_core.index import TableIndex
from qbeast_core.operations.rewrite import (
    Rewrite,
    RewriteResult,
    commit_rewrite,
)
from qbeast_core.operations.sample import where_filters
from qbeast_core.operations.target import Target
from qbeast_core.operations.touched import Candidates
from qbeast_core.spark.changes import copies, deletions, together
from qbeast_core.spark.conditions import holds, settled_condition


def delete_rows(target: Target, where: str, user_metadata: str | None = None) -> RewriteResult:
    """Delete; the arguments are those of `QbeastTable.delete`."""

    def attempt(transaction: Transaction) -> RewriteResult:
        condition = settled_condition(transaction.snapshot.dataframe(), where, "where")
        rewrite = deletion(transaction, condition, Operation.DELETE)
        return commit_rewrite(transaction, rewrite, target.label, user_metadata)

    return target.until_committed(attempt)


def deletion(transaction: Transaction, condition: str, operation: Operation) -> Rewrite:
    """What deleting the rows that satisfy a settled condition comes to."""
    snapshot = transaction.snapshot
    candidates = Candidates.of(
        snapshot, TableIndex.of(snapshot), where_filters(snapshot, condition)
    )
    found = candidates.holding(candidates.rows().where(condition), F.count(F.lit(1)))
    removed = np.array(sorted(found), dtype=np.int64)
    # A file that loses all its rows need not be read again.
    partly = [i for i in removed.tolist() if snapshot.files[i].rows != found[i][0]]
    parts = []
    if partly:
        left = snapshot.dataframe(np.array(partly, dtype=np.int64)).where(~holds(condition))
        parts.append(copies(left, snapshot.schema))
    if found and transaction.snapshot.has_change_feed:
        gone = snapshot.dataframe(removed).where(condition)
        parts.append(deletions(gone, snapshot.schema))
    return Rewrite(
        operation=operation,
        candidates=candidates,
        changes=together(parts) if parts else None,
        removed=removed,
        moves_rows=False,
        rows_deleted=sum(count for (count,) in found.values()),
        predicate=condition,
    )
