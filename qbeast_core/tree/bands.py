"""Bands: the intervals of weight by which rows are divided into files (docs/format.md 8.5).

A sample has the rows below a weight, and files are read whole. So the files of a write end at the
weights where samples of 30, 10, 3, 1 % of the table and so on end, at all levels of the tree. Such
a sample consists of whole files, whose rows need not be filtered by weight.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from qbeast_core.model.weight import weight_of_fraction
from qbeast_core.tree.weighed_sample import WeighedSample

_FRACTIONS = chain.from_iterable((10.0**-power, 3 * 10.0**-power) for power in range(9, 0, -1))
BAND_ENDS: NDArray[np.int64] = np.array([weight_of_fraction(f) - 1 for f in _FRACTIONS])
"""int64[ends], ascending: the highest weights of the samples where a band can end."""


def choose_band_ends(
    sample: WeighedSample, smallest_rows: int, kept: Collection[int] = ()
) -> NDArray[np.int64]:
    """The highest weight of each band of a write except the last, int64[bands - 1], ascending.

    Args:
        sample: of all rows.
        smallest_rows: the smallest number of rows that is worth a file, at least 1.
        kept: ends in `BAND_ENDS` where a band must end if there are rows on both sides of it.
    """
    below = np.searchsorted(np.sort(sample.weights), BAND_ENDS, side="right").tolist()
    chosen: list[int] = []
    not_above = len(sample.weights)
    for end, rows in zip(reversed(BAND_ENDS.tolist()), reversed(below), strict=True):
        fewest = 1.0 if end in kept else max(1.0, smallest_rows / sample.scale)
        if rows >= fewest and not_above - rows >= fewest:
            chosen.insert(0, end)
            not_above = rows
    return np.array(chosen, dtype=np.int64)


def band_numbers(
    weights: NDArray[np.int32] | Sequence[int], ends: NDArray[np.int64] = BAND_ENDS
) -> NDArray[np.int64]:
    """The number of each weight's band between such ends, int64[weights], from 0."""
    return np.searchsorted(ends, weights).astype(np.int64)


def ends_around(lowest: int, highest: int) -> set[int]:
    """The ends in `BAND_ENDS` of a file whose rows have weights from `lowest` to `highest`.

    Files that are rewritten with these ends stay in their bands.
    """
    first, last = band_numbers([lowest, highest]).tolist()
    # Bands that are joined for lack of rows are those with the lowest weights.
    below = BAND_ENDS[first - 1 : first] if 0 < first == last else ()
    return {*map(int, below), *map(int, BAND_ENDS[last : last + 1])}
