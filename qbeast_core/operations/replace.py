"""Replace rows: delete those that a condition or a key names, and append others in their place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from qbeast_core.delta.transaction import Operation, Transaction
from qbeast_core.errors import ReplaceMismatch
from qbeast_core.index import TableIndex
from qbeast_core.operations.delete import deletion
from qbeast_core.operations.merge import Match, Matching
from qbeast_core.operations.rewrite import (
    Rewrite,
    RewriteResult,
    commit_rewrite,
)
from qbeast_core.operations.target import Target, check_assignable
from qbeast_core.spark.alignment import aligned
from qbeast_core.spark.changes import copies, deletions, insertions, together
from qbeast_core.spark.conditions import holds, settled_condition
from qbeast_core.spark.evaluation import evaluated_once, stored_rows
from qbeast_core.spark.slices import own_rows


def replace_rows_where(
    target: Target, df: DataFrame, where: str, user_metadata: str | None = None
) -> RewriteResult:
    """Replace; the arguments are those of `QbeastTable.replace_where`."""
    snapshot = target.snapshot()
    check_assignable(snapshot.schema, target.label)
    condition = settled_condition(snapshot.dataframe(), where, "where")
    given = own_rows(df, snapshot.stores_slices)
    with evaluated_once(aligned(given, snapshot.schema, target.label)) as rows:

        def attempt(transaction: Transaction) -> RewriteResult:
            schema = transaction.snapshot.schema
            new = aligned(rows, schema, target.label)
            _check_satisfying(new, condition)
            rewrite = deletion(transaction, condition, Operation.REPLACE)
            rewrite = _with_insertions(rewrite, insertions(new, schema), rows)
            return commit_rewrite(transaction, rewrite, target.label, user_metadata)

        return target.until_committed(attempt)


def replace_rows_matching(
    target: Target, df: DataFrame, match: Match, user_metadata: str | None = None
) -> RewriteResult:
    """Replace; the arguments are those of `QbeastTable.replace_matching`."""
    snapshot = target.snapshot()
    check_assignable(snapshot.schema, target.label)
    given = own_rows(df, snapshot.stores_slices)
    Matching(snapshot, given, match, target.label)
    aligned(given, snapshot.schema, target.label)
    with stored_rows(given) as rows:

        def attempt(transaction: Transaction) -> RewriteResult:
            matching = Matching(transaction.snapshot, rows, match, target.label)
            schema = transaction.snapshot.schema
            new = insertions(aligned(rows, schema, target.label), schema)
            rewrite = _with_insertions(_matching_deletion(transaction, matching), new, rows)
            return commit_rewrite(transaction, rewrite, target.label, user_metadata)

        return target.until_committed(attempt)


def _matching_deletion(transaction: Transaction, matching: Matching) -> Rewrite:
    snapshot, condition = transaction.snapshot, matching.condition
    candidates = matching.candidates(TableIndex.of(snapshot))
    found: dict[int, list[int]] = {}
    if len(candidates.files):
        rows = candidates.rows().alias(matching.match.target)
        matched = rows.join(matching.source, condition, "left_semi")
        found = candidates.holding(matched, F.count(F.lit(1)))
    removed = np.array(sorted(found), dtype=np.int64)
    partly = [i for i in removed.tolist() if snapshot.files[i].rows != found[i][0]]
    parts = []
    if partly:
        rows = matching.target_rows(np.array(partly, dtype=np.int64))
        left = rows.join(matching.source, condition, "left_anti")
        parts.append(copies(left, snapshot.schema))
    if found and transaction.snapshot.has_change_feed:
        gone = matching.target_rows(removed).join(matching.source, condition, "left_semi")
        parts.append(deletions(gone, snapshot.schema))
    return Rewrite(
        operation=Operation.REPLACE,
        candidates=candidates,
        changes=together(parts) if parts else None,
        removed=removed,
        moves_rows=False,
        rows_deleted=sum(count for (count,) in found.values()),
    )


def _with_insertions(rewrite: Rewrite, new: DataFrame, given: DataFrame) -> Rewrite:
    parts = [new] if rewrite.changes is None else [rewrite.changes, new]
    return replace(rewrite, changes=together(parts), given=given)


def _check_satisfying(new: DataFrame, condition: str) -> None:
    stranger = new.where(~holds(condition)).first()
    if stranger is not None:
        raise ReplaceMismatch(
            f"a new row does not satisfy where {condition!r}: {stranger.asDict()!r:.300}; "
            "replace_where takes rows that satisfy it only: filter them, or widen the condition"
        )
