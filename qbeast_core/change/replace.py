"""Replace rows: delete those that a condition or a key selects, and append new ones."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from qbeast_core.change.columns import check_assignable
from qbeast_core.change.delete import deletion, deletion_from
from qbeast_core.change.matching import Match, RowMatcher
from qbeast_core.change.rewrite import (
    CommitOptions,
    Rewrite,
    RewriteResult,
    begin_change,
    change_rows,
)
from qbeast_core.delta.operations import Operation
from qbeast_core.delta.reads import TableReads, reads_of
from qbeast_core.errors import ReplaceMismatch
from qbeast_core.locate.compatibility import check_removable
from qbeast_core.locate.open_table import OpenTable, WritableTable
from qbeast_core.spark.alignment import aligned
from qbeast_core.spark.changes import insertions, union_all
from qbeast_core.spark.columns import column
from qbeast_core.spark.conditions import Condition, parse_condition
from qbeast_core.spark.evaluation import checkpointed, evaluated_once
from qbeast_core.spark.slices import without_given_slices
from qbeast_core.spark.source import Source, in_session
from qbeast_core.spark.texts import row_text, value_text


def replace_rows_where(
    table: OpenTable, df: DataFrame, where: str, commit: CommitOptions, *, merge_schema: bool
) -> RewriteResult:
    """Replace rows; the arguments are those of `QbeastTable.replace_where`."""
    newest = _begin(table, commit)
    if isinstance(newest, RewriteResult):
        return newest
    condition = parse_condition(newest.snapshot.dataframe(), where, "where")
    given = without_given_slices(in_session(table.spark, df), newest.snapshot.stores_slices)
    fitting = _fitting(newest, given, merge_schema)
    reads = reads_of(fitting, table.address.location)
    with Source(fitting, evaluated_once, reads is not TableReads.NONE) as source:

        def decide(begun: WritableTable) -> Rewrite:
            rows = begun.unfilled(source.rows(), given.schema, newest)
            new, schema = _fitting(begun, rows, merge_schema), begun.schema
            _check_satisfying(new, condition)
            rewrite = deletion(begun, condition, Operation.REPLACE)
            return _with_insertions(rewrite, insertions(new, schema), rows)

        return change_rows(table, decide, commit, reads)


def replace_rows_matching(
    table: OpenTable, df: DataFrame, match: Match, commit: CommitOptions, *, merge_schema: bool
) -> RewriteResult:
    """Replace rows; the arguments are those of `QbeastTable.replace_matching`."""
    newest = _begin(table, commit)
    if isinstance(newest, RewriteResult):
        return newest
    given = without_given_slices(in_session(table.spark, df), newest.snapshot.stores_slices)
    # Raise errors of the arguments before the query of the rows is evaluated.
    RowMatcher(newest, given, match)
    _fitting(newest, given, merge_schema)
    reads = reads_of(given, table.address.location)
    with Source(given, checkpointed, reads is not TableReads.NONE) as source:

        def decide(begun: WritableTable) -> Rewrite:
            rows = source.rows()
            new = insertions(_fitting(begun, rows, merge_schema), begun.schema)
            rewrite = _matching_deletion(RowMatcher(begun, rows, match))
            return _with_insertions(rewrite, new, rows)

        return change_rows(table, decide, commit, reads)


def _begin(table: OpenTable, commit: CommitOptions) -> WritableTable | RewriteResult:
    """Start a transaction, and check that rows of the table may be replaced."""
    begun = begin_change(table, commit)
    if not isinstance(begun, RewriteResult):
        check_removable(begun)
        check_assignable(begun)
    return begun


def _fitting(table: WritableTable, rows: DataFrame, merge_schema: bool) -> DataFrame:
    """The rows in the table's schema, to which their own columns are added if that is asked for."""
    if merge_schema:
        table.merge_columns(rows.schema)
    return aligned(rows, table.schema, table.label)


def _matching_deletion(matching: RowMatcher) -> Rewrite:
    def joined(rows: DataFrame, how: str) -> DataFrame:
        return rows.alias(matching.match.target_alias).join(
            matching.source, matching.condition, how
        )

    def deleted_rows(rows: DataFrame) -> DataFrame:
        return joined(rows, "left_semi")

    candidates = matching.candidates()
    return deletion_from(
        candidates,
        candidates.row_counts(deleted_rows(candidates.rows())) if len(candidates.files) else {},
        Operation.REPLACE,
        remaining_rows=lambda rows: joined(rows, "left_anti"),
        deleted_rows=deleted_rows,
    )


def _with_insertions(rewrite: Rewrite, new: DataFrame, repeatable_part: DataFrame) -> Rewrite:
    parts = [new] if rewrite.changes is None else [rewrite.changes, new]
    return replace(rewrite, changes=union_all(parts), repeatable_part=repeatable_part)


def _check_satisfying(new: DataFrame, condition: Condition) -> None:
    texts = [value_text(column(field.name), field.dataType) for field in new.schema]
    stranger = new.where(~condition.holds).select(*texts).first()
    if stranger is not None:
        raise ReplaceMismatch(
            f"a new row does not satisfy where {condition.text!r}: "
            f"{row_text(new.columns, stranger):.300}; replace_where only accepts rows that do: "
            "filter the rows, or widen the condition"
        )
