"""The corners of many cubes as arrays (docs/format.md 6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from qbeast_core.model.cube import CubeId

_EXACT_DEPTH = 53
_PATH_BITS = 63


def corners(
    cubes: Sequence[CubeId], dimensions: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """`CubeId.lower` and `CubeId.upper` of each cube, float64[cubes, dimensions] each."""
    depths = np.array([cube.depth for cube in cubes], dtype=np.int64)
    deepest = min(_EXACT_DEPTH, _PATH_BITS // dimensions)
    paths = np.array([c.path if c.depth <= deepest else 0 for c in cubes], dtype=np.int64)
    cells = np.zeros((len(cubes), dimensions), dtype=np.int64)
    for level in range(min(deepest, depths.max(initial=0))):
        for dimension in range(dimensions):
            place = level * dimensions + dimensions - 1 - dimension
            cells[:, dimension] |= (paths >> place & 1) << level
    sides: NDArray[np.float64] = np.ldexp(1.0, -depths)[:, np.newaxis]
    lower: NDArray[np.float64] = cells * sides
    upper: NDArray[np.float64] = (cells + 1) * sides
    for i in np.flatnonzero(depths > deepest).tolist():
        # The path or the coordinates need more bits than an int64 or a double has.
        lower[i], upper[i] = cubes[i].lower, cubes[i].upper
    return lower, upper
