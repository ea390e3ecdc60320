"""Building and rolling up: bounds that hold for any data."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from qbeast_core.model.block import Block
from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT
from qbeast_core.tree.assignment import Assignment
from qbeast_core.tree.build import estimate_weights
from qbeast_core.tree.otree import OTree
from qbeast_core.tree.path import PathLayout
from qbeast_core.tree.weighed_sample import WeighedSample


@st.composite
def data_sets(draw: st.DrawFn, dimensions: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (spread, clustered or few) and weights, of equal points or not."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = draw(st.integers(1, 400))
    points = rng.random((rows, dimensions))
    shape = draw(st.sampled_from(["spread", "cluster", "few"]))
    if shape == "cluster":
        points = 0.4 + points * 1e-9
    if shape == "few":
        points = points[rng.integers(0, min(rows, draw(st.integers(1, 6))), rows)]
    if draw(st.booleans()):
        row_weights = rng.integers(MIN_WEIGHT, MAX_WEIGHT, rows, endpoint=True)
    else:
        by_point = np.unique(points, axis=0, return_inverse=True)[1].reshape(-1)
        row_weights = rng.integers(MIN_WEIGHT, MAX_WEIGHT, rows, endpoint=True)[by_point]
    return PathLayout(dimensions).path_words(points), row_weights.astype(np.int32)


def blocks_of(
    layout: PathLayout, weights: dict[CubeId, int], words: np.ndarray, row_weights: np.ndarray
) -> list[Block]:
    """What a write with these weights would record."""
    depth = Assignment.of(layout, weights).depths_of(words, row_weights)
    cubes, cube_of_row = layout.cubes_of(words, depth)
    return [
        Block(
            cube,
            int(row_weights[cube_of_row == i].min()),
            weights.get(cube, MAX_WEIGHT),
            int((cube_of_row == i).sum()),
        )
        for i, cube in enumerate(cubes)
    ]


@given(st.data())
@settings(max_examples=120)
def test_weights_rise_along_paths_and_appends_never_raise_one(data: st.DataObject) -> None:
    dimensions = data.draw(st.integers(1, 8))
    layout = PathLayout(dimensions)
    size = data.draw(st.integers(1, 200))
    blocks: list[Block] = []
    for _ in range(data.draw(st.integers(1, 3))):
        words, row_weights = data.draw(data_sets(dimensions))
        scale = data.draw(st.sampled_from([1, 3, 1000]))
        tree = OTree.of(blocks, dimensions)
        sample = WeighedSample(words, row_weights, scale * len(row_weights))
        weights = estimate_weights(layout, sample, size, tree if blocks else None)
        for cube, weight in weights.items():
            assert weight <= tree.weights.get(cube, MAX_WEIGHT)
            assert weight <= tree.max_weight.get(cube, MAX_WEIGHT)
            if cube.depth and not blocks:
                assert weight > weights[cube.parent]
        blocks += blocks_of(layout, weights, words, row_weights)


@given(st.data())
@settings(max_examples=60)
def test_no_row_is_placed_above_a_block_with_a_lower_weight(data: st.DataObject) -> None:
    """By the write's own weights, what is below a cube is above its weight (docs/format.md 8.3)."""
    dimensions = data.draw(st.integers(1, 4))
    layout = PathLayout(dimensions)
    words, row_weights = data.draw(data_sets(dimensions))
    size = data.draw(st.integers(1, 50))
    sample = WeighedSample(words, row_weights, len(row_weights))
    weights = estimate_weights(layout, sample, size)
    for block in blocks_of(layout, weights, words, row_weights):
        assert all(weights[around] < block.min_weight for around in block.cube.ancestors())
