"""Which files a query reads, for each position of the index page's sliders.

The page answers from arrays, without Spark: for each cube and file, how many of the bounds of each
slider it passes. `tree.query` finds them, which also chooses the files of queries. The bounds of a
slider are in ascending order, so their number is enough.

A file is read if one of its *entries* is: a cube of it, with the lowest weight of its rows there.
Entries that every slider position treats the same are merged, so the positions bound their number,
not the cubes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbeast_core.model.block import Block
from qbeast_core.model.cube import CubeId
from qbeast_core.model.revision import Revision
from qbeast_core.tree.corners import corners
from qbeast_core.tree.extremes import Extremes
from qbeast_core.tree.query import Comparison, may_match
from qbeast_core.tree.steps import Bound, ColumnSteps

OTHER_REVISION = 255
"""In place of a depth: an entry whose cube belongs to another tree than the one drawn."""


@dataclass(frozen=True)
class ReadableFile:
    """A file of the table, whatever revision it belongs to."""

    size_bytes: int
    rows: int | None
    """None where the log does not say."""
    revision: Revision | None
    """None for a file that the index does not describe; every query that it may match reads it."""
    blocks: tuple[Block, ...]
    extremes: tuple[Extremes, ...]
    """Of the indexed columns."""


@dataclass(frozen=True)
class Readings:
    """A choice of steps `i` to `j` of a column *passes* if `i <= last_from` and `j >= first_to`.

    A file without an index passes by its statistics alone. Any other file passes if one of its
    entries passes in every column and has a weight below the fraction's. If more than one file is
    left and some range is chosen, the statistics of the files decide in addition.
    """

    size_bytes: NDArray[np.float64]
    """float64[files]"""
    rows: NDArray[np.float64]
    """float64[files]; -1 where the log does not say."""
    is_indexed: NDArray[np.uint8]
    """uint8[files]"""
    entries: NDArray[np.uint32]
    """uint32[files]: how many entries each file has. They follow the order of the files."""
    file_last_from: NDArray[np.uint8]
    """uint8[files, columns], by Delta's statistics; so is the next one."""
    file_first_to: NDArray[np.uint8]
    weight: NDArray[np.int32]
    """int32[entries]: the lowest of the rows' weights."""
    entry_rows: NDArray[np.float32]
    """float32[entries]"""
    depth: NDArray[np.uint8]
    """uint8[entries]: of the smallest cell that contains the cube, or `OTHER_REVISION`."""
    cell: NDArray[np.uint8]
    """uint8[entries, columns]: where that cell begins, in cells of the finest grid."""
    last_from: NDArray[np.uint8]
    """uint8[entries, columns], by the index; so is the next one."""
    first_to: NDArray[np.uint8]


def readings(
    files: Sequence[ReadableFile], drawn: Revision, steps: Sequence[ColumnSteps], grid_depth: int
) -> Readings:
    """The readings of files over steps of the indexed columns.

    Args:
        drawn: the revision whose cubes have a place in the grid.
        grid_depth: the grid has `2 ** grid_depth` cells in each dimension.
    """
    owners: list[int] = []
    blocks: list[Block] = []
    revisions: dict[int, Revision] = {}
    ids: list[int] = []
    for number, file in enumerate(files):
        if file.revision is None:
            continue
        revisions[file.revision.revision_id] = file.revision
        # A block without rows only records a weight, so there is nothing to read.
        filled = [block for block in file.blocks if block.element_count]
        owners += [number] * len(filled)
        ids += [file.revision.revision_id] * len(filled)
        blocks += filled
    owner, revision_id = np.array(owners, dtype=np.int64), np.array(ids, dtype=np.int64)
    shape = (len(blocks), len(steps))
    last_from, first_to = np.zeros(shape, dtype=np.uint8), np.zeros(shape, dtype=np.uint8)
    depth, cell = np.full(len(blocks), OTHER_REVISION, dtype=np.uint8), np.zeros_like(last_from)
    for id_, revision in revisions.items():
        own = np.flatnonzero(revision_id == id_)
        cubes = [blocks[i].cube for i in own.tolist()]
        last_from[own], first_to[own] = cube_readings(cubes, revision, steps)
        if id_ == drawn.revision_id:
            depth[own] = [min(cube.depth, grid_depth) for cube in cubes]
            lower, _ = corners(cubes, revision.dimensions)
            cell[own] = np.minimum(lower * (1 << grid_depth), (1 << grid_depth) - 1)
    joined, of_joined = _distinct(owner, depth, cell, last_from, first_to)
    weight = np.full(len(joined), np.iinfo(np.int32).max, dtype=np.int32)
    block_weights = np.array([block.min_weight for block in blocks], dtype=np.int32)
    np.minimum.at(weight, of_joined, block_weights)
    rows = np.array([block.element_count for block in blocks], dtype=np.float64)
    by_statistics = [_passed_statistics(file, steps) for file in files]
    statistics = np.array(by_statistics, dtype=np.uint8).reshape(len(files), 2, len(steps))
    return Readings(
        size_bytes=np.array([file.size_bytes for file in files], dtype=np.float64),
        rows=np.array([-1 if file.rows is None else file.rows for file in files], dtype=np.float64),
        is_indexed=np.array([file.revision is not None for file in files], dtype=np.uint8),
        entries=np.bincount(owner[joined], minlength=len(files)).astype(np.uint32),
        file_last_from=statistics[:, 0],
        file_first_to=statistics[:, 1],
        weight=weight,
        entry_rows=np.bincount(of_joined, rows, len(joined)).astype(np.float32),
        depth=depth[joined],
        cell=cell[joined],
        last_from=last_from[joined],
        first_to=first_to[joined],
    )


def cube_readings(
    cubes: Sequence[CubeId], revision: Revision, steps: Sequence[ColumnSteps]
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """`last_from` and `first_to` of the cubes of a revision, uint8[cubes, columns] each."""
    shape = (len(cubes), len(steps))
    last_from, first_to = np.zeros(shape, dtype=np.uint8), np.zeros(shape, dtype=np.uint8)
    lower, upper = corners(cubes, revision.dimensions)
    for column, of in enumerate(steps):
        if of.column not in revision.columns:
            last_from[:, column] = len(of.lower)
            continue
        dimension = revision.columns.index(of.column)
        passed = _passed_bounds(revision, of, lower[:, dimension], upper[:, dimension])
        last_from[:, column], first_to[:, column] = passed
    return last_from, first_to


def _passed_bounds(
    revision: Revision,
    steps: ColumnSteps,
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each cube: the last lower and the first upper step whose range overlaps the cube."""
    dimension = revision.columns.index(steps.column)
    # Few cubes have different ends in one dimension.
    ends, of_cube = np.unique(np.stack([lower, upper], axis=1), axis=0, return_inverse=True)
    corners = np.zeros((2, len(ends), revision.dimensions))
    corners[1] = 1.0
    corners[:, :, dimension] = ends.T

    def passing(op: Any, bounds: Sequence[Bound]) -> NDArray[np.int64]:
        passed = np.zeros(len(ends), dtype=np.int64)
        for bound in bounds:
            condition = Comparison(steps.column, op, bound.value)
            passed += may_match(condition, revision, *corners)
        return passed[of_cube.reshape(-1)]

    return (
        passing(">=", steps.lower),
        len(steps.upper) - passing(steps.upper_op, steps.upper),
    )


def _passed_statistics(
    file: ReadableFile, steps: Sequence[ColumnSteps]
) -> tuple[list[int], list[int]]:
    """The same for a file, from the statistics of its columns, by which Delta skips files."""
    last_from, first_to = [], []
    for of, known in zip(steps, file.extremes, strict=True):
        lower, upper = [b.value for b in of.lower], [b.value for b in of.upper]
        begins, ends = len(lower), 0
        if known.only_nulls:
            begins, ends = 0, len(upper)
        if known.maximum is not None:
            begins = bisect_right(lower, known.maximum)
        if known.minimum is not None:
            find = bisect_left if of.upper_op == "<=" else bisect_right
            ends = find(upper, known.minimum)
        last_from.append(begins)
        first_to.append(ends)
    return last_from, first_to


def _distinct(
    owner: NDArray[np.int64], *parts: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One block for each entry, in the order of the files, and the entry of each block."""
    table = np.column_stack([owner, *parts])
    _, first, of_block = np.unique(table, axis=0, return_index=True, return_inverse=True)
    return first, of_block.reshape(-1)
