"""The root's rows in files of their own by weight, so that a small sample reads a small file.

Every sample reads the root, which holds the smallest weights of all: a twentieth of the table, say,
where a thousandth is wanted. A *band* of the root is its rows up to some weight that are in no band
before. Bands end where samples of a tenth, a hundredth, a thousandth of the table do, as people ask
for them: such a sample is whole files then, and no row of theirs needs to be weighed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MAX_WEIGHT, weight_of_fraction

_ENDS = tuple(weight_of_fraction(10.0**-power) - 1 for power in range(1, 10))
"""The highest weights in samples of a tenth, a hundredth, and so on."""


def root_bands(
    weights: Mapping[CubeId, int],
    file_of: Mapping[CubeId, int],
    with_rows: Collection[CubeId],
    sample_weights: NDArray[np.int32],
    scale: float,
    smallest_rows: int,
) -> tuple[int, ...]:
    """The highest weight of each band of the root but the last, rising.

    Empty where the root has no file of its own or too few rows for two bands.

    Args:
        weights, file_of: of cubes, as in `Assignment.of`.
        with_rows: the cubes that get rows.
        sample_weights: int32[rows], the weights of a sample of all rows, in any order.
        scale: rows for each row of the sample.
        smallest_rows: the fewest rows that are worth a file, at least 1.
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
