"""Divides the rows of a write into files, by weight and place (docs/format.md 8.5).

The rows of each band (`tree.bands`) are cut along the space-filling curve into files of about equal
size. The cuts need not be at the borders of cubes. So a cube can have a block in several files, and
each file covers a compact region.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT
from qbeast_core.tree.bands import band_numbers, choose_band_ends
from qbeast_core.tree.curve import CELL_ROWS, RowOrder, separating_levels
from qbeast_core.tree.path import PathLayout
from qbeast_core.tree.weighed_sample import WeighedSample

_MAX_PLACE_BITS = 48
_EVEN_ROWS = 1 << 17
_CELLS_OF_A_FILE = 8
"""A file has at least about this many cells of the order, so that it can be cut there."""


@dataclass(frozen=True, eq=False)
class FileCuts:
    """The files of a write, and where each ends.

    A row's key is its band, and below it the first bits of its place. Its file is the lower bound
    of the key in `file_ends`, as in `Assignment`.
    """

    order: RowOrder
    """The order of rows in a file."""
    band_ends: NDArray[np.int64]
    """int64[bands - 1], ascending: the highest weight of each band except the last."""
    file_ends: NDArray[np.int64]
    """int64[files], ascending: the highest key in each file."""
    by_weight: bool = True
    """Whether rows are divided by weight. Few rows are not."""

    @property
    def files(self) -> int:
        return len(self.file_ends)

    @property
    def bands(self) -> int:
        return len(self.band_ends) + 1

    @property
    def place_bits(self) -> int:
        """The number of a place's first bits in a key."""
        return min(self.order.bits, _MAX_PLACE_BITS)

    def files_of(self, words: NDArray[np.int64], weights: NDArray[np.int32]) -> NDArray[np.int64]:
        """The number of each row's file, int64[rows].

        `words` is int64[words, rows] from `PathLayout.path_words`, `weights` int32[rows].
        """
        bands = band_numbers(weights, self.band_ends)
        return np.searchsorted(self.file_ends, _keys(self.order, self.place_bits, words, bands))


def row_order(layout: PathLayout, sample: WeighedSample, desired_rows: int) -> RowOrder:
    """The order of the rows of a write in files of about `desired_rows` rows."""
    cell_rows = min(CELL_ROWS, -(-desired_rows // _CELLS_OF_A_FILE))
    return RowOrder(layout, separating_levels(layout, sample.words, sample.scale, cell_rows))


def cut_sample(
    order: RowOrder,
    sample: WeighedSample,
    desired_rows: int,
    smallest_rows: int,
    kept_ends: Collection[int] = (),
) -> FileCuts:
    """The files of a write, from a uniform sample of its rows. Few rows are one file.

    Args:
        smallest_rows: the minimum number of rows of a band.
        kept_ends: the weights where files must end, as for `choose_band_ends`.
    """
    is_small = sample.rows <= desired_rows
    if is_small and not kept_ends:
        return one_file(order)
    ends = choose_band_ends(sample, sample.rows if is_small else smallest_rows, kept_ends)
    return cut_into_files(order, sample, desired_rows, ends)


def cut_into_files(
    order: RowOrder, sample: WeighedSample, desired_rows: int, band_ends: NDArray[np.int64]
) -> FileCuts:
    """Cut each band into files of about `desired_rows` rows, from a uniform sample of the rows.

    Args:
        desired_rows: at least 1.
    """
    place_bits = min(order.bits, _MAX_PLACE_BITS)
    bands = band_numbers(sample.weights, band_ends)
    keys = np.sort(_keys(order, place_bits, sample.words, bands))
    starts = np.searchsorted(keys, np.arange(len(band_ends) + 2) << place_bits)
    ends: list[NDArray[np.int64]] = []
    for band, (first, last) in enumerate(pairwise(starts.tolist())):
        files = max(1, round((last - first) * sample.scale / desired_rows))
        cuts = keys[first + (last - first) * np.arange(1, files) // files]
        # Equal rows stay together, and the last file has rows too.
        ends.append(cuts[cuts < keys[last - 1]] if files > 1 else cuts)
        ends.append(np.array([(band + 1 << place_bits) - 1], dtype=np.int64))
    return FileCuts(order, band_ends, np.unique(np.concatenate(ends)))


def one_file(order: RowOrder) -> FileCuts:
    """All rows in one file, whatever their weight."""
    last = np.array([(1 << min(order.bits, _MAX_PLACE_BITS)) - 1], dtype=np.int64)
    return FileCuts(order, np.array([], dtype=np.int64), last, by_weight=False)


def even_sample(
    layout: PathLayout, weights: Mapping[CubeId, int], rows_in: Mapping[CubeId, float]
) -> WeighedSample:
    """A sample of rows that are spread evenly in each cube of a tree.

    Args:
        weights: of the cubes; a cube that is not in it takes all rows that reach it.
        rows_in: the number of rows in each cube, at least one of which has rows.

    Returns:
        A sample with the first word of each path only.
    """
    total, bits = sum(rows_in.values()), layout.first_levels * layout.dimensions
    unused = layout.levels_per_word * layout.dimensions - bits
    # Sums are rounded, not the numbers: many cubes with few rows each have rows together.
    ends = np.cumsum([0.0, *rows_in.values()]) / total * _EVEN_ROWS
    rounded = np.round(ends).astype(np.int64)
    counts = rounded[1:] - rounded[:-1]
    firsts, free, above, upto = [], [], [], []
    for cube in rows_in:
        depth = min(cube.depth, layout.first_levels)
        free.append((layout.first_levels - depth) * layout.dimensions)
        firsts.append(cube.path >> (cube.depth - depth) * layout.dimensions << free[-1])
        around = None if not cube.depth else weights.get(cube.parent, MIN_WEIGHT)
        above.append(MIN_WEIGHT - 1 if around is None else around)
        upto.append(max(weights.get(cube, MAX_WEIGHT), above[-1] + 1))
    random = np.random.default_rng(0)
    of_row = np.repeat(np.arange(len(counts)), counts)
    below = random.integers(0, 1 << bits, len(of_row)) >> (bits - np.array(free)[of_row])
    words = (np.array(firsts)[of_row] + below) << unused
    lowest, highest = np.array(above)[of_row], np.array(upto)[of_row]
    drawn = random.integers(lowest + 1, highest, endpoint=True)
    row_weights = np.minimum(drawn, MAX_WEIGHT).astype(np.int32)
    return WeighedSample(words[np.newaxis], row_weights, round(total))


def _keys(
    order: RowOrder, place_bits: int, words: NDArray[np.int64], bands: NDArray[np.int64]
) -> NDArray[np.int64]:
    places: NDArray[np.int64] = order.places(words) >> (order.bits - place_bits)
    return bands << place_bits | places
