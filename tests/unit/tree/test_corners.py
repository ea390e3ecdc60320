"""The corners of many cubes at once equal the bounds of each cube."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from qbeast_core.model.cube import CubeId
from qbeast_core.tree.corners import corners
from tests.support.oracles import cube_bounds


@st.composite
def cubes(draw: st.DrawFn, dimensions: int) -> CubeId:
    depth = draw(st.one_of(st.integers(0, 12), st.integers(0, 80)))
    return CubeId(dimensions, depth, draw(st.integers(0, 2 ** (depth * dimensions) - 1)))


@given(
    st.integers(1, 9).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(cubes(dimensions=n), max_size=20))
    )
)
def test_corners_of_many_cubes_equal_the_bounds_of_each(drawn: tuple[int, list[CubeId]]) -> None:
    dimensions, found = drawn
    lower, upper = corners(found, dimensions)
    assert lower.dtype == upper.dtype == np.float64
    assert lower.shape == upper.shape == (len(found), dimensions)
    expected = cube_bounds(found, dimensions)
    assert np.array_equal(lower, expected[0]) and np.array_equal(upper, expected[1])


def test_the_last_cubes_before_and_after_the_limits_are_exact() -> None:
    for dimensions, depth in ((1, 53), (1, 54), (1, 63), (2, 31), (2, 32), (8, 7), (8, 8)):
        last = CubeId(dimensions, depth, 2 ** (depth * dimensions) - 1)
        ((lower,), (upper,)) = corners([last], dimensions)
        assert (tuple(lower), tuple(upper)) == (last.lower, last.upper)
