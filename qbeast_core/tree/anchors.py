"""Anchors: blocks without rows, for readers that walk the tree (docs/format.md 8.3).

These readers do not go below a cube whose weight (the smallest `max_weight` of its blocks) the
sample does not exceed. So all cubes above a row must have a lower weight than the row. A write that
lowers a cube's weight without giving it a row, and a rewrite that drops the block with the lowest
weight, would break this rule. An anchor with that weight restores it.
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
    """The anchors that a commit must add to the live blocks of one revision.

    `live_after` are the blocks that will be live. `weights_before` are the cube weights by which
    the rows were placed: those of the write, or of the tree before a rewrite. With the anchors,
    every cube with live blocks has a weight below that of each block underneath. A cube of
    `weights_before` that would have no block of its own but blocks underneath also gets an anchor,
    because appends by other writers need the upper levels.

    No anchor can fix a block that starts at `MIN_WEIGHT` below another cube; `violations` lists it.
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
    """A block that readers may miss, because an ancestor of its cube has no lower weight."""

    block: Block
    ancestor: CubeId
    ancestor_weight: int

    def __str__(self) -> str:
        return (
            f"the block of cube '{self.block.cube}' begins at weight {self.block.min_weight}, but "
            f"the cube '{self.ancestor}' above it reaches up to {self.ancestor_weight}"
        )


def violations(live: Iterable[Block]) -> list[Violation]:
    """The live blocks of one revision that break docs/format.md 8.3; empty for a valid tree.

    Each block is listed once, with the ancestor that has the highest weight.
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
    """The highest weight among the ancestors of each cube."""
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
