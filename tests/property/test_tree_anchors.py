"""Whatever is written or dropped, anchors keep the tree walkable (docs/format.md 8.3)."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from qbeast_core.model.block import Block
from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT
from qbeast_core.tree.anchors import missing_anchors, violations
from qbeast_core.tree.otree import OTree


@st.composite
def blocks(draw: st.DrawFn) -> list[Block]:
    drawn = []
    for _ in range(draw(st.integers(0, 15))):
        depth = draw(st.integers(0, 4))
        cube = CubeId(2, depth, draw(st.integers(0, (1 << 2 * depth) - 1)))
        low = draw(st.integers(MIN_WEIGHT + 5, MAX_WEIGHT) | st.integers(0, 9))
        high = draw(st.integers(low, MAX_WEIGHT) | st.just(MAX_WEIGHT))
        drawn.append(Block(cube, low, high, draw(st.integers(0, 5))))
    return drawn


def walkable(live: list[Block]) -> bool:
    """The invariant, word by word."""
    weight = OTree.of(live, 2).max_weight
    return all(
        weight[around] < block.min_weight
        for block in live
        for around in block.cube.ancestors()
        if around in weight
    )


@given(blocks(), blocks())
@settings(max_examples=300)
def test_anchors_make_any_tree_walkable(live: list[Block], before: list[Block]) -> None:
    anchors = missing_anchors(live, OTree.of(before, 2).weights)
    assert all(anchor.element_count == 0 for anchor in anchors)
    assert walkable(live + anchors)
    assert violations(live + anchors) == []
    assert (violations(live) == []) == walkable(live)


@given(blocks())
@settings(max_examples=150)
def test_the_weights_of_a_tree_allow_writing_without_breaking_it(live: list[Block]) -> None:
    """A row in any cube up to its weight, recorded with that weight, hides nothing below it."""
    sound = [*live, *missing_anchors(live, OTree.of(live, 2).weights)]
    weights = OTree.of(sound, 2).weights
    for cube, weight in weights.items():
        around = max((weights[c] for c in cube.ancestors()), default=MIN_WEIGHT)
        if weight > around:
            assert walkable([*sound, Block(cube, weight, weight, 1)])
