from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from qbeast_core.model.block import Block
from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT, weight_of_fraction
from qbeast_core.tree.assignment import Assignment
from qbeast_core.tree.build import estimate_weights
from qbeast_core.tree.otree import OTree
from qbeast_core.tree.path import PathLayout
from qbeast_core.tree.weighed_sample import WeighedSample
from tests.support.trees import random_weights


def rows_of_cubes(
    layout: PathLayout,
    weights: dict[CubeId, int],
    words: NDArray[np.int64],
    row_weights: NDArray[np.int32],
) -> dict[CubeId, int]:
    depth = Assignment.of(layout, weights).depths_of(words, row_weights)
    cubes, cube_of_row = layout.cubes_of(words, depth)
    return dict(zip(cubes, np.bincount(cube_of_row).tolist(), strict=True))


@pytest.mark.parametrize(("dimensions", "size"), [(1, 1000), (2, 5000), (3, 2000), (8, 3000)])
def test_uniform_rows_fill_inner_cubes_to_the_desired_size(dimensions: int, size: int) -> None:
    rng = np.random.default_rng(dimensions)
    layout, rows, sampled = PathLayout(dimensions), 400_000, 100_000
    words = layout.path_words(rng.random((rows, dimensions)))
    row_weights = random_weights(rows, rng)
    sample = rng.choice(rows, sampled, replace=False)
    drawn = WeighedSample(words[:, sample], row_weights[sample], rows)
    weights = estimate_weights(layout, drawn, size)
    counts = rows_of_cubes(layout, weights, words, row_weights)
    inner = [counts.get(cube, 0) for cube, weight in weights.items() if weight < MAX_WEIGHT]
    assert inner
    assert np.mean(inner) == pytest.approx(size, rel=0.1)
    assert min(inner) > size * 0.6
    assert max(counts.values()) < size * 1.7


@pytest.mark.parametrize("values", [3, 50, 1000])
@pytest.mark.parametrize("size", [2_000, 20_000])
def test_few_distinct_values_make_no_cube_much_too_large(values: int, size: int) -> None:
    """They share few weights, so a difference of weights says little about rows."""
    rng = np.random.default_rng(values + size)
    layout, rows, sampled = PathLayout(2), 1_000_000, 100_000
    points, weight_of_value = rng.random((values, 2)), random_weights(values, rng)
    value = rng.integers(0, values, rows)
    words = layout.path_words(points)[:, value]
    row_weights = weight_of_value[value]
    sample = rng.choice(rows, sampled, replace=False)
    drawn = WeighedSample(words[:, sample], row_weights[sample], rows)
    weights = estimate_weights(layout, drawn, size)
    depth = Assignment.of(layout, weights).depths_of(words, row_weights)
    cubes, cube_of_row = layout.cubes_of(words, depth)
    for i, count in enumerate(np.bincount(cube_of_row, minlength=len(cubes)).tolist()):
        if count > 2 * size:
            assert len(np.unique(value[cube_of_row == i])) == 1
    assert len(cubes) <= values + 2 * rows // size


def test_rows_that_share_weights_but_not_points_are_split_by_point() -> None:
    """As with a sample key of three customers: the weight cannot part their rows."""
    rng = np.random.default_rng(0)
    layout, rows, size = PathLayout(2), 100_000, 5_000
    words = layout.path_words(rng.random((rows, 2)))
    row_weights = np.array([-2_000_000_000, 0, 10], dtype=np.int32)[rng.integers(0, 3, rows)]
    weights = estimate_weights(layout, WeighedSample(words, row_weights, rows), size)
    counts = rows_of_cubes(layout, weights, words, row_weights)
    assert max(counts.values()) <= 1.5 * size


@pytest.mark.parametrize("dimensions", [1, 2, 5, 8])
def test_skewed_rows_end_in_bounded_time(dimensions: int) -> None:
    """Half of the rows are one point, a quarter crowds around it, some are far away."""
    rng = np.random.default_rng(dimensions)
    layout, rows, size = PathLayout(dimensions), 40_000, 100
    points = rng.random((rows, dimensions))
    points[: rows // 2] = 1 / 3
    points[rows // 2 : rows * 3 // 4] = 1 / 3 + rng.normal(0, 1e-14, (rows // 4, dimensions))
    row_weights = random_weights(rows, rng)
    row_weights[: rows // 2] = 7
    words = layout.path_words(points)
    weights = estimate_weights(layout, WeighedSample(words, row_weights, rows), size)
    depth = Assignment.of(layout, weights).depths_of(words, row_weights)
    cubes, cube_of_row = layout.cubes_of(words, depth)
    assert max(cube.depth for cube in cubes) <= layout.max_depth
    for i in np.flatnonzero(np.bincount(cube_of_row) > 2 * size).tolist():
        paths = words[:, cube_of_row == i]
        assert np.all(paths == paths[:, :1]), "only equal paths cannot be split"
    assert len(weights) < 20 * layout.max_depth * rows / size


def test_a_cube_is_split_by_the_rows_that_its_parent_leaves() -> None:
    """All rows are in one quarter. The root keeps 45 %, and the other 55 % need no split."""
    rng = np.random.default_rng(0)
    layout, rows = PathLayout(2), 100_000
    words, row_weights = layout.path_words(rng.random((rows, 2)) / 2), random_weights(rows, rng)
    weights = estimate_weights(layout, WeighedSample(words, row_weights, rows), 45_000)
    root, quarter = CubeId.root(2), CubeId(2, 1, 0)
    assert weights == {root: weight_of_fraction(0.45), quarter: MAX_WEIGHT}


def test_weights_rise_even_where_a_cube_is_next_to_nothing() -> None:
    """A row in 10^25 is less than the step from one weight to the next."""
    layout = PathLayout(1)
    words = layout.path_words(np.arange(8)[:, np.newaxis] / 8)
    row_weights = np.arange(8, dtype=np.int32)
    weights = estimate_weights(layout, WeighedSample(words, row_weights, 10**25), 1)
    assert len(weights) == 15
    assert all(weights[c] > weights[c.parent] for c in weights if c.depth)


def test_identical_rows_are_one_leaf() -> None:
    layout = PathLayout(3)
    words = layout.path_words(np.full((1000, 3), 0.7))
    row_weights = np.full(1000, 5, dtype=np.int32)
    weights = estimate_weights(layout, WeighedSample(words, row_weights, 10**9), 10)
    assert weights == {CubeId.root(3): MAX_WEIGHT}


def test_no_sample_gives_a_root_or_the_existing_tree() -> None:
    layout = PathLayout(2)
    sample = WeighedSample(np.zeros((1, 0), dtype=np.int64), np.zeros(0, dtype=np.int32), 0)
    root = CubeId.root(2)
    assert estimate_weights(layout, sample, 10) == {root: MAX_WEIGHT}
    existing = OTree.of([Block(root, MIN_WEIGHT, 4, 3)], 2)
    assert estimate_weights(layout, sample, 10, existing) == {root: 4}


def test_an_append_lowers_the_root_as_the_format_does() -> None:
    """docs/format.md 8.4: 2400 rows, then 1200 more, cubes of 120 rows."""
    rng = np.random.default_rng(3)
    layout, root = PathLayout(1), CubeId.root(1)
    words, row_weights = layout.path_words(rng.random((2400, 1))), random_weights(2400, rng)
    first = estimate_weights(layout, WeighedSample(words, row_weights, 2400), 120)
    assert first[root] == -1932735283
    counts = rows_of_cubes(layout, first, words, row_weights)
    blocks = [Block(c, MIN_WEIGHT, first.get(c, MAX_WEIGHT), n) for c, n in counts.items()]
    blocks = [Block(b.cube, b.max_weight, b.max_weight, b.element_count) for b in blocks]
    appended = WeighedSample(words[:, :1200], row_weights[:1200], 1200)
    second = estimate_weights(layout, appended, 120, OTree.of(blocks, 1))
    assert second[root] == -2004318071
