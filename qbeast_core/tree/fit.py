"""Whether a tree suits rows that were placed by it, or that are expected where others were."""

from __future__ import annotations

from collections.abc import Mapping

from qbeast_core.model.cube import CubeId
from qbeast_core.tree.fragments import CROWDED, SMALL_SHARE

_CROWDED_ROWS = 0.1
"""The share of the rows that may lie in crowded cubes."""


def still_fits(rows_in: Mapping[CubeId, float], files: int, desired_rows: int) -> bool:
    """Whether the cubes are about as full as they are meant to be; False without rows.

    A row that is more than a tree was made for stays in the leaf around it, and fills that up.

    Args:
        rows_in: the rows of each cube.
        files: how many files they lie in, the bands of the root counted as one.
        desired_rows: the cube size.
    """
    rows = sum(rows_in.values())
    crowded = sum(count for count in rows_in.values() if count > CROWDED * desired_rows)
    if not rows or crowded > _CROWDED_ROWS * rows:
        return False
    return files == 1 or rows >= SMALL_SHARE * desired_rows * files
