"""The root's rows in files of their own by weight, so that a small sample reads a small file.

Every sample reads the root, which holds the smallest weights of all: a twentieth of the table, say,
where a thousandth is wanted. A *band* of the root is its rows up to some weight that are in no band
before. Each takes three quarters of what is left, as a cube's children do of the rows below it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT

STEP = 4
"""All bands up to some one reach up to so many times the weights of those before it."""


def root_bands(
    weights: Mapping[CubeId, int],
    file_of: Mapping[CubeId, int],
    with_rows: Collection[CubeId],
    sample_weights: NDArray[np.int32],
    scale: float,
    smallest_rows: int,
) -> tuple[int, ...]:
    """The highest weight of each band of the root, rising, the root's own weight at the end.

    Empty where the root has no file of its own or too few rows for two bands.

    Args:
        weights, file_of: of cubes, as in `Assignment.of`.
        with_rows: the cubes that get rows.
        sample_weights: int32[rows], the weights of a sample of all rows, in any order.
        scale: rows for each row of the sample.
        smallest_rows: the fewest rows that are worth a file, at least 1. Weights that many rows
            share may make a band larger than meant, and never smaller than this.
    """
    root = next((cube for cube in with_rows if not cube.depth), None)
    if root is None or len(with_rows) == 1:
        return ()
    if any(file_of[cube] == file_of[root] for cube in with_rows if cube.depth):
        return ()
    ends = [weights.get(root, MAX_WEIGHT)]
    inside = np.count_nonzero(sample_weights <= ends[0])
    while True:
        end = MIN_WEIGHT + (ends[0] - MIN_WEIGHT) // STEP
        below = np.count_nonzero(sample_weights <= end)
        if min(below, inside - below) * scale < smallest_rows:
            return tuple(ends) if len(ends) > 1 else ()
        ends.insert(0, end)
        inside = below
