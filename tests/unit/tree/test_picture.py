"""The cubes as they are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from qbeast_core.model.block import Block
from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT, weight_of_fraction
from qbeast_core.tree.metrics import FileBlocks
from qbeast_core.tree.otree import OTree
from qbeast_core.tree.picture import TreePicture, tree_picture
from tests.support.trees import grown_blocks, in_files, random_weights


def picture_of(files: list[FileBlocks], dimensions: int, **options: int) -> TreePicture:
    tree = OTree.of([block for file in files for block in file.blocks], dimensions)
    return tree_picture(files, tree, **options)


def test_only_the_largest_cubes_are_drawn_and_none_without_its_parents() -> None:
    listed = [
        FileBlocks(1, tuple(Block(CubeId(1, depth, 0), 0, MAX_WEIGHT, 1) for depth in range(1, 40)))
    ]
    picture = picture_of(listed, 1, max_drawn_cubes=10)
    assert [cube.cube.depth for cube in picture.cubes] == list(range(10))
    assert picture.left_out == 30
    assert (picture.cubes[0].rows, picture.cubes[0].rows_below) == (0, 39)
    assert sum(level.cubes for level in picture.levels) == 39


def test_cubes_are_side_by_side_inside_their_parents() -> None:
    points = np.random.default_rng(1).beta(2, 5, (20_000, 2))
    files = in_files(list(grown_blocks(points, random_weights(20_000, 2), 200)), 3)
    picture = picture_of(files, 2)
    of = {cube.cube: cube for cube in picture.cubes}
    assert picture.left_out == 0
    assert (of[CubeId.root(2)].begins, of[CubeId.root(2)].share) == (0.0, 1.0)
    for cube, drawn in of.items():
        children = [of[child] for child in cube.children() if child in of]
        end = drawn.begins
        for child in children:
            assert child.begins == pytest.approx(end)
            assert child.lowest > drawn.weight
            end += child.share
        if children:
            assert end == pytest.approx(drawn.begins + drawn.share)


def test_blocks_and_files_of_a_cube_are_counted() -> None:
    root = CubeId.root(1)
    first = Block(root, MIN_WEIGHT, weight_of_fraction(0.5), 10)
    files = [FileBlocks(1, (first, first)), FileBlocks(1, (first,))]
    (cube,) = picture_of(files, 1).cubes
    assert (cube.blocks, cube.files, cube.rows) == (3, 2, 30)
    assert (cube.lowest, cube.weight) == (0.0, pytest.approx(0.5))


def test_levels_sum_up_the_cubes_with_rows() -> None:
    root = CubeId.root(1)
    low, high = root.children()
    half = weight_of_fraction(0.5)
    files = [
        FileBlocks(1, (Block(root, MIN_WEIGHT, half, 0), Block(low, half + 1, MAX_WEIGHT, 10))),
        FileBlocks(1, (Block(high, half + 5, MAX_WEIGHT, 30),)),
    ]
    (level,) = picture_of(files, 1).levels
    assert (level.depth, level.cubes, level.rows, level.median_rows) == (1, 2, 40, 20)
    assert level.lowest == pytest.approx(0.5)
