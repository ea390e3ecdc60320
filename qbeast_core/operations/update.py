"""Set columns of the rows that satisfy a condition."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from pyspark.sql import functions as F

from qbeast_core.delta.transaction import Operation, Transaction
from qbeast_core.errors import InvalidOptions
from qbeast_core.index import TableIndex
from qbeast_core.operations.rewrite import Rewrite, RewriteResult, commit_rewrite
from qbeast_core.operations.sample import where_filters
from qbeast_core.operations.target import Target, check_assignable, expressions_of
from qbeast_core.operations.touched import Candidates
from qbeast_core.spark.alignment import assigned
from qbeast_core.spark.changes import updates
from qbeast_core.spark.conditions import check_row_values, holds, settled_condition, understood


def update_rows(
    target: Target,
    assignments: Mapping[str, str],
    where: str | None,
    user_metadata: str | None = None,
) -> RewriteResult:
    """Update; the arguments are those of `QbeastTable.update`."""
    if not isinstance(assignments, Mapping) or not assignments:
        raise InvalidOptions(
            f"update sets {assignments!r}; give a mapping of columns to SQL expressions, "
            "such as {'price': 'price * 2'}"
        )

    def attempt(transaction: Transaction) -> RewriteResult:
        rewrite = _update(transaction, target.label, assignments, where)
        return commit_rewrite(transaction, rewrite, target.label, user_metadata)

    return target.until_committed(attempt)


def _update(
    transaction: Transaction, label: str, assignments: Mapping[str, str], where: str | None
) -> Rewrite:
    snapshot = transaction.snapshot
    check_assignable(snapshot.schema, label)
    table = snapshot.dataframe()
    expressions = expressions_of(snapshot.schema, assignments, "update", label)
    condition = settled_condition(table, "true" if where is None else where, "where")
    with understood(f"update {dict(assignments)!r}", table):
        check_row_values(table, expressions.values())
        values = assigned(table, snapshot.schema, expressions, label)
    index = TableIndex.of(snapshot)
    candidates = Candidates.of(snapshot, index, where_filters(snapshot, condition))
    found = candidates.holding(candidates.rows().where(condition), F.count(F.lit(1)))
    removed = np.array(sorted(found), dtype=np.int64)
    moves_rows = not values.keys().isdisjoint(index.configuration.latest.placing_columns)
    changes = placed_alike = None
    if found:
        rows = snapshot.dataframe(removed)
        changes = updates(rows, snapshot.schema, holds(condition), values)
        placed_alike = None if moves_rows else rows
    return Rewrite(
        operation=Operation.UPDATE,
        candidates=candidates,
        changes=changes,
        removed=removed,
        moves_rows=moves_rows,
        placed_alike=placed_alike,
        rows_updated=sum(count for (count,) in found.values()),
        predicate=None if where is None else condition,
    )
