from __future__ import annotations

from qbeast_core.model.block import Block
from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT
from qbeast_core.tree.anchors import missing_anchors, violations


def block(text: str, min_weight: int, max_weight: int = MAX_WEIGHT, rows: int = 10) -> Block:
    return Block(CubeId.parse(text, 2), min_weight, max_weight, rows)


def weights(**of_cube: int) -> dict[CubeId, int]:
    return {CubeId.parse("" if k == "root" else k, 2): v for k, v in of_cube.items()}


def test_a_sound_tree_needs_nothing() -> None:
    live = [block("", -90, 0), block("A", 1, 50), block("AA", 51)]
    assert missing_anchors(live, weights(root=0, A=50)) == []
    assert violations(live) == []
    assert missing_anchors([], {}) == []
    assert violations([]) == []


def test_a_weight_lowered_without_a_row_for_the_cube_is_recorded() -> None:
    live = [block("", -90, 20), block("A", 21), block("A", 15)]
    assert [(v.block, v.ancestor_weight) for v in violations(live)] == [(live[2], 20)]
    assert missing_anchors(live, weights(root=10)) == [block("", 10, 10, 0)]


def test_a_block_begins_above_the_weight_of_the_cube_around_it() -> None:
    """Rows of that very weight belong to the cube."""
    live = [block("", -90, 20), block("A", 20)]
    assert [violation.block for violation in violations(live)] == [live[1]]
    assert missing_anchors(live, weights(root=20)) == [block("", 19, 19, 0)]


def test_a_rewrite_that_drops_the_lowest_block_keeps_its_weight() -> None:
    """The root's newest block is gone, an older one has a higher weight."""
    live = [block("", -90, 20), block("A", 11)]
    assert missing_anchors(live, weights(root=10)) == [block("", 10, 10, 0)]


def test_a_vanished_cube_is_kept_while_cubes_below_remain() -> None:
    live = [block("AA", 51)]
    assert missing_anchors(live, weights(root=0, A=50)) == [
        block("", 0, 0, 0),
        block("A", 50, 50, 0),
    ]
    assert missing_anchors([block("A", 1)], weights(root=0, A=MAX_WEIGHT, g=50)) == [
        block("", 0, 0, 0)
    ]


def test_weights_that_do_not_fit_are_lowered_to_fit() -> None:
    live = [block("", -90, 60), block("AA", 51)]
    anchors = missing_anchors(live, weights(root=60, A=70))
    assert anchors == [block("", 50, 50, 0)]
    assert violations(live + anchors) == []


def test_the_lowest_weight_of_all_cannot_be_helped() -> None:
    live = [block("", -90, 60), block("A", MIN_WEIGHT)]
    assert missing_anchors(live, weights(root=60)) == []
    (violation,) = violations(live)
    assert str(violation) == (
        "the block of cube 'A' begins at weight -2147483648, but the cube '' above it "
        "reaches up to 60"
    )
