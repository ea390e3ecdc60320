"""The matches between the rows of a table and those of a source, for a merge or a replacement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame

from qbeast_core.change.candidates import Candidates
from qbeast_core.change.columns import table_spelling
from qbeast_core.delta.filters import filters_on
from qbeast_core.errors import InvalidOptions
from qbeast_core.locate.open_table import OpenTable
from qbeast_core.options import parse_texts
from qbeast_core.spark.columns import column_from
from qbeast_core.spark.conditions import parse_condition, reporting_invalid_sql
from qbeast_core.spark.keys import key_condition


@dataclass(frozen=True)
class Match:
    """The condition on which a row of the source matches a row of the table."""

    on: Sequence[str]
    where: Sequence[str] = ()
    source_alias: str = "source"
    """The name of the source in conditions and expressions."""
    target_alias: str = "target"

    @staticmethod
    def of(
        on: str | Iterable[str],
        where: str | Iterable[str] | None,
        source_alias: str,
        target_alias: str,
    ) -> Match:
        """Parse the user's arguments. Raises InvalidOptions."""
        names = parse_texts("on", on, "the name of a column")
        if not names:
            raise InvalidOptions("on names no column; name the columns of the key")
        if source_alias.lower() == target_alias.lower():
            raise InvalidOptions(
                f"{source_alias=} and {target_alias=} are the same name (case does not matter); "
                "use two different names"
            )
        conditions = () if where is None else parse_texts("where", where, "a SQL condition")
        return Match(names, conditions, source_alias, target_alias)


class RowMatcher:
    """The matches between the rows of a table and those of a source."""

    def __init__(self, table: OpenTable, source: DataFrame, match: Match):
        schema = table.snapshot.schema
        self.match = match
        self.table = table
        self.source = source.alias(match.source_alias)
        self.keys = [table_spelling(schema, name, "on", table.label) for name in match.on]
        for name in self.keys:
            table_spelling(source.schema, name, "on", "the source")
        self.target = table.snapshot.dataframe().alias(match.target_alias)
        self.both = self.target.crossJoin(self.source)
        conditions = [parse_condition(self.both, text, "where") for text in match.where]
        same = [
            column_from(name, match.target_alias) == column_from(name, match.source_alias)
            for name in self.keys
        ]
        self.condition = reduce(Column.__and__, [*same, *(each.column for each in conditions)])
        with reporting_invalid_sql(f"on={list(match.on)!r}", self.both):
            self.both.where(self.condition)  # Spark cannot compare every pair of types
        self.uses_python = any(each.uses_python for each in conditions)

    def candidates(self) -> Candidates:
        """The files that may contain a match, according to the index and Delta's statistics."""
        schema = self.table.snapshot.schema
        known = key_condition(self.source, self.keys, schema, self.match.target_alias)
        if known is None:
            return self._candidates_in(np.array([], dtype=np.int64))
        rows = self.table.snapshot.dataframe()
        matching = (
            rows.alias(self.match.target_alias).where(known).join(self.source, self.condition)
        )
        return self._candidates_in(Candidates.of(self.table, filters_on(matching, rows)).files)

    def _candidates_in(self, files: NDArray[np.int64]) -> Candidates:
        """The given files as candidates for a join with the source."""
        return Candidates(self.table, files, tuple(self.source.columns))

    def target_rows(self, files: NDArray[np.int64]) -> DataFrame:
        """The rows of these files, without columns that the change adds to the table.

        In conditions, such a name means the column of the source.
        """
        return self.table.snapshot.dataframe(files).alias(self.match.target_alias)
