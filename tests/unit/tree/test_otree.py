from __future__ import annotations

from qbeast_core.model.block import Block
from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT
from qbeast_core.tree.otree import OTree


def cube(text: str) -> CubeId:
    return CubeId.parse(text, 2)


def test_blocks_of_a_cube_are_summed_up() -> None:
    tree = OTree.of([Block(cube(""), -9, 5, 3), Block(cube(""), -4, 2, 4)], 2)
    assert tree.max_weight == {cube(""): 2}
    assert tree.min_weight == {cube(""): -9}
    assert tree.element_count == {cube(""): 7}


def test_a_block_without_rows_still_lowers_the_weight() -> None:
    tree = OTree.of([Block(cube(""), -9, 5, 3), Block(cube(""), 1, 1, 0)], 2)
    assert tree.weights == {cube(""): 1}


def test_domains_share_out_the_parents_rows() -> None:
    blocks = [
        Block(cube(""), -100, -50, 10),
        Block(cube("A"), -40, 0, 20),
        Block(cube("g"), -40, MAX_WEIGHT, 30),
        Block(cube("Aw"), 10, MAX_WEIGHT, 40),
    ]
    tree = OTree.of(blocks, 2)
    assert tree.tree_size == {cube(""): 100, cube("A"): 60, cube("g"): 30, cube("Aw"): 40}
    assert tree.domains[cube("")] == 100.0
    assert tree.domains[cube("A")] == 100.0 * (60 / 90)
    assert tree.domains[cube("Aw")] == tree.domains[cube("A")]
    assert tree.inner_cubes == {cube(""), cube("A")}


def test_missing_cubes_count_as_empty() -> None:
    """qbeast-spark fails on these: a root, a parent and a level are missing."""
    tree = OTree.of([Block(cube("AAA"), 7, MAX_WEIGHT, 5), Block(cube("w"), 3, MAX_WEIGHT, 15)], 2)
    assert [c.text for c in tree.cubes] == ["", "A", "w", "AA", "AAA"]
    assert tree.tree_size[cube("")] == 20
    assert tree.domains[cube("AA")] == 5.0
    assert tree.weights[cube("")] == 2
    assert tree.weights[cube("AA")] == 6


def test_a_cubes_weight_stays_below_the_rows_of_its_children() -> None:
    """As after another writer's DELETE took the root's newest block: its weight rose."""
    blocks = [Block(cube(""), MIN_WEIGHT, 500, 9), Block(cube("A"), 100, MAX_WEIGHT, 5)]
    assert OTree.of(blocks, 2).weights == {cube(""): 99, cube("A"): MAX_WEIGHT}
    lowest = [Block(cube(""), 0, 500, 9), Block(cube("A"), MIN_WEIGHT, MAX_WEIGHT, 5)]
    assert OTree.of(lowest, 2).weights[cube("")] == MIN_WEIGHT


def test_an_empty_tree_has_no_cubes() -> None:
    tree = OTree.of([], 2)
    assert (tree.cubes, tree.tree_size, tree.domains, tree.weights) == ((), {}, {}, {})
