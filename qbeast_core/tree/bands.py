"""Bands: the root's rows split into files by weight, so that a small sample reads a small file.

Every sample reads the root, which holds the smallest weights. The root may have a twentieth of the
table where the sample is a thousandth. A *band* holds the root's rows with weights between two
limits. The limits are those of common samples: a tenth, a hundredth, a thousandth of the table and
so on. Such a sample then consists of whole files, whose rows need not be filtered by weight.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MAX_WEIGHT, weight_of_fraction

_ENDS = tuple(weight_of_fraction(10.0**-power) - 1 for power in range(1, 10))
"""The highest weights in the samples of a tenth, a hundredth, and so on."""


def root_bands(
    weights: Mapping[CubeId, int],
    file_of: Mapping[CubeId, int],
    with_rows: Collection[CubeId],
    sample_weights: NDArray[np.int32],
    scale: float,
    smallest_rows: int,
) -> tuple[int, ...]:
    """The highest weight of each band of the root except the last, ascending.

    Empty if the root shares its file with other cubes or has too few rows for two bands.

    Args:
        weights, file_of: those of `Assignment.of`.
        with_rows: the cubes that get rows.
        sample_weights: int32[rows], the weights of a sample of all rows, in any order.
        scale: the number of rows per row of the sample.
        smallest_rows: the smallest number of rows that is worth a file, at least 1.
    """
    root = next((cube for cube in with_rows if not cube.depth), None)
    if root is None or len(with_rows) == 1:
        return ()
    if any(file_of[cube] == file_of[root] for cube in with_rows if cube.depth):
        return ()
    ends: list[int] = []
    inside = np.count_nonzero(sample_weights <= weights.get(root, MAX_WEIGHT))
    for end in _ENDS:
        below = np.count_nonzero(sample_weights <= end)
        if below * scale < smallest_rows:
            break
        if (inside - below) * scale >= smallest_rows:
            ends.insert(0, end)
            inside = below
    return tuple(ends)
