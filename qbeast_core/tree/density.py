"""How many rows lie where, for a heat map over two indexed columns."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from qbeast_core.tree.otree import OTree

Grid = NDArray[np.float32]
"""float32[cells, cells] by the cells of the first and of the second column, or float32[cells]."""


def density_grids(tree: OTree, grid_depth: int) -> dict[tuple[int, ...], Grid]:
    """The estimated rows in each of `2 ** grid_depth` cells, by each pair of dimensions.

    A cube with others below holds an even sample of the rows around them. So all rows are counted
    where the leaves are: a leaf has its share of each cube above it. Inside of a leaf, rows count
    as evenly spread. A tree over one dimension has a single grid.
    """
    leaves = [cube for cube in tree.cubes if cube not in tree.inner_cubes]
    rows = np.array([tree.domains[leaf] for leaf in leaves], dtype=np.float64)
    depth = np.array([min(leaf.depth, grid_depth) for leaf in leaves], dtype=np.int64)
    lower = np.array([leaf.lower for leaf in leaves], dtype=np.float64)
    lower = lower.reshape(len(leaves), tree.dimensions)
    pairs: list[tuple[int, ...]] = list(itertools.combinations(range(tree.dimensions), 2))
    return {
        pair: _grid(lower[:, list(pair)], depth, rows, grid_depth)
        for pair in pairs or [(0,) * min(1, tree.dimensions)]
    }


def _grid(
    lower: NDArray[np.float64], depth: NDArray[np.int64], rows: NDArray[np.float64], finest: int
) -> Grid:
    """Leaves of one depth fill cells of a grid as coarse as they are; finer grids share it out."""
    axes = lower.shape[1]
    total = np.zeros((1,) * axes)
    for level in range(finest + 1):
        if level:
            for axis in range(axes):
                total = np.repeat(total, 2, axis=axis) / 2
        own = depth == level
        cells = np.minimum(lower[own] * (1 << level), (1 << level) - 1).astype(np.int64)
        np.add.at(total, tuple(cells.T), rows[own])
    return total.astype(np.float32)
