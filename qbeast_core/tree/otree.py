"""The tree of a revision, from its live blocks (docs/format.md 8.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from qbeast_core.model.block import Block
from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT


@dataclass(frozen=True)
class OTree:
    """The cubes of one revision, aggregated over all their blocks.

    Other writers may leave out the root, a parent or a whole level. Every method accepts such trees
    and treats a missing ancestor of a cube as an empty cube. The mappings that methods return are
    shared: read them, don't change them.
    """

    dimensions: int
    max_weight: Mapping[CubeId, int]
    """For each cube with a block: the smallest `max_weight` of its blocks."""
    min_weight: Mapping[CubeId, int]
    """For the same cubes: the smallest `min_weight` of their blocks."""
    element_count: Mapping[CubeId, int]
    """For the same cubes: the number of rows in all their blocks."""

    @staticmethod
    def of(blocks: Iterable[Block], dimensions: int) -> OTree:
        """Aggregates blocks in any order. Blocks without rows count, because they carry weights."""
        max_weight: dict[CubeId, int] = {}
        min_weight: dict[CubeId, int] = {}
        element_count: dict[CubeId, int] = {}
        for block in blocks:
            cube = block.cube
            if cube in element_count:
                max_weight[cube] = min(max_weight[cube], block.max_weight)
                min_weight[cube] = min(min_weight[cube], block.min_weight)
                element_count[cube] += block.element_count
            else:
                max_weight[cube] = block.max_weight
                min_weight[cube] = block.min_weight
                element_count[cube] = block.element_count
        return OTree(dimensions, max_weight, min_weight, element_count)

    def without(self, blocks: Iterable[Block]) -> OTree:
        """The same cubes with the same weights, without the rows of these blocks.

        Rows taken out of the tree are placed by the result when they are written again.
        """
        counts = dict(self.element_count)
        for block in blocks:
            counts[block.cube] -= block.element_count
        return replace(self, element_count=counts)

    @cached_property
    def cubes(self) -> tuple[CubeId, ...]:
        """The cubes with a block and all their ancestors, by depth."""
        cubes = set(self.element_count)
        for cube in self.element_count:
            for around in cube.ancestors():
                if around in cubes:
                    break
                cubes.add(around)
        # A walk may stop at a cube that is present, because that cube's own walk adds the rest.
        return tuple(sorted(cubes, key=lambda cube: (cube.depth, cube.path)))

    @cached_property
    def inner_cubes(self) -> frozenset[CubeId]:
        """The cubes with at least one cube below them."""
        return frozenset(cube.parent for cube in self.cubes if cube.depth)

    @cached_property
    def tree_size(self) -> Mapping[CubeId, int]:
        """The number of rows in each cube and below it."""
        sizes = {cube: self.element_count.get(cube, 0) for cube in self.cubes}
        for cube in reversed(self.cubes):
            if cube.depth:
                sizes[cube.parent] += sizes[cube]
        return sizes

    @cached_property
    def domains(self) -> Mapping[CubeId, float]:
        """The number of rows whose point lies in each cube, whichever cube stores them.

        Estimated from the top down, assuming that a cube's own rows are distributed over its
        children like the rows below it.
        """
        below: dict[CubeId, int] = dict.fromkeys(self.inner_cubes, 0)
        for cube in self.cubes:
            if cube.depth:
                below[cube.parent] += self.tree_size[cube]
        domains: dict[CubeId, float] = {}
        for cube in self.cubes:
            if cube.depth == 0:
                domains[cube] = float(self.tree_size[cube])
            elif below[cube.parent] == 0:
                domains[cube] = 0.0
            else:
                share = self.tree_size[cube] / below[cube.parent]
                domains[cube] = domains[cube.parent] * share
        return domains

    @cached_property
    def weights(self) -> Mapping[CubeId, int]:
        """The weight up to which each cube may take new rows, missing cubes included.

        This is `max_weight`, lowered where needed to stay below the weights of all blocks
        underneath. Readers that walk the tree stop at a cube whose weight the sample does not
        exceed, and would miss the rows of such blocks (docs/format.md 8.3). In a valid tree nothing
        is lowered.
        """
        lowest_below: dict[CubeId, int] = {}
        weights: dict[CubeId, int] = {}
        for cube in reversed(self.cubes):
            below = lowest_below.get(cube, MAX_WEIGHT + 1)
            weights[cube] = max(
                min(self.max_weight.get(cube, MAX_WEIGHT), below - 1),
                MIN_WEIGHT,
            )
            if cube.depth:
                lowest = min(below, self.min_weight.get(cube, MAX_WEIGHT + 1))
                parent = cube.parent
                lowest_below[parent] = min(lowest_below.get(parent, MAX_WEIGHT + 1), lowest)
        return weights
