"""A revision's cubes as the index page draws them, with their rows, blocks and files."""

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
    """One cube, aggregated over its blocks."""

    cube: CubeId
    rows: int
    """0 for a cube that only has cubes below it."""
    rows_below: int
    """The rows in the cube and below it."""
    blocks: int
    files: int
    lowest: float
    """The fraction of all weights that are below those of the cube's rows, from 0 to 1."""
    weight: float
    """The fraction of all weights up to which the cube takes rows; 1 for a leaf."""


@dataclass(frozen=True)
class TreePicture:
    """The cubes of a revision by depth, parents before children."""

    cubes: tuple[CubePicture, ...]
    left_out: int
    """The number of smaller cubes left out; the `rows_below` of cubes above include their rows."""


def tree_picture(
    files: Sequence[FileBlocks], dimensions: int, most_cubes: int = 4000
) -> TreePicture:
    """The picture of the tree in these files, limited to its largest cubes.

    The size of a cube counts the rows in and below it, so a cube is never drawn without its
    ancestors.
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
