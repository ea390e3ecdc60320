"""Find the files that a change affects, first from the index and statistics, then from rows."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from qbeast_core import phases
from qbeast_core.delta.filters import PushedFilters
from qbeast_core.locate.open_table import OpenTable
from qbeast_core.read.sample import choose_files
from qbeast_core.spark.columns import column, file_metadata
from qbeast_core.spark.grouping import grouped
from qbeast_core.spark.working_columns import WorkingColumns


@dataclass(frozen=True, eq=False)
class Candidates:
    """The files that may contain a row to change, with a way to identify each row."""

    table: OpenTable
    files: NDArray[np.int64]
    """Indices into `table.snapshot.files`."""
    joined_columns: tuple[str, ...] = ()
    """The columns of the DataFrame that the rows are joined with."""

    @staticmethod
    def of(table: OpenTable, filters: PushedFilters | None) -> Candidates:
        """The files that the filters do not prune; without filters, all files."""
        return Candidates(table, choose_files(table, 1.0, filters))

    @property
    def bytes(self) -> int:
        return self.table.snapshot.size_bytes(self.files)

    @property
    def names(self) -> WorkingColumns:
        """The names of the columns that `rows` adds; no side of a join has them."""
        return WorkingColumns(
            [*self.table.snapshot.schema.fieldNames(), *self.joined_columns], dimensions=1
        )

    def rows(self) -> DataFrame:
        """The rows of the files, with the file's path in the column `names.file`."""
        rows = self.table.snapshot.dataframe(self.files)
        return rows.select(
            *(column(name) for name in self.table.snapshot.schema.fieldNames()),
            file_metadata(rows).getField("file_path").alias(self.names.file),
        )

    def numbered_rows(self) -> DataFrame:
        """The rows of the files, with `names.file` and a row number `names.row`.

        The number of a row is unique within one query, and differs between queries.
        """
        return self.rows().withColumn(self.names.row, F.monotonically_increasing_id())

    def aggregate_by_file(self, found: DataFrame, *counts: Column) -> dict[int, list[int]]:
        """The files with a row in `found`, and aggregates for each file.

        Args:
            found: a selection of `rows`.
            counts: integer aggregates over the rows of one file.

        Returns:
            The values of the aggregates, by the index of the file.
        """
        phases.enter(phases.FINDING)
        by_path = grouped(found, [F.col(self.names.file)], *counts).collect()
        index_of = self._indices([row[0] for row in by_path])
        return {index_of[path]: numbers for path, *numbers in map(tuple, by_path)}

    def row_counts(self, found: DataFrame) -> dict[int, int]:
        """The number of rows in `found`, a selection of `rows`, by the index of their file."""
        counts = self.aggregate_by_file(found, F.count(F.lit(1)))
        return {index: count for index, (count,) in counts.items()}

    def _indices(self, uris: Sequence[str]) -> dict[str, int]:
        """The index of each file that Spark names by a URI; the log spells paths differently."""
        indices: dict[str, int] = {}
        # Some writers escape paths twice. But `a%20b` and `a b` can also be two files.
        for escapes in (1, 2):
            if unknown := [uri for uri in uris if uri not in indices]:
                indices |= self._indices_by_path(unknown, escapes)
        return indices

    def _indices_by_path(self, uris: Sequence[str], escapes: int) -> dict[str, int]:
        known: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for i in self.files.tolist():
            path = _spelled(self.table.snapshot.files[i].path, escapes)
            known[path.rpartition("/")[2]].append((path, i))
        indices = {}
        for uri in uris:
            full = _spelled(uri, escapes)
            same_name = known[full.rpartition("/")[2]]
            # The log's paths are relative to the table. If two match, the longer one is right.
            fitting = [(path, i) for path, i in same_name if f"/{full}".endswith(f"/{path}")]
            if fitting:
                indices[uri] = max(fitting, key=lambda found: len(found[0]))[1]
        return indices


def _spelled(path: str, escapes: int) -> str:
    """A path or URI without its scheme and without this many levels of escapes."""
    for _ in range(escapes):
        path = unquote(path)
    return re.sub(r"^[A-Za-z][\w+.-]*:", "", path).lstrip("/")
