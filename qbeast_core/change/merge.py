"""Merge a source into a table: update rows whose key is in the source, insert the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from qbeast_core.change.candidates import Candidates
from qbeast_core.change.columns import check_assignable, expressions_of, table_spelling
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
from qbeast_core.errors import AmbiguousMerge, InvalidOptions, UnknownColumn
from qbeast_core.jvm.catalyst import check_executable
from qbeast_core.locate.compatibility import check_removable
from qbeast_core.locate.open_table import OpenTable, WritableTable
from qbeast_core.options import parse_texts
from qbeast_core.spark.alignment import absent_value, assigned
from qbeast_core.spark.changes import data_rows, insertions, union_all, updates
from qbeast_core.spark.columns import column_from
from qbeast_core.spark.conditions import (
    Condition,
    check_has_no_star,
    check_row_values,
    parse_condition,
    reporting_invalid_sql,
)
from qbeast_core.spark.evaluation import checkpointed, is_repeatable
from qbeast_core.spark.grouping import grouped
from qbeast_core.spark.slices import without_given_slices
from qbeast_core.spark.source import Source, in_session
from qbeast_core.spark.texts import row_text, value_text

MergeColumns = bool | str | Iterable[str] | Mapping[str, str]
"""The columns that a merge sets: all of the source, none, a list, or a mapping to expressions."""

ParsedMergeColumns = bool | tuple[str, ...] | Mapping[str, str]
"""The columns that a merge sets, checked, in a form that can be read several times."""


def parse_merge_columns(option: str, columns: MergeColumns) -> ParsedMergeColumns:
    """Check a merge's option `update` or `insert`. Raises InvalidOptions."""
    if isinstance(columns, (bool, np.bool_)):
        return bool(columns)
    if isinstance(columns, Mapping):
        return dict(columns)
    also = "True, False, a mapping of columns to SQL text, "
    return parse_texts(option, columns, "the name of a column", also=also)


@dataclass(frozen=True)
class Merge:
    """The options of a merge."""

    match: Match
    update: ParsedMergeColumns
    insert: ParsedMergeColumns
    update_where: str | None = None
    insert_where: str | None = None
    merge_schema: bool = False
    """Whether the table gets the columns of the source that it lacks and that the merge sets."""

    def columns_to_add(self, given: StructType) -> StructType:
        """The columns of the source that the merge adds, if the table lacks them, as Delta does."""
        if True in (self.update, self.insert):
            return given
        named = {
            name.lower()
            for columns in (self.update, self.insert)
            if not isinstance(columns, bool)
            for name in columns
        }
        return StructType([field for field in given if field.name.lower() in named])


def merge_rows(
    table: OpenTable, source: DataFrame, merge: Merge, commit: CommitOptions
) -> RewriteResult:
    """Merge rows; the arguments are those of `QbeastTable.merge`."""
    newest = begin_change(table, commit)
    if isinstance(newest, RewriteResult):
        return newest
    source = in_session(table.spark, source)
    given = without_given_slices(source, newest.snapshot.stores_slices)
    _check(newest, given, merge)
    reads = reads_of(given, table.address.location)
    with Source(given, checkpointed, reads is not TableReads.NONE) as evaluated:

        def decide(begun: WritableTable) -> Rewrite:
            return _MergePlan.of(begun, evaluated.rows(), merge).rewrite()

        return change_rows(table, decide, commit, reads)


@dataclass(frozen=True)
class _AffectedFiles:
    """The files and rows of the table that a merge affects."""

    matched: NDArray[np.int64]
    """The files with a matched row."""
    removed: NDArray[np.int64]
    """The files with a row to update."""
    rows_updated: int
    moves_rows: bool
    """Whether an update changes the position of a row in the index."""


class _MergePlan:
    """A merge into one version of the table."""

    @classmethod
    def of(cls, table: WritableTable, source: DataFrame, merge: Merge) -> _MergePlan:
        """Plan the merge, and add columns of the source to the table if the merge may."""
        if merge.merge_schema:
            table.merge_columns(merge.columns_to_add(source.schema))
        return cls(table, source, merge)

    def __init__(self, table: WritableTable, source: DataFrame, merge: Merge) -> None:
        self.merge = merge
        self.table = table
        self.schema = table.schema
        self.matching = RowMatcher(table, source, merge.match)
        self.updated = self._values(source, merge.update, "update", self.matching.both)
        self.inserted = self._values(source, merge.insert, "insert", self.matching.source)
        updating = _parsed(self.matching.both, merge.update_where, "update_where")
        inserting = _parsed(self.matching.source, merge.insert_where, "insert_where")
        self.update_where, self.insert_where = updating.holds, inserting.holds
        self.joins_by_python = self.matching.uses_python or updating.uses_python

    def rewrite(self) -> Rewrite:
        candidates = self.matching.candidates()
        affected = self._affected(candidates)
        parts, to_measure = [], []
        if len(affected.removed):
            check_removable(self.table)
            parts.append(self._updates(affected.removed, candidates.names.matched))
            # Rows that keep their position are measured from the files, without the join.
            to_measure.append(self.table.rows(affected.removed))
        if self.inserted is not None:
            parts.append(self._insertions(affected.matched))
            to_measure.append(data_rows(parts[-1]))
        return Rewrite(
            operation=Operation.MERGE,
            candidates=candidates,
            changes=union_all(parts) if parts else None,
            removed=affected.removed,
            moves_rows=affected.moves_rows,
            rows_to_measure=None
            if affected.moves_rows or not to_measure
            else union_all(to_measure),
            rows_updated=affected.rows_updated,
            repeatable_part=self.matching.source,
        )

    def _affected(self, candidates: Candidates) -> _AffectedFiles:
        if not len(candidates.files):
            return _AffectedFiles(candidates.files, candidates.files, 0, False)
        names, target_alias = candidates.names, self.matching.match.target_alias
        rows = candidates.numbered_rows().alias(target_alias)
        pairs = rows.join(self.matching.source, self.matching.condition)
        updating = F.lit(self.updated is not None) & self.update_where
        of_pair = pairs.select(
            names.file,
            names.row,
            updating.cast("int").alias("updates"),
            (updating & self._moves()).cast("int").alias("moves"),
        )
        row_key = [F.col(names.file), F.col(names.row)]
        of_row = grouped(
            of_pair, row_key, F.sum("updates").alias("times"), F.max("moves").alias("moves")
        )
        found = candidates.aggregate_by_file(
            of_row, F.sum((F.col("times") > 0).cast("int")), F.max("times"), F.max("moves")
        )
        if any(times > 1 for _, times, _ in found.values()):
            raise self._ambiguity(pairs.where(updating), [names.file, names.row])
        removed = [i for i, (updated, *_) in found.items() if updated]
        return _AffectedFiles(
            np.array(sorted(found), dtype=np.int64),
            np.array(sorted(removed), dtype=np.int64),
            rows_updated=sum(updated for updated, *_ in found.values()),
            moves_rows=any(moves for *_, moves in found.values()),
        )

    def _moves(self) -> Column:
        """Whether the update of a matched pair changes, or may change, a value that places rows."""
        updated = self.updated or {}
        layout_columns = self.table.configuration.latest.layout_columns
        moved = F.lit(False)
        for name in layout_columns:
            if name in updated:
                before = column_from(name, self.matching.match.target_alias)
                moved = moved | ~before.eqNullSafe(updated[name])
        if not is_repeatable(self.matching.both.select(moved), self.matching.source):
            # Random values and the current time may differ when the rows are written.
            return F.lit(True)
        return moved

    def _updates(self, removed: NDArray[np.int64], matched: str) -> DataFrame:
        assert self.updated is not None
        match = self.matching.match
        marked = self.matching.source.withColumn(matched, F.lit(True)).alias(match.source_alias)
        joined = self.matching.target_rows(removed).join(
            marked, self.matching.condition & self.update_where, "left"
        )
        return updates(
            joined,
            self.schema,
            F.col(matched).isNotNull(),
            self.updated,
            present=self.table.values_in_schema(self.matching.target, match.target_alias),
        )

    def _insertions(self, matched: NDArray[np.int64]) -> DataFrame:
        assert self.inserted is not None
        schema, source = self.schema, self.matching.source
        if len(matched):
            condition, target_alias = self.matching.condition, self.matching.match.target_alias
            # An anti join with the matched rows only gives the same result from fewer rows.
            partners = self.matching.target_rows(matched).join(source, condition, "left_semi")
            source = source.join(partners.alias(target_alias), condition, "left_anti")
        return insertions(source.where(self.insert_where), schema, self.inserted)

    def _values(
        self, source: DataFrame, columns: ParsedMergeColumns, option: str, rows: DataFrame
    ) -> dict[str, Column] | None:
        """The values that matched rows get, or that new rows have, with the table's types.

        Args:
            columns: the merge's option `update` or `insert`.
            option: its name.
            rows: the rows from which values are computed.

        Returns:
            A value for each column; None if the merge does not touch such rows.
        """
        schema, values = self.schema, self._named_values(option, columns, source)
        if values is None:
            return None
        with reporting_invalid_sql(f"{option} {columns!r}", rows):
            if isinstance(columns, Mapping):
                for name, text in columns.items():
                    check_has_no_star(rows, text, f"{option} of {name!r}")
            check_row_values(rows, values.values())
            if option == "insert":
                spark = self.table.spark
                values = {
                    field.name: values.get(field.name, absent_value(spark, field))
                    for field in schema
                }
            return assigned(rows, schema, values, self.table.label)

    def _named_values(
        self, option: str, columns: ParsedMergeColumns, source: DataFrame
    ) -> dict[str, Column] | None:
        """The values that the merge sets, by column; None for none."""
        if columns is False:
            return None
        schema, label = self.schema, self.table.label
        if isinstance(columns, Mapping):
            return expressions_of(schema, columns, option, label) or None
        given = {name.lower() for name in source.columns}
        if columns is True:
            names = [name for name in schema.fieldNames() if name.lower() in given]
            if not names:
                raise UnknownColumn(
                    f"the source shares no column with {label}; "
                    f"its columns are {', '.join(source.columns)}"
                )
        else:
            names = [table_spelling(schema, name, option, label) for name in columns]
            for name in names:
                table_spelling(source.schema, name, option, "the source")
        return {name: column_from(name, self.merge.match.source_alias) for name in names} or None

    def _ambiguity(self, pairs: DataFrame, row_names: list[str]) -> AmbiguousMerge:
        target_alias = self.matching.match.target_alias
        keys = [
            value_text(column_from(k, target_alias), self.schema[k].dataType)
            for k in self.matching.keys
        ]
        of_row = pairs.groupBy(*row_names).agg(
            F.count(F.lit(1)).alias("times"), F.first(F.struct(*keys)).alias("key")
        )
        several = of_row.where("times > 1").first()
        assert several is not None
        return AmbiguousMerge(
            f"{several['times']} rows of the source would update one row of {self.table.label}, "
            f"the row with {row_text(self.matching.keys, several['key'])}; keep one row for each "
            "key in the source"
        )

    def check_join(self) -> None:
        """Raise InvalidOptions if Spark cannot join both sides, as by a Python function of both."""
        target = self.table.snapshot.dataframe().alias(self.merge.match.target_alias)
        condition = self.matching.condition & self.update_where
        with reporting_invalid_sql("where or update_where", self.matching.both):
            check_executable(target.join(self.matching.source, condition, "left"))


def _check(table: WritableTable, source: DataFrame, merge: Merge) -> None:
    """Check the merge before the source is evaluated."""
    check_assignable(table)
    plan = _MergePlan.of(table, source, merge)
    if plan.updated is None and plan.inserted is None:
        raise InvalidOptions("the merge would do nothing; set update or insert")
    if plan.joins_by_python:
        plan.check_join()


def _parsed(rows: DataFrame, text: str | None, option: str) -> Condition:
    return Condition("true", F.lit(True)) if text is None else parse_condition(rows, text, option)
