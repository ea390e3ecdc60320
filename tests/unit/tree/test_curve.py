"""The order of rows inside of a file."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from qbeast_core.tree.curve import CELL_ROWS, HilbertCurve, separating_levels
from qbeast_core.tree.path import PathLayout


def curve_of(dimensions: int) -> HilbertCurve:
    curve = HilbertCurve.of(dimensions)
    assert curve is not None
    return curve


def all_cells(dimensions: int, levels: int) -> np.ndarray:
    """int64[dimensions, cells]."""
    return np.array(list(itertools.product(range(1 << levels), repeat=dimensions))).T


@pytest.mark.parametrize(("dimensions", "levels"), [(2, 4), (2, 8), (3, 2), (3, 4), (4, 2), (4, 4)])
def test_the_curve_visits_each_cell_once_and_moves_to_a_neighbour(
    dimensions: int, levels: int
) -> None:
    cells = all_cells(dimensions, levels)
    positions = curve_of(dimensions).positions(cells, levels)
    assert sorted(positions.tolist()) == list(range(cells.shape[1]))
    along = cells[:, np.argsort(positions)]
    assert np.all(np.abs(np.diff(along, axis=1)).sum(axis=0) == 1)


@pytest.mark.parametrize("dimensions", [2, 3, 4])
def test_the_cubes_of_the_tree_are_runs_of_the_curve(dimensions: int) -> None:
    curve = curve_of(dimensions)
    levels = 2 * curve.step_levels
    cells = all_cells(dimensions, levels) if dimensions < 4 else all_cells(4, 4)
    positions = curve.positions(cells, levels)
    for depth in range(levels + 1):
        cubes = positions >> dimensions * (levels - depth)
        in_cube = cells >> (levels - depth)
        assert len(np.unique(np.vstack([cubes, in_cube]), axis=1).T) == 1 << dimensions * depth


def test_deeper_levels_only_refine_the_order() -> None:
    curve, rng = curve_of(2), np.random.default_rng(3)
    cells = rng.integers(0, 1 << 16, (2, 1000))
    assert np.array_equal(curve.positions(cells, 16) >> 16, curve.positions(cells >> 8, 8))


@pytest.mark.parametrize("dimensions", [1, 5, 8])
def test_other_numbers_of_columns_have_the_order_of_paths(dimensions: int) -> None:
    assert HilbertCurve.of(dimensions) is None


def rows_met(order: np.ndarray, points: np.ndarray, side: float) -> float:
    """How many rows are in pages of 1000 rows that a box of this side meets, on average."""
    page = 1000
    rng = np.random.default_rng(5)
    sorted_points = points[np.argsort(order)]
    first = np.arange(0, len(points), page)
    low, high = (bound.reduceat(sorted_points, first) for bound in (np.minimum, np.maximum))
    met = 0
    boxes = 200
    for corner in rng.random((boxes, points.shape[1])) * (1 - side):
        met += np.count_nonzero(np.all((low <= corner + side) & (high >= corner), axis=1)) * page
    return met / boxes


@pytest.mark.parametrize(("dimensions", "side", "saved"), [(2, 0.03, 0.2), (3, 0.1, 0.2)])
def test_a_small_range_meets_fewer_pages_than_in_the_order_of_paths(
    dimensions: int, side: float, saved: float
) -> None:
    points = np.random.default_rng(4).random((200_000, dimensions))
    levels = 2 * curve_of(dimensions).step_levels
    cells = np.floor(points.T * (1 << levels)).astype(np.int64)
    by_curve = curve_of(dimensions).positions(cells, levels)
    by_path = PathLayout(dimensions).path_words(points)[0]
    assert rows_met(by_curve, points, side) < (1 - saved) * rows_met(by_path, points, side)


@pytest.mark.parametrize("dimensions", [1, 2, 3, 5])
@pytest.mark.parametrize("scale", [1.0, 150.0, 9000.0])
def test_levels_that_part_leave_few_rows_in_a_cell(dimensions: int, scale: float) -> None:
    layout = PathLayout(dimensions)
    words = layout.path_words(np.random.default_rng(6).random((30_000, dimensions)))
    levels = separating_levels(layout, words, scale)
    rows_of_a_cell = 30_000 * scale / 2 ** (dimensions * levels)
    assert rows_of_a_cell <= CELL_ROWS
    # Not many levels too far: two for cells that chance fills unevenly, and their rounding.
    assert rows_of_a_cell > CELL_ROWS / 2 ** (2 * dimensions + 3)


def test_rows_close_together_take_more_levels_and_equal_ones_hardly_any() -> None:
    layout, rng = PathLayout(2), np.random.default_rng(8)
    spread = rng.random((20_000, 2))
    close = 0.3 + rng.random((5_000, 2)) * 1e-5
    equal = np.full((5_000, 2), 0.3)
    without, with_equal, with_close = (
        separating_levels(layout, layout.path_words(np.vstack([spread, more])), scale=100.0)
        for more in (spread[:0], equal, close)
    )
    assert without <= with_equal <= without + 2
    # Their square is 2^-16.6 wide.
    assert with_close >= 16 + 5


def test_no_more_levels_than_the_first_word_has() -> None:
    layout = PathLayout(2)
    words = np.arange(40_000, dtype=np.int64)[np.newaxis]
    assert separating_levels(layout, words, scale=1e9) == layout.first_levels
    assert separating_levels(layout, words[:, :1], scale=1.0) == 1
