from __future__ import annotations

import math

import numpy as np
import pytest

from qbeast_core.model.cube import CubeId
from qbeast_core.tree.path import PathLayout
from tests.support.oracles import cube_containing


@pytest.mark.parametrize(
    ("dimensions", "levels_per_word", "words", "max_depth"),
    [(1, 62, 1, 50), (2, 31, 1, 31), (3, 20, 2, 40), (4, 15, 2, 30), (8, 7, 4, 28)],
)
def test_enough_levels_in_every_number_of_dimensions(
    dimensions: int, levels_per_word: int, words: int, max_depth: int
) -> None:
    layout = PathLayout(dimensions)
    assert layout.levels_per_word == levels_per_word
    assert (layout.words, layout.max_depth) == (words, max_depth)


@pytest.mark.parametrize("dimensions", range(1, 9))
def test_paths_name_the_cubes_that_contain_the_point(dimensions: int) -> None:
    layout = PathLayout(dimensions)
    points = np.random.default_rng(dimensions).random((20, dimensions))
    points[0], points[1] = 0.0, 1.0
    words = layout.path_words(points)
    assert words.shape == (layout.words, 20)
    assert words.dtype == np.int64
    assert words.min() >= 0
    for i, point in enumerate(points.tolist()):
        for depth in range(layout.max_depth + 1):
            assert layout.cube_of(words[:, i], depth) == cube_containing(point, depth)


def test_strange_coordinates_are_clamped() -> None:
    strange = np.array([[math.nan], [math.inf], [1.5], [-math.inf], [-0.5], [-0.0]])
    sane = np.array([[1.0], [1.0], [1.0], [0.0], [0.0], [0.0]])
    layout = PathLayout(1)
    assert np.array_equal(layout.path_words(strange), layout.path_words(sane))


@pytest.mark.parametrize("dimensions", range(1, 9))
def test_a_cube_is_the_interval_of_its_paths(dimensions: int) -> None:
    layout = PathLayout(dimensions)
    points = np.random.default_rng(dimensions).random((200, dimensions)) * 0.25
    words = layout.path_words(points)
    for depth in (0, 1, 3, layout.max_depth):
        cube = cube_containing(points[0].tolist(), depth)
        first, last = layout.cube_interval(cube)
        for i in range(200):
            inside = first <= tuple(words[:, i].tolist()) <= last
            assert inside == (layout.cube_of(words[:, i], depth) == cube)


def test_a_cube_too_deep_for_paths_is_cut() -> None:
    layout = PathLayout(2)
    deep = CubeId(2, 40, (1 << 80) - 1)
    assert layout.cube_interval(deep) == layout.cube_interval(CubeId(2, 31, (1 << 62) - 1))


def test_no_dimensions_are_refused() -> None:
    with pytest.raises(ValueError, match="0"):
        PathLayout(0)
    with pytest.raises(ValueError, match="3 coordinates in 2"):
        PathLayout(2).path_words(np.zeros((1, 3)))
