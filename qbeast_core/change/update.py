"""Update the rows that satisfy a condition."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from qbeast_core.change.candidates import Candidates
from qbeast_core.change.columns import check_assignable, expressions_of
from qbeast_core.change.rewrite import CommitOptions, Rewrite, RewriteResult, change_rows
from qbeast_core.delta.operations import Operation
from qbeast_core.errors import InvalidOptions
from qbeast_core.locate.compatibility import check_removable
from qbeast_core.locate.open_table import OpenTable, WritableTable
from qbeast_core.read.sample import where_filters
from qbeast_core.spark.alignment import assigned
from qbeast_core.spark.changes import updates
from qbeast_core.spark.conditions import (
    check_has_no_star,
    check_row_values,
    parse_condition,
    reporting_invalid_sql,
)


def update_rows(
    table: OpenTable,
    assignments: Mapping[str, str],
    where: str | None,
    commit: CommitOptions,
) -> RewriteResult:
    """Update rows; the arguments are those of `QbeastTable.update`."""
    if not isinstance(assignments, Mapping) or not assignments:
        raise InvalidOptions(
            f"update got {assignments!r}; pass a mapping of columns to SQL expressions, "
            "such as {'price': 'price * 2'}"
        )

    return change_rows(table, lambda begun: _update(begun, assignments, where), commit)


def _update(table: WritableTable, assignments: Mapping[str, str], where: str | None) -> Rewrite:
    check_removable(table)
    check_assignable(table)
    snapshot = table.snapshot
    present = snapshot.dataframe()
    expressions = expressions_of(snapshot.schema, assignments, "update", table.label)
    condition = parse_condition(present, "true" if where is None else where, "where")
    with reporting_invalid_sql(f"update {dict(assignments)!r}", present):
        for name, text in assignments.items():
            check_has_no_star(present, text, f"update of {name!r}")
        check_row_values(present, expressions.values())
        values = assigned(present, snapshot.schema, expressions, table.label)
    candidates = Candidates.of(table, where_filters(table, condition.column))
    found = candidates.row_counts(candidates.rows().where(condition.column))
    removed = np.array(sorted(found), dtype=np.int64)
    moves_rows = not values.keys().isdisjoint(table.configuration.latest.layout_columns)
    changes = rows_to_measure = None
    if found:
        rows = snapshot.dataframe(removed)
        changes = updates(rows, snapshot.schema, condition.holds, values)
        rows_to_measure = None if moves_rows else rows
    return Rewrite(
        operation=Operation.UPDATE,
        candidates=candidates,
        changes=changes,
        removed=removed,
        moves_rows=moves_rows,
        rows_to_measure=rows_to_measure,
        rows_updated=sum(found.values()),
        predicate=where,
    )
