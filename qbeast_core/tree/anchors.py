"""Blocks without rows that keep a tree walkable (docs/format.md 8.3).

Readers that walk the tree stop at a cube when the sample wanted ends below its weight, which is the
smallest `max_weight` of its blocks. So a row may only lie below cubes of a lower weight. A write
that lowers a cube's weight without a row for it, and a rewrite that drops the block with the lowest
weight, would break this; a block with that weight and no rows mends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from qbeast_core.model.block import Block
from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT
from qbeast_core.tree.otree import OTree


def missing_anchors(
    live_after: Iterable[Block], weights_before: Mapping[CubeId, int]
) -> list[Block]:
    """The blocks without rows that a commit must add to the live blocks of one revision.

    `live_after` are the blocks that will be live, `weights_before` the weights of the cubes that
    the rows were placed by (of the write, or of the tree before a rewrite). Afterwards every cube
    with live blocks has a weight below each block underneath. A cube of `weights_before` that
    would have no block at all, but blocks underneath, gets one too: appends by other writers need
    the upper levels.

    A block underneath with the lowest weight of all cannot be helped; `violations` tells of it.
    """
    blocks = list(live_after)
    if not blocks:
        return []
    tree = OTree.of(blocks, blocks[0].cube.dimensions)
    above = _highest_above(tree, weights_before)
    lowest_below: dict[CubeId, int] = {}
    anchors = []
    for cube in reversed(tree.cubes):
        below = lowest_below.get(cube, MAX_WEIGHT + 1)
        weight = min(weights_before.get(cube, MAX_WEIGHT), below - 1)
        if cube in tree.max_weight:
            needed = tree.max_weight[cube] >= below > MIN_WEIGHT
        else:
            needed = cube in weights_before and weight > above[cube]
        lowest = min(below, tree.min_weight.get(cube, MAX_WEIGHT + 1))
        if needed:
            anchors.append(Block(cube, weight, weight, 0))
            lowest = min(lowest, weight)
        if cube.depth:
            parent = cube.parent
            lowest_below[parent] = min(lowest_below.get(parent, MAX_WEIGHT + 1), lowest)
    anchors.reverse()
    return anchors


@dataclass(frozen=True)
class Violation:
    """A block that readers may not find, since a cube around it has no lower weight."""

    block: Block
    ancestor: CubeId
    ancestor_weight: int

    def __str__(self) -> str:
        return (
            f"the block of cube '{self.block.cube}' begins at weight {self.block.min_weight}, but "
            f"the cube '{self.ancestor}' above it reaches up to {self.ancestor_weight}"
        )


def violations(live: Iterable[Block]) -> list[Violation]:
    """Where the live blocks of one revision break docs/format.md 8.3; empty for a sound tree.

    Each block is named once, with the cube of the highest weight above it.
    """
    blocks = list(live)
    if not blocks:
        return []
    tree = OTree.of(blocks, blocks[0].cube.dimensions)
    highest: dict[CubeId, tuple[int, CubeId]] = {}
    nothing = (MIN_WEIGHT - 1, tree.cubes[0])
    for cube in tree.cubes[1:]:
        parent = cube.parent
        own = (tree.max_weight.get(parent, MIN_WEIGHT - 1), parent)
        highest[cube] = max(own, highest.get(parent, nothing), key=lambda found: found[0])
    found = []
    for block in blocks:
        weight, ancestor = highest.get(block.cube, nothing)
        if weight >= block.min_weight:
            found.append(Violation(block, ancestor, weight))
    return found


def _highest_above(tree: OTree, weights_before: Mapping[CubeId, int]) -> dict[CubeId, int]:
    """The highest weight among the cubes around each cube."""
    highest: dict[CubeId, int] = {}
    for cube in tree.cubes:
        if cube.depth == 0:
            highest[cube] = MIN_WEIGHT - 1
            continue
        parent = cube.parent
        highest[cube] = highest[parent]
        if parent in tree.max_weight or parent in weights_before:
            own = min(
                tree.max_weight.get(parent, MAX_WEIGHT), weights_before.get(parent, MAX_WEIGHT)
            )
            highest[cube] = max(highest[cube], own)
    return highest
