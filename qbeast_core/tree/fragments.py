"""Which files of a revision are worth compacting together, judged by their blocks alone.

A write puts each cube into one file, together with neighbouring cubes only. Appends undo this: each
append adds a small part of every cube, so a sample or a range filter reads a file of each append.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from qbeast_core.model.block import Block, rows_by_cube
from qbeast_core.model.cube import CubeId

SMALL_SHARE = 0.5
"""A file with fewer rows than this share of the cube size is small."""

CROWDED = 2.0
"""A cube with more rows than this many times the cube size is crowded."""

SCATTERED_OVER = 3
"""A cube in at least this many files is worth gathering into one."""

MINOR_SHARE = 0.5
"""A file with less than this share of a cube's rows has a minor part of the cube."""

SCATTERED_SHARE = 0.5
"""A file with more than this share of its rows in such parts is worth rewriting."""


class HeldBlocks(Protocol):
    """The contents of a file in terms of the tree."""

    @property
    def blocks(self) -> Sequence[Block]: ...

    @property
    def highest_weight(self) -> int | None:
        """The highest weight of the rows in a file with a band of the root; else None."""


def compaction_candidates(files: Mapping[int, HeldBlocks], desired_rows: int) -> list[int]:
    """The sorted keys of the files that are worth rewriting together.

    These are small files if there are several, files that share a crowded cube, and files that are
    scattered over the tree. After a rewrite in the layout of `rollup`, none of the new files is a
    candidate, because each cube is in a single file or in bands (`tree.bands`).
    """
    joined = _with_bands_joined(files)
    held = {keys: rows_by_cube(blocks) for keys, blocks in joined.items()}
    small = {keys for keys, rows in held.items() if sum(rows.values()) < SMALL_SHARE * desired_rows}
    # Several small files can become one. A single one is normal: a write may leave one over.
    gaining = small if len(small) > 1 else set()
    gaining |= _crowded(held, desired_rows) | _scattered(held)
    return sorted(key for keys in gaining for key in keys)


_Keys = tuple[int, ...]
"""The keys of files that count as one."""


def _with_bands_joined(files: Mapping[int, HeldBlocks]) -> dict[_Keys, Sequence[Block]]:
    """The blocks of files, where bands of the root that do not overlap count as one file."""
    chains: list[list[int]] = []
    ends: list[int] = []
    for key, lowest, highest in sorted(_bands(files), key=lambda band: band[1:]):
        place = next((i for i, end in enumerate(ends) if end < lowest), None)
        if place is None:
            chains.append([key])
            ends.append(highest)
        else:
            chains[place].append(key)
            ends[place] = highest
    in_chains = {key for chain in chains for key in chain}
    chains += ([key] for key in files if key not in in_chains)
    return {tuple(keys): [block for key in keys for block in files[key].blocks] for keys in chains}


def _bands(files: Mapping[int, HeldBlocks]) -> Iterator[tuple[int, int, int]]:
    """Yields (key, lowest weight, highest weight) of each file with a band of the root."""
    for key, file in files.items():
        in_root = [b.min_weight for b in file.blocks if b.element_count and not b.cube.depth]
        if file.highest_weight is not None and in_root:
            yield key, min(in_root), file.highest_weight


def _crowded(held: Mapping[_Keys, Mapping[CubeId, int]], desired_rows: int) -> set[_Keys]:
    rows_in: dict[CubeId, int] = defaultdict(int)
    holders: dict[CubeId, set[_Keys]] = defaultdict(set)
    for key, rows in held.items():
        for cube, count in rows.items():
            rows_in[cube] += count
            holders[cube].add(key)
    return {
        key
        for cube, keys in holders.items()
        if len(keys) > 1 and rows_in[cube] > CROWDED * desired_rows
        for key in keys
    }


def _scattered(held: Mapping[_Keys, Mapping[CubeId, int]]) -> set[_Keys]:
    """The largest set of files that are scattered relative to each other: each has most of its rows
    in minor parts of cubes that at least `SCATTERED_OVER` files of the set share.

    Files that hold the major part of their cubes are not in the set; their layout is good.
    """
    rows_in: dict[CubeId, int] = defaultdict(int)
    for rows in held.values():
        for cube, count in rows.items():
            rows_in[cube] += count
    minor = {
        key: {cube: n for cube, n in rows.items() if n < MINOR_SHARE * rows_in[cube]}
        for key, rows in held.items()
    }
    sharing: dict[CubeId, int] = defaultdict(int)
    for rows in minor.values():
        for cube in rows:
            sharing[cube] += 1
    chosen = set(held)
    while True:
        leaving = {
            key
            for key in chosen
            if sum(n for cube, n in minor[key].items() if sharing[cube] >= SCATTERED_OVER)
            <= SCATTERED_SHARE * sum(held[key].values())
        }
        if not leaving:
            return chosen
        chosen -= leaving
        for key in leaving:
            for cube in minor[key]:
                sharing[cube] -= 1
