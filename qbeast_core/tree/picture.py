"""A revision's cubes as they are drawn: where they lie, what they hold, in which files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT, fraction_of_weight
from qbeast_core.tree.metrics import FileBlocks
from qbeast_core.tree.otree import OTree


@dataclass(frozen=True)
class CubePicture:
    """One cube, summed up over its blocks."""

    cube: CubeId
    rows: int
    """0 for a cube that only has others below."""
    rows_below: int
    """Rows of the cube and of all below it."""
    blocks: int
    files: int
    lowest: float
    """The share of all weights below its lowest row, from 0 to 1."""
    weight: float
    """The share of all weights up to which it takes rows; 1 for a leaf."""


@dataclass(frozen=True)
class TreePicture:
    """The cubes of a revision by depth, parents before children."""

    cubes: tuple[CubePicture, ...]
    left_out: int
    """How many smaller cubes are not among them; their rows count in those above."""


def tree_picture(
    files: Sequence[FileBlocks], dimensions: int, most_cubes: int = 4000
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
    tree = OTree.of([block for file in files for block in file.blocks], dimensions)
    by_size = sorted(tree.cubes, key=lambda cube: (-tree.tree_size[cube], cube.depth))
    drawn = set(by_size[:most_cubes])
    pictures = [
        CubePicture(
            cube=cube,
            rows=tree.element_count.get(cube, 0),
            rows_below=tree.tree_size[cube],
            blocks=blocks_of[cube],
            files=len(files_of[cube]),
            lowest=fraction_of_weight(tree.min_weight.get(cube, MIN_WEIGHT)),
            weight=fraction_of_weight(tree.max_weight.get(cube, MAX_WEIGHT)),
        )
        for cube in tree.cubes
        if cube in drawn
    ]
    return TreePicture(tuple(pictures), left_out=len(tree.cubes) - len(pictures))
