"""What the log knows about the rows of files: counts by weight, and the range of a column.

A sample of the fraction `f` stands for all rows of a table only if it has `f` of them. The log has
the weights and the number of the rows of each block, so it shows whether rows are missing at high
weights, for example because the table was itself stored from a sample.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql.types import DoubleType, FloatType, NumericType

from qbeast_core.delta.filters import PushedFilters
from qbeast_core.delta.index import BlockArrays
from qbeast_core.delta.metadata import name_in_files
from qbeast_core.delta.stored_statistics import parse_statistics
from qbeast_core.locate.open_table import OpenTable
from qbeast_core.model.weight import fraction_of_weight
from qbeast_core.tree.query import may_match

_FLOATING = (FloatType, DoubleType)
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")


def min_rows(table: OpenTable, filters: PushedFilters | None, read: NDArray[np.bool_]) -> float:
    """A lower bound, from the log, for the rows that the sampled files stand for.

    It is 0 if statistics rule out a file of a cube that the filters keep, because then rows of low
    weight may be missing.

    Args:
        read: bool[files], the files that samples are taken from.
    """
    files = table.snapshot.files
    left = float(table.snapshot.row_count_in_log(_unindexed(table, read)))
    for blocks in table.index.block_arrays:
        kept = np.ones(len(blocks.file), dtype=np.bool_)
        if filters is not None:
            kept = may_match(filters.predicate, blocks.revision, *blocks.corners)
        if not read[blocks.file[kept]].all():
            return 0.0
        written = _rows_written(table, blocks)
        of_cubes = np.bincount(blocks.file, blocks.rows * kept, len(files))
        for i in np.flatnonzero(of_cubes).tolist():
            # Deleted rows may all be in these cubes.
            left += max(of_cubes[i] - (written[i] - (files[i].rows or 0)), 0.0)
    return left


def estimated_rows_below(table: OpenTable, limit: int, files: NDArray[np.bool_]) -> float:
    """The approximate number of rows with a weight below the limit in some files.

    Where the log only has a range of weights around the limit, they count as uniform in it.

    Args:
        files: bool[files], the files to count in.
    """
    unindexed = _unindexed(table, files)
    found = table.snapshot.row_count_in_log(unindexed) * fraction_of_weight(limit)
    for blocks in table.index.block_arrays:
        # Which rows of a block are deleted is unknown.
        live = _live_share(table, blocks)
        found += (live * _rows_below(blocks, limit))[files[blocks.file]].sum()
    return float(found)


def max_rows_above(
    table: OpenTable, limit: int, filters: PushedFilters | None, files: NDArray[np.bool_]
) -> float:
    """The most rows with a weight at or above the limit that can pass the filters.

    Infinity if the log does not have the number of rows of one of these files.

    Args:
        files: bool[files], the files that can contain rows that pass the filters.
    """
    rows = [table.snapshot.files[i].rows for i in _unindexed(table, files).tolist()]
    found = float(sum(np.inf if each is None else each for each in rows))
    for blocks in table.index.block_arrays:
        counts = files[blocks.file] & (blocks.max_weight >= limit)
        if filters is not None:
            counts &= may_match(filters.predicate, blocks.revision, *blocks.corners)
        found += float(blocks.rows[counts].sum())
    return found


def column_extremes(
    table: OpenTable, files: NDArray[np.bool_], name: str
) -> tuple[float, float] | None:
    """The smallest and largest value of a column in some files, from Delta's statistics.

    Args:
        files: bool[files], the files to consider.

    Returns:
        Infinite if a file has NaN or infinities. None if the column is not numeric, or a file has
        values without statistics.
    """
    fields = [field for field in table.snapshot.schema.fields if field.name.lower() == name.lower()]
    if len(fields) != 1 or not isinstance(fields[0].dataType, NumericType):
        return None
    stored, is_floating = name_in_files(fields[0]), isinstance(fields[0].dataType, _FLOATING)
    ends: list[float] = []
    for i in np.flatnonzero(files).tolist():
        stats = parse_statistics(table.snapshot.files[i].stats)
        low, high = (stats.get(key, {}).get(stored) for key in ("minValues", "maxValues"))
        nulls = stats.get("nullCount", {}).get(stored)
        if _is_finite(low) and _is_finite(high):
            ends += [float(low), float(high)]
        elif nulls is None or nulls != stats.get("numRecords"):
            # Footers leave out the extremes of a column that has NaN.
            left_out = is_floating and nulls is not None and low is None and high is None
            if not left_out and low not in _NOT_FINITE and high not in _NOT_FINITE:
                return None
            ends += [-math.inf, math.inf]
    return (min(ends), max(ends)) if ends else None


def null_share(table: OpenTable, files: NDArray[np.bool_], name: str) -> float:
    """The share of the rows of some files that are null in a column, as far as the log says.

    Args:
        files: bool[files], the files to consider.
    """
    fields = [field for field in table.snapshot.schema.fields if field.name == name]
    nulls = rows = 0
    for i in np.flatnonzero(files).tolist():
        stats = parse_statistics(table.snapshot.files[i].stats)
        found = stats.get("nullCount", {}).get(name_in_files(fields[0])) if fields else None
        nulls += found if type(found) is int else 0
        rows += table.snapshot.files[i].stored_row_count or 0
    return nulls / rows if rows else 0.0


def _unindexed(table: OpenTable, files: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The indices of those of some files that are not indexed; `files` is bool[files]."""
    return table.index.unindexed[files[table.index.unindexed]]


def _live_share(table: OpenTable, blocks: BlockArrays) -> NDArray[np.float64]:
    """The share of the rows of each block's file that is not deleted, float64[blocks]."""
    deleted = np.array([file.deleted_rows for file in table.snapshot.files], dtype=np.float64)
    written = np.maximum(_rows_written(table, blocks), 1.0)
    share: NDArray[np.float64] = 1.0 - (deleted / written)[blocks.file]
    return share


def _rows_written(table: OpenTable, blocks: BlockArrays) -> NDArray[np.float64]:
    """The number of rows of these blocks in each file, with deleted ones, float64[files]."""
    return np.bincount(blocks.file, blocks.rows, len(table.snapshot.files)).astype(np.float64)


def _rows_below(blocks: BlockArrays, limit: int) -> NDArray[np.float64]:
    """About how many rows of each block have a weight below the limit, float64[blocks]."""
    # One row has the lowest weight, the others any weight from there to the highest.
    width = np.maximum(blocks.max_weight - blocks.min_weight + 1, 1)
    share = np.clip((limit - blocks.min_weight) / width, 0.0, 1.0)
    return np.where(blocks.min_weight < limit, 1.0 + (blocks.rows - 1) * share, 0.0)


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
