"""Which files of a revision are worth rewriting together, judged by their blocks alone.

A write divides its rows by weight and place, so each file has one band of weights (`tree.bands`) in
a compact region. Appends undo this: a small one is a single file with rows of all weights, and each
append adds a small part of every cube. A sample or a range filter then reads a file of each append.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Protocol

from qbeast_core.model.block import Block, rows_by_cube
from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MIN_WEIGHT
from qbeast_core.tree.bands import band_numbers
from qbeast_core.tree.build import most_rows
from qbeast_core.tree.otree import OTree

_Piece = tuple[CubeId, int]
"""The rows of a cube in a band: a cube and the number of a band."""

SMALL_SHARE = 0.5
"""A file with fewer rows than this share of the cube size is small."""

CROWDED = 2.0
"""A piece with more rows than this many times the cube size is crowded."""

SCATTERED_OVER = 3
"""A piece in at least this many files is worth gathering into one."""

MINOR_SHARE = 0.5
"""A file has a minor part of a piece if it has less than this share of the rows near it, or of the
rows of a file."""

SCATTERED_SHARE = 0.5
"""A file with more than this share of its rows in such parts is worth rewriting."""


class BlockHolder(Protocol):
    """The contents of a file in terms of the tree."""

    @property
    def blocks(self) -> Sequence[Block]: ...

    @property
    def highest_weight(self) -> int | None:
        """The highest weight of the rows; None in a file whose rows are not divided by weight."""


def compaction_candidates(
    files: Mapping[int, BlockHolder], desired_rows: int, others: Iterable[BlockHolder] = ()
) -> list[int]:
    """The sorted keys of the files that are worth rewriting together.

    These are files with rows of all weights, if they have enough rows to be divided or several are
    small; several small files of one band; files that share a crowded piece whose rows can be
    spread; and files that are scattered over the tree. After a rewrite, none of the new files is a
    candidate.

    Args:
        others: the other files of the revision, which may have blocks of the same cubes.
    """
    rows_of = {key: rows_by_cube(file.blocks) for key, file in files.items()}
    band_of = {key: _band(file) for key, file in files.items()}
    small_in: dict[int | None, set[int]] = defaultdict(set)
    for key, rows in rows_of.items():
        if sum(rows.values()) < SMALL_SHARE * desired_rows:
            small_in[band_of[key]].add(key)
    undivided = {key for key, band in band_of.items() if band is None}
    if sum(sum(rows_of[key].values()) for key in undivided) > desired_rows:
        # They have rows of all bands, with which the small files of bands grow.
        by_size = undivided.union(*small_in.values())
    else:
        # A single small file is normal: a write may leave one over.
        by_size = set[int]().union(*(keys for keys in small_in.values() if len(keys) > 1))
    pieces = {
        key: {(cube, band): count for cube, count in rows_of[key].items()}
        for key, band in band_of.items()
        if band is not None
    }
    crowded = _crowded(files, pieces, desired_rows, others)
    return sorted(by_size | crowded | _scattered(pieces, desired_rows))


def _band(file: BlockHolder) -> int | None:
    """The number of a file's band; None if its rows are not divided by weight."""
    highest = file.highest_weight
    return None if highest is None else int(band_numbers([highest])[0])


def _crowded(
    files: Mapping[int, BlockHolder],
    held: Mapping[int, Mapping[_Piece, int]],
    desired_rows: int,
    others: Iterable[BlockHolder],
) -> set[int]:
    """The files that share a crowded piece whose rows can be spread over more cubes."""
    # A write does not split a cube with fewer rows.
    most = max(CROWDED * desired_rows, most_rows(desired_rows))
    rows_in: dict[_Piece, int] = defaultdict(int)
    holders: dict[_Piece, set[int]] = defaultdict(set)
    for key, rows in held.items():
        for piece, count in rows.items():
            # A write puts that many rows into one file only if they have the same place.
            if count <= most:
                rows_in[piece] += count
                holders[piece].add(key)
    crowded = {piece: keys for piece, keys in holders.items() if rows_in[piece] > most}
    return set[int]().union(*_spreadable(crowded, files, others))


def _spreadable(
    holders: Mapping[_Piece, set[int]],
    files: Mapping[int, BlockHolder],
    others: Iterable[BlockHolder],
) -> list[set[int]]:
    """The holders of those pieces whose rows another write could put into deeper cubes.

    Weights increase at each level. If the rows of a cube can only have the next weight after that
    of a cube around it, no lower weight is left for the cube.
    """
    if not holders:
        return []
    dimensions = next(iter(holders))[0].dimensions
    everything = chain(files.values(), others)
    tree = OTree.of((block for file in everything for block in file.blocks), dimensions)

    def lowest(cube: CubeId) -> int:
        # The weight of a cube without blocks is unknown.
        around = (tree.weights[each] for each in cube.ancestors() if each in tree.max_weight)
        return max(around, default=MIN_WEIGHT - 1) + 1

    def highest(cube: CubeId, keys: set[int]) -> int:
        return max(
            block.max_weight
            for key in keys
            for block in files[key].blocks
            if block.cube == cube and block.element_count
        )

    return [keys for (cube, _), keys in holders.items() if highest(cube, keys) != lowest(cube)]


def _scattered(held: Mapping[int, Mapping[_Piece, int]], desired_rows: int) -> set[int]:
    """The largest set of files that are scattered relative to each other: each has most of its rows
    in minor parts of pieces that at least `SCATTERED_OVER` files of the set share.

    A file that is cut from a run of rows along the curve has a minor part of two pieces at most at
    each level: those where the run begins and ends. So it is not in the set.
    """
    near = {key: _rows_near(rows) for key, rows in held.items()}
    rows_in: dict[_Piece, int] = defaultdict(int)
    for rows in near.values():
        for piece, count in rows.items():
            rows_in[piece] += count
    minor = {
        key: {
            piece: n
            for piece, n in rows.items()
            if near[key][piece] < MINOR_SHARE * min(rows_in[piece], desired_rows)
        }
        for key, rows in held.items()
    }
    sharing: dict[_Piece, int] = defaultdict(int)
    for rows in minor.values():
        for piece in rows:
            sharing[piece] += 1
    chosen = set(held)
    while True:
        leaving = {
            key
            for key in chosen
            if sum(n for piece, n in minor[key].items() if sharing[piece] >= SCATTERED_OVER)
            <= SCATTERED_SHARE * sum(held[key].values())
        }
        if not leaving:
            return chosen
        chosen -= leaving
        for key in leaving:
            for piece in minor[key]:
                sharing[piece] -= 1


def _rows_near(rows: Mapping[_Piece, int]) -> dict[_Piece, int]:
    """The file's rows in the cube of each of its pieces, in the cubes around it and inside it."""
    found = dict(rows)
    around: list[_Piece] = []
    for piece in sorted(rows, key=lambda piece: piece[0].preorder_key):
        while around and not around[-1][0].contains(piece[0]):
            around.pop()
        for each in around:
            found[each] += rows[piece]
            found[piece] += rows[each]
        around.append(piece)
    return found
