"""Sample a table: choose the files that hold the wanted weights, then keep the rows that have them.

A filter keeps the rows that have them, unless the log says that all rows of the chosen files do. A
file that the index does not describe is always among the chosen ones, and its rows are weighed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame

from qbeast_core.delta.filters import PushedFilters, filters_on
from qbeast_core.locate.table import OpenTable
from qbeast_core.model.slices import lowest_slice_below
from qbeast_core.model.weight import weight_of_fraction
from qbeast_core.spark.columns import weight, weight_text
from qbeast_core.spark.slices import reaches
from qbeast_core.tree.query import may_match

SMALL_SAMPLE_BYTES = 4 << 20
"""Files of so many bytes are read by one task: what follows, an aggregation say, is in that task
too, and waits for no shuffle. Spark takes a file to open for as many."""


@dataclass(frozen=True)
class FileEntry:
    """A file that a query reads."""

    path: str
    """As the log has it: relative to the table, URL-encoded."""
    size_bytes: int
    rows: int | None
    """None where the log does not say."""
    revision_id: int
    """0 for a file that the index does not describe."""


def sample_rows(
    table: OpenTable,
    fraction: float,
    where: str | None = None,
    pushed: PushedFilters | None = None,
) -> DataFrame:
    """The rows of the sample, `where` applied; only files that can hold one of them are read."""
    filters = pushed or where_filters(table, where)
    files = choose_files(table, fraction, filters)
    if fraction == 1.0:
        rows = table.snapshot.dataframe(files)
    else:
        rows = rows_below(table, files, weight_of_fraction(fraction))
        if sum(table.snapshot.files[i].size_bytes for i in files.tolist()) <= SMALL_SAMPLE_BYTES:
            rows = rows.coalesce(1)
    return rows if where is None else rows.where(where)


def rows_below(table: OpenTable, files: NDArray[np.int64], limit: int) -> DataFrame:
    """The rows with a weight below the limit in the files at these indices.

    The weight decides, unless the log says that all rows are below. Slices, where the table stores
    them and their columns are what they were, let Parquet skip within a file.
    """
    if all(table.index.files[i].lies_below(limit) for i in files.tolist()):
        return table.snapshot.dataframe(files)
    rows = table.snapshot.stored_rows(files)
    by_slice = table.snapshot.stores_slices and table.index.have_present_columns(files)
    if by_slice and (lowest := lowest_slice_below(limit)):
        rows = rows.where(reaches(lowest))
    return table.snapshot.without_slices(rows).where(row_weight(table) < limit)


def choose_files(
    table: OpenTable,
    fraction: float,
    filters: PushedFilters | None,
) -> NDArray[np.int64]:
    """The indices of the files that can hold a row of the sample that the filters keep."""
    if fraction == 0.0:
        return np.array([], dtype=np.int64)
    if fraction == 1.0 and filters is None:
        return table.index.with_rows
    highest = weight_of_fraction(fraction) if fraction < 1.0 else np.inf
    return np.flatnonzero(lowest_weights(table, filters, highest) < highest)


def lowest_weights(
    table: OpenTable,
    filters: PushedFilters | None,
    highest: float = np.inf,
) -> NDArray[np.float64]:
    """float64[files]: the smallest weight that a row which the filters keep may have in each file.

    It is infinite for files that have no such row, and minus infinity for those that the index does
    not describe. Of files at `highest` or above, the caller wants to know no more.
    """
    lowest = np.full(len(table.snapshot.files), np.inf)
    lowest[table.index.unindexed] = -np.inf
    for blocks in table.index.block_arrays:
        weights = blocks.min_weight.astype(np.float64)
        if filters is not None:
            meeting = may_match(filters.predicate, blocks.revision, blocks.lower, blocks.upper)
            weights[~meeting] = np.inf
        np.minimum.at(lowest, blocks.file, weights)
    if filters is not None and np.count_nonzero(lowest < highest) > 1:
        # Delta's own statistics cost a Spark job, as much as reading a single file.
        lowest[~table.snapshot.matching(filters)] = np.inf
    return lowest


def where_filters(table: OpenTable, where: str | None) -> PushedFilters | None:
    """The filters of a SQL condition over the table, as Spark understands it.

    Raises:
        AnalysisException, ParseException: the condition is not one on this table's columns.
    """
    if where is None:
        return None
    rows = table.snapshot.dataframe()
    return filters_on(rows.where(where), rows)


def row_weight(table: OpenTable) -> Column:
    """The weight of each row, int, by which samples of the table are taken."""
    return weight(table.index.weight_columns)


def sample_condition_text(table: OpenTable, fraction: float) -> str:
    """The condition on rows that makes a sample, as SQL text that any Spark understands.

    Without slices: a view of it is to outlive a rebuild that stores none.
    """
    if fraction in (0.0, 1.0):
        return "true" if fraction else "false"
    weighed = weight_text(table.index.weight_columns)
    return f"{weighed} < {weight_of_fraction(fraction)}"


def file_entries(table: OpenTable, chosen: NDArray[np.int64]) -> list[FileEntry]:
    """What the log says of the chosen files."""
    return [
        FileEntry(
            path=table.snapshot.files[i].path,
            size_bytes=table.snapshot.files[i].size_bytes,
            rows=table.snapshot.files[i].rows,
            revision_id=table.index.files[i].revision_id,
        )
        for i in chosen.tolist()
    ]
