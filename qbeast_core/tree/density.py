"""How many rows lie where, for a heat map over two indexed columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from qbeast_core.model.cube import CubeId
from qbeast_core.tree.corners import corners
from qbeast_core.tree.otree import OTree

Grid = NDArray[np.float32]
"""float32[cells, cells] by the cells of the first and of the second column, or float32[cells]."""

_MIN_SHARE_OF_AVERAGE = 0.01
"""Cells below this part of the average count as empty: nothing is known of any row there."""


def density_grids(tree: OTree, grid_depth: int) -> dict[tuple[int, ...], Grid]:
    """The estimated rows in each of `2 ** grid_depth` cells, by each pair of dimensions.

    A cube with children stores an even sample of the rows in its space. So its rows are divided
    among the children as the rows below are. Inside a leaf, they count as evenly spread. A tree
    over one dimension has a single grid.
    """
    parts = list(_parts(tree))
    rows = np.array([rows for _, rows in parts], dtype=np.float64)
    depth = np.array([min(cube.depth, grid_depth) for cube, _ in parts], dtype=np.int64)
    lower, _ = corners([cube for cube, _ in parts], tree.dimensions)
    pairs: list[tuple[int, ...]] = list(itertools.combinations(range(tree.dimensions), 2))
    return {pair: _grid(lower[:, list(pair)], depth, rows, grid_depth) for pair in pairs or [(0,)]}


def _parts(tree: OTree) -> Iterator[tuple[CubeId, float]]:
    """Disjoint cubes that cover all rows, with the estimated number of rows in each.

    Each child counts as one row larger, so that a child without rows below is not taken for empty.
    """
    inside: dict[CubeId, float] = {}
    for cube in tree.cubes:
        rows = inside.pop(cube) if cube.depth else float(tree.tree_size[cube])
        if cube not in tree.inner_cubes:
            yield cube, rows
            continue
        below = {child: tree.tree_size.get(child, 0) for child in cube.children()}
        counted = sum(below.values()) + len(below)
        for child, count in below.items():
            share = rows * (count + 1) / counted
            if child in tree.tree_size:
                inside[child] = share
            else:
                yield child, share


def _grid(
    lower: NDArray[np.float64], depth: NDArray[np.int64], rows: NDArray[np.float64], finest: int
) -> Grid:
    """Add the rows of each cube to the grid of its depth, spread evenly over finer grids."""
    axes = lower.shape[1]
    total = np.zeros((1,) * axes)
    for level in range(finest + 1):
        if level:
            for axis in range(axes):
                total = np.repeat(total, 2, axis=axis) / 2
        own = depth == level
        cells = np.minimum(lower[own] * (1 << level), (1 << level) - 1).astype(np.int64)
        np.add.at(total, tuple(cells.T), rows[own])
    total[total < total.mean() * _MIN_SHARE_OF_AVERAGE] = 0.0
    return total.astype(np.float32)
