"""A revision's cubes as they are drawn: where they lie, what they hold, in which files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT, fraction_of_weight
from qbeast_core.tree.metrics import FileBlocks
from qbeast_core.tree.otree import OTree

MAX_DRAWN_CUBES = 2000


@dataclass(frozen=True)
class CubePicture:
    """One cube, summed up over its blocks."""

    cube: CubeId
    rows: int
    """0 for a cube that only has others below."""
    rows_below: int
    """Rows of the cube and of all below it."""
    begins: float
    """The left edge, from 0 to 1, when all cubes of a level are drawn side by side."""
    share: float
    """The part of all rows that have their place in the cube, in whatever cube they are stored."""
    blocks: int
    files: int
    lowest: float
    """The share of all weights below its lowest row, from 0 to 1."""
    weight: float
    """The share of all weights up to which it takes rows; 1 for a leaf."""


@dataclass(frozen=True)
class Level:
    """The cubes of one depth that have rows."""

    depth: int
    cubes: int
    rows: int
    median_rows: int
    lowest: float
    """The share of the weights below the lowest row of these cubes."""


@dataclass(frozen=True)
class TreePicture:
    """The cubes of a revision by depth, parents before children."""

    cubes: tuple[CubePicture, ...]
    left_out: int
    """How many smaller cubes are not among them; their rows count in those above."""
    levels: tuple[Level, ...]
    """Of all cubes, drawn or not."""


def tree_picture(
    files: Sequence[FileBlocks], tree: OTree, max_drawn_cubes: int = MAX_DRAWN_CUBES
) -> TreePicture:
    """The picture of the tree that these files make up, by its largest cubes.

    Cubes count as large by the rows in and below them, so a cube is never drawn without those
    around it.
    """
    blocks_of: dict[CubeId, int] = defaultdict(int)
    files_of: dict[CubeId, set[int]] = defaultdict(set)
    for number, file in enumerate(files):
        for block in file.blocks:
            blocks_of[block.cube] += 1
            files_of[block.cube].add(number)
    by_size = sorted(tree.cubes, key=lambda cube: (-tree.tree_size[cube], cube.depth))
    drawn = set(by_size[:max_drawn_cubes])
    begins = _beginnings(tree)
    all_rows = max(1, sum(tree.element_count.values()))
    pictures = [
        CubePicture(
            cube=cube,
            rows=tree.element_count.get(cube, 0),
            rows_below=tree.tree_size[cube],
            begins=begins[cube] / all_rows,
            share=tree.domains[cube] / all_rows,
            blocks=blocks_of[cube],
            files=len(files_of[cube]),
            lowest=fraction_of_weight(tree.min_weight.get(cube, MIN_WEIGHT)),
            weight=fraction_of_weight(tree.max_weight.get(cube, MAX_WEIGHT)),
        )
        for cube in tree.cubes
        if cube in drawn
    ]
    return TreePicture(
        tuple(pictures), left_out=len(tree.cubes) - len(pictures), levels=_levels(tree)
    )


def _beginnings(tree: OTree) -> dict[CubeId, float]:
    """Children lie side by side in their parent, in their own order."""
    begins: dict[CubeId, float] = {}
    free: dict[CubeId, float] = {}
    for cube in tree.cubes:
        begins[cube] = free[cube.parent] if cube.depth else 0.0
        free[cube] = begins[cube]
        if cube.depth:
            free[cube.parent] += tree.domains[cube]
    return begins


def _levels(tree: OTree) -> tuple[Level, ...]:
    of_depth: dict[int, list[CubeId]] = defaultdict(list)
    for cube, rows in tree.element_count.items():
        if rows:
            of_depth[cube.depth].append(cube)
    return tuple(
        Level(
            depth=depth,
            cubes=len(cubes),
            rows=sum(tree.element_count[cube] for cube in cubes),
            median_rows=int(np.median([tree.element_count[cube] for cube in cubes])),
            lowest=fraction_of_weight(min(tree.min_weight[cube] for cube in cubes)),
        )
        for depth, cubes in sorted(of_depth.items())
    )
