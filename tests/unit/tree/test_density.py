"""The density of rows from a tree, compared with the points that it was built from."""

from __future__ import annotations

import numpy as np
import pytest

from qbeast_core.model.block import Block
from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MAX_WEIGHT
from qbeast_core.tree.density import density_grids
from qbeast_core.tree.otree import OTree
from tests.support.trees import grown_blocks, random_weights


def test_rows_of_inner_cubes_spread_as_those_below() -> None:
    root = CubeId.root(2)
    low, *_, high = root.children()
    blocks = [
        Block(root, 0, 9, 100),
        Block(low, 10, MAX_WEIGHT, 299),
        Block(high, 10, MAX_WEIGHT, 97),
    ]
    grid = density_grids(OTree.of(blocks, 2), 1)[0, 1]
    assert grid.ravel().tolist() == pytest.approx([372, 1.24, 1.24, 121.52])


def test_a_part_without_rows_below_may_have_some_above() -> None:
    """Four rows that happen to be in one part say little of the 96 in the cube itself."""
    root = CubeId.root(2)
    first = next(root.children())
    blocks = [Block(root, 0, 9, 96), Block(first, 10, MAX_WEIGHT, 4)]
    grid = density_grids(OTree.of(blocks, 2), 1)[0, 1]
    assert grid.tolist() == [[62.5, 12.5], [12.5, 12.5]]


def test_cells_with_next_to_no_rows_are_empty() -> None:
    root = CubeId.root(1)
    blocks = [Block(root, 0, 9, 100), Block(next(root.children()), 10, MAX_WEIGHT, 100_000)]
    low, high = density_grids(OTree.of(blocks, 1), 1)[(0,)].tolist()
    assert low == pytest.approx(100_099, abs=1) and high == 0.0


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_grids_are_near_the_rows_of_a_grown_tree(dimensions: int) -> None:
    points = np.random.default_rng(5).beta(1.5, 4, (60_000, dimensions))
    blocks = list(grown_blocks(points, random_weights(len(points), 6), 300))
    grids = density_grids(OTree.of(blocks, dimensions), 2)
    assert len(grids) == {1: 1, 2: 1, 3: 3}[dimensions]
    for pair, grid in grids.items():
        axes = points[:, list(pair)]
        edges = [np.linspace(0, 1, 5)] * axes.shape[1]
        truth, _ = np.histogramdd(axes, bins=edges)
        assert grid.sum() == pytest.approx(len(points), rel=1e-3)
        assert np.abs(grid - truth).max() < 0.01 * len(points)


def test_no_rows_give_empty_grids() -> None:
    assert density_grids(OTree.of([], 2), 3)[0, 1].tolist() == np.zeros((8, 8)).tolist()


def test_cubes_below_the_finest_cells_are_added_up() -> None:
    deep = [Block(CubeId(1, 5, path), 0, MAX_WEIGHT, 3) for path in range(32)]
    assert density_grids(OTree.of(deep, 1), 1)[(0,)].tolist() == [48.0, 48.0]
