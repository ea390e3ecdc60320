"""Rows that share few weights and lie close together: an optimize leaves nothing to do.

The tree cannot spread all of them, so their cubes stay crowded.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT
from qbeast_core.tree.anchors import violations
from qbeast_core.tree.path import PathLayout
from tests.support.written_rows import Rows, WrittenRows

CUBE_SIZE = 50


@st.composite
def shapes(draw: st.DrawFn) -> tuple[PathLayout, list[int], float, float]:
    """A layout, the weights of rows, the width of their range and the share at one place."""
    lowest = draw(st.integers(MIN_WEIGHT, MAX_WEIGHT - 100))
    adjacent = st.integers(1, 8).map(lambda count: [lowest + i for i in range(count)])
    anywhere = st.lists(st.integers(MIN_WEIGHT, MAX_WEIGHT), min_size=1, max_size=30)
    return (
        PathLayout(draw(st.integers(1, 3))),
        draw(st.one_of(adjacent, anywhere)),
        draw(st.sampled_from([1.0, 1e-6, 3.4e-7, 1e-8, 1e-9, 1e-12])),
        draw(st.sampled_from([0.0, 0.5])),
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("keys", [5, 50])
def test_few_weights_in_a_small_part_of_the_range(keys: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = WrittenRows(PathLayout(1), CUBE_SIZE)
    places = rng.random((keys * 4 * CUBE_SIZE, 1)) * 1e-9
    places[0] = 1.0
    weights = rng.choice(rng.integers(MIN_WEIGHT, MAX_WEIGHT, keys), len(places))
    table.append(Rows(table.layout.path_words(places), weights.astype(np.int32)))
    table.optimize()
    assert table.candidates() == []


@pytest.mark.parametrize("seed", range(6))
def test_most_rows_of_a_cube_at_one_place(seed: int) -> None:
    """The sample misses the others, so the cube is not split."""
    rng = np.random.default_rng(seed)
    table = WrittenRows(PathLayout(1), CUBE_SIZE, 1, most_sampled=1000)
    places = 0.25 + rng.random((6000, 1)) * 1e-9
    places[rng.random(6000) < 0.5] = 0.25
    weights = rng.choice(rng.integers(MIN_WEIGHT, MAX_WEIGHT, 4), len(places))
    table.append(Rows(table.layout.path_words(places), weights.astype(np.int32)))
    table.optimize()
    assert table.candidates() == []


@given(shapes(), st.data())
@settings(max_examples=60)
def test_a_second_optimize_writes_nothing(
    shape: tuple[PathLayout, list[int], float, float], data: st.DataObject
) -> None:
    layout, weights, width, at_one_place = shape
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    most_sampled = data.draw(st.sampled_from([None, 128 * 20]))
    table = WrittenRows(layout, CUBE_SIZE, data.draw(st.sampled_from([1, CUBE_SIZE])), most_sampled)

    def some_rows(count: int) -> Rows:
        points = 0.25 + rng.random((count, layout.dimensions)) * width * 0.75
        points[rng.random(count) < at_one_place] = 0.25
        points[0] = 1.0
        return Rows(layout.path_words(points), rng.choice(weights, count).astype(np.int32))

    for rows in [data.draw(st.integers(1, 3000)), *data.draw(st.lists(st.integers(1, 400)))]:
        table.append(some_rows(rows))
        if data.draw(st.integers(0, 3)) == 0:
            table.optimize(8)
    total = table.rows()
    table.optimize(8)
    assert table.candidates() == []
    assert table.rows() == total
    assert violations(table.blocks()) == []
