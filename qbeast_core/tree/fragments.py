"""Which files of a revision gain by being written again together, from their blocks alone.

A write puts each cube into one file, and next to it only its neighbours. Appends undo that: each of
them has its own small part of every cube, so that a sample or a range reads a file of each append.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from qbeast_core.model.block import Block
from qbeast_core.model.cube import CubeId

SMALL_SHARE = 0.5
"""A file with fewer rows than this share of the cube size is small."""

CROWDED = 2.0
"""A cube with more rows than this many times the cube size is crowded."""

SCATTERED_OVER = 3
"""Parts of a cube in so many files are worth gathering."""

MINOR_SHARE = 0.5
"""A file with less than this share of a cube's rows has a minor part of it."""

SCATTERED_SHARE = 0.5
"""A file with more than this share of its rows in such parts is worth rewriting."""


def gaining_files(files: Mapping[int, Sequence[Block]], desired_rows: int) -> list[int]:
    """The keys of the files that gain by being written anew together, sorted.

    These are small files if there are several, files that share a crowded cube, and files that are
    scattered over the tree. When they are rewritten as `rollup` has it, none gains any more: each
    cube of theirs is in a single new file then.
    """
    held = {key: _rows_by_cube(blocks) for key, blocks in files.items()}
    small = {key for key, rows in held.items() if sum(rows.values()) < SMALL_SHARE * desired_rows}
    # Two small files become one; a single one is what every tree may have left over.
    gaining = small if len(small) > 1 else set()
    return sorted(gaining | _crowded(held, desired_rows) | _scattered(held))


def _crowded(held: Mapping[int, Mapping[CubeId, int]], desired_rows: int) -> set[int]:
    rows_in: dict[CubeId, int] = defaultdict(int)
    holders: dict[CubeId, set[int]] = defaultdict(set)
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


def _scattered(held: Mapping[int, Mapping[CubeId, int]]) -> set[int]:
    """The largest set of files of which each has most of its rows in minor parts of cubes that
    several files of the set share.

    Files with the major parts of their cubes are none of them: they lie where they should.
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


def _rows_by_cube(blocks: Sequence[Block]) -> dict[CubeId, int]:
    rows: dict[CubeId, int] = defaultdict(int)
    for block in blocks:
        if block.element_count:
            rows[block.cube] += block.element_count
    return rows
