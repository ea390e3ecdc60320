"""Sample a table: choose files by the weights in the index, then filter rows by weight.

The filter is left out if the log shows that all rows of the chosen files are in the sample. Files
that the index does not describe are always read, and Spark computes the weights of their rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame

from qbeast_core.delta.filters import PushedFilters, filters_on
from qbeast_core.errors import IncompatibleTable
from qbeast_core.jvm.clock import has_clock_literal
from qbeast_core.locate.open_table import OpenTable
from qbeast_core.model.slices import lowest_slice_below
from qbeast_core.model.weight import weight_of_fraction
from qbeast_core.spark.columns import weight, weight_text
from qbeast_core.spark.slices import reaches
from qbeast_core.tree.query import may_match

SMALL_SAMPLE_BYTES = 4 << 20
"""Files of up to this total size are read by one task, so that a following aggregation needs no
shuffle. Spark counts as many bytes for opening a file (`spark.sql.files.openCostInBytes`)."""


@dataclass(frozen=True)
class FileEntry:
    """A file that a query reads."""

    path: str
    """The path as in the Delta log: relative to the table, URL-encoded."""
    size_bytes: int
    rows: int | None
    """The number of rows; None if the log does not have it."""
    revision_id: int
    """0 for a file that the index does not describe."""


def sample_rows(
    table: OpenTable,
    fraction: float,
    where: str | None = None,
    pushed: PushedFilters | None = None,
    *,
    with_slices: bool = False,
) -> DataFrame:
    """The sampled rows that satisfy `where`, from only the files that can contain one.

    Args:
        with_slices: whether the rows keep their slices, if the table stores them.
    """
    filters = pushed or where_filters(table, where)
    files = choose_files(table, fraction, filters)
    if fraction == 1.0:
        rows = table.snapshot.rows_with_slices(files)
    else:
        rows = _rows_with_slices_below(table, files, weight_of_fraction(fraction))
        if table.snapshot.size_bytes(files) <= SMALL_SAMPLE_BYTES:
            rows = rows.coalesce(1)
    if not with_slices:
        rows = table.snapshot.without_slices(rows)
    return rows if where is None else rows.where(where)


def rows_below(table: OpenTable, files: NDArray[np.int64], limit: int) -> DataFrame:
    """The rows with a weight below the limit, in the files at these indices.

    Rows are filtered by weight, unless the log shows that all weights are below the limit. In
    indexed files, if the table stores slices of these weights, a filter on slices lets Parquet skip
    row groups and pages.
    """
    return table.snapshot.without_slices(_rows_with_slices_below(table, files, limit))


def _rows_with_slices_below(table: OpenTable, files: NDArray[np.int64], limit: int) -> DataFrame:
    # Other writers compute a slice from a timestamp that their files then store less precisely.
    unindexed = np.isin(files, table.index.unindexed)
    if table.snapshot.stores_slices and unindexed.any() and not unindexed.all():
        parts = (files[~unindexed], files[unindexed])
        one, other = (_rows_with_slices_below(table, part, limit) for part in parts)
        return one.union(other)
    rows = table.snapshot.rows_with_slices(files)
    if all(table.index.files[i].lies_below(limit) for i in files.tolist()):
        return rows
    by_slice = table.slices_fit_weights and not unindexed.any()
    if by_slice and (lowest := lowest_slice_below(limit)):
        rows = rows.where(reaches(lowest))
    return rows.where(row_weight(table) < limit)


def choose_files(
    table: OpenTable,
    fraction: float,
    filters: PushedFilters | None,
) -> NDArray[np.int64]:
    """The indices of the files that can contain a sampled row that passes the filters."""
    if fraction == 0.0:
        return np.array([], dtype=np.int64)
    if fraction == 1.0 and filters is None:
        return table.index.with_rows
    limit = weight_of_fraction(fraction) if fraction < 1.0 else np.inf
    return np.flatnonzero(lowest_weights(table, filters, limit) < limit)


def lowest_weights(
    table: OpenTable,
    filters: PushedFilters | None,
    limit: float = np.inf,
) -> NDArray[np.float64]:
    """The smallest possible weight of a row that passes the filters, in each file.

    Args:
        limit: weights at or above this need not be exact.

    Returns:
        float64[files]; infinity for files without such a row, and minus infinity for files that the
        index does not describe.
    """
    lowest = np.full(len(table.snapshot.files), np.inf)
    lowest[table.index.unindexed] = -np.inf
    for blocks in table.index.block_arrays:
        weights = blocks.min_weight.astype(np.float64)
        if filters is not None:
            meeting = may_match(filters.predicate, blocks.revision, *blocks.corners)
            weights[~meeting] = np.inf
        np.minimum.at(lowest, blocks.file, weights)
    left = np.flatnonzero(lowest < limit)
    if filters is not None and len(left) > 1:
        # For one file, evaluating statistics can cost as much as reading it.
        lowest[left[~table.snapshot.matching(filters, left)]] = np.inf
    return lowest


def where_filters(table: OpenTable, where: str | Column | None) -> PushedFilters | None:
    """The filters of a condition over the table, as Spark resolves it; text is SQL.

    Raises:
        AnalysisException: the condition does not fit the table.
        ParseException: the condition is not valid SQL.
    """
    if where is None:
        return None
    rows = table.snapshot.dataframe()
    filters = filters_on(rows.where(where), rows)
    return None if isinstance(where, str) and has_clock_literal(where) else filters


def row_weight(table: OpenTable) -> Column:
    """The weight of each row (int), by which the table is sampled."""
    return weight(table.index.weight_columns(table.label))


def sample_condition_text(table: OpenTable, fraction: float) -> str:
    """The condition that selects the rows of a sample, as SQL text that any Spark understands.

    It does not use slices, so that a view with it still works after a rebuild without slices.

    Raises:
        IncompatibleTable: the table has copies of rows, which a plain read returns as well.
    """
    if table.index.copies.any():
        raise IncompatibleTable(
            f"{table.label} has copies of rows from qbeast-spark 0.2 to 0.5, which no condition "
            "can leave out; run migrate_format on it first"
        )
    if fraction in (0.0, 1.0):
        return "true" if fraction else "false"
    weighed = weight_text(table.index.weight_columns(table.label))
    return f"{weighed} < {weight_of_fraction(fraction)}"


def file_entries(table: OpenTable, chosen: NDArray[np.int64]) -> list[FileEntry]:
    """The entries of the chosen files, from the log."""
    return [
        FileEntry(
            path=table.snapshot.files[i].path,
            size_bytes=table.snapshot.files[i].size_bytes,
            rows=table.snapshot.files[i].rows,
            revision_id=table.index.files[i].revision_id,
        )
        for i in chosen.tolist()
    ]
