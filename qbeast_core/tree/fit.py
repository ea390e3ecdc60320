"""Whether a tree fits the rows that were placed by it, or new rows with a similar distribution."""

from __future__ import annotations

from collections.abc import Mapping

from qbeast_core.model.cube import CubeId
from qbeast_core.tree.fragments import CROWDED, SMALL_SHARE

_CROWDED_ROWS = 0.1
"""The largest share of rows that may lie in crowded cubes."""


def still_fits(rows_in: Mapping[CubeId, float], files: int, desired_rows: int) -> bool:
    """Whether the cubes are about as full as intended; False without rows.

    Rows beyond those that a tree was built for stay in the leaves, which they make crowded.

    Args:
        rows_in: the number of rows of each cube.
        files: the number of files that should be full.
        desired_rows: the cube size in rows.
    """
    rows = sum(rows_in.values())
    crowded = sum(count for count in rows_in.values() if count > CROWDED * desired_rows)
    if not rows or crowded > _CROWDED_ROWS * rows:
        return False
    return files == 1 or rows >= SMALL_SHARE * desired_rows * files
