"""Groups cubes into files (docs/format.md 8.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from qbeast_core.model.cube import CubeId
from qbeast_core.tree.assignment import Assignment
from qbeast_core.tree.path import PathLayout

OWN_FILE_SHARE = 0.8
"""A cube with at least this share of the desired rows of a file gets its own file."""

SMALLEST_FILE_SHARE = 0.25
"""Cubes left over at the end join another file if they have less than this share of the desired
rows of a file."""


def plan_files(cube_rows: Mapping[CubeId, float], desired_rows: int) -> dict[CubeId, int]:
    """A file number for every cube with (estimated) rows, and for all their ancestors.

    A large cube has its own file, so a small sample, which needs only the upper cubes, reads no
    leaves. Small cubes are grouped with their siblings in pre-order until they fill a file; the
    remainder joins the parent's siblings. So no file has 2 * desired_rows unless a single cube has,
    all files except one have at least OWN_FILE_SHARE * desired_rows, and the cubes of a file lie
    close together. Files are numbered from 0 in pre-order of their first cube. Raises ValueError
    for `desired_rows` < 1.
    """
    if desired_rows < 1:
        raise ValueError(f"the desired rows per file must be at least 1, got {desired_rows}")
    if sum(cube_rows.values()) <= desired_rows:
        return dict.fromkeys(_connected(cube_rows), 0)
    groups = _groups(_connected(cube_rows), desired_rows)
    key_of = {cube: cube.preorder_key for group in groups for cube in group.cubes}
    groups.sort(key=lambda group: min(key_of[cube] for cube in group.cubes))
    return {cube: number for number, group in enumerate(groups) for cube in group.cubes}


def expected_rows(
    layout: PathLayout,
    weights: Mapping[CubeId, int],
    sample_words: NDArray[np.int64],
    sample_weights: NDArray[np.int32],
    scale: float,
) -> dict[CubeId, float]:
    """The rows that a write would put in each cube, estimated from its sample.

    The sample is that of `estimate_weights`; `scale` is the number of rows per row of the sample.
    The result leaves out cubes without sample rows and may contain cubes that `weights` lacks.
    """
    cubes, cube_of_row = Assignment.of(layout, weights).cubes_of(sample_words, sample_weights)
    counts = np.bincount(cube_of_row, minlength=len(cubes))
    return dict(zip(cubes, (counts * scale).tolist(), strict=True))


@dataclass
class _Group:
    """Cubes that share a file, and their rows."""

    cubes: list[CubeId] = field(default_factory=list)
    rows: float = 0.0

    def add(self, cubes: list[CubeId], rows: float) -> None:
        self.cubes.extend(cubes)
        self.rows += rows


def _connected(cube_rows: Mapping[CubeId, float]) -> dict[CubeId, float]:
    """The cubes and, with 0 rows, their missing ancestors, in pre-order."""
    connected = dict(cube_rows)
    for cube in cube_rows:
        for around in cube.ancestors():
            if around in connected:
                break
            connected[around] = 0.0
    return dict(sorted(connected.items(), key=lambda item: item[0].preorder_key))


def _groups(cube_rows: dict[CubeId, float], desired_rows: int) -> list[_Group]:
    """The groups of cubes, one per file; `cube_rows` is connected and in pre-order."""
    files: list[_Group] = []
    # pending[d] collects cubes below the walk's current cube at depth d - 1; pending[0] collects
    # what the root leaves over.
    pending = [_Group()]
    around: list[CubeId] = []

    def pass_up() -> None:
        cube = around.pop()
        left, rows = pending.pop(), cube_rows[cube]
        if rows >= OWN_FILE_SHARE * desired_rows:
            files.append(_Group([cube], rows))
        else:
            left.add([cube], rows)
            if left.rows >= desired_rows:
                files.append(left)
                left = _Group()
        group = pending[-1]
        group.add(left.cubes, left.rows)
        if group.rows >= desired_rows:
            files.append(group)
            pending[-1] = _Group()

    for cube in cube_rows:
        while len(around) > cube.depth:
            pass_up()
        around.append(cube)
        pending.append(_Group())
    while around:
        pass_up()
    rest = pending[0]
    if rest.rows < SMALLEST_FILE_SHARE * desired_rows:
        # Not into the root's file, because every sample reads it.
        for file in reversed(files):
            if file.cubes[0].depth and file.rows + rest.rows < 2 * desired_rows:
                file.add(rest.cubes, rest.rows)
                return files
    if rest.rows == 0.0 and files:
        files[-1].add(rest.cubes, 0.0)
    elif rest.cubes:
        files.append(rest)
    return files
