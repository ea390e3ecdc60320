"""The Hilbert curve: the order of the rows of a write, by which they are cut into files.

In the order of paths (the Z curve), two consecutive rows can be at opposite ends of the space. The
Hilbert curve also visits the cubes of each level one after the other, but each cell touches the
previous one. So consecutive rows, such as those of a Parquet page, lie in a compact region, which
fewer range filters overlap.

The curve is followed level by level. Its course through a cube (the *state*: where it enters, and
along which dimension it leaves) determines the order of the children and the state of each of them
(C. Hamilton, Compact Hilbert Indices, 2006). A *step* descends several levels with one lookup.

>>> curve = HilbertCurve(dimensions=2)
>>> curve.positions(np.array([[0, 0, 1, 1], [0, 1, 0, 1]]), levels=4).tolist()
[0, 1, 3, 2]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from qbeast_core.tree.path import PathLayout

_STEP_BITS = 8
_MAX_STEPS = 4
_MAX_DIMENSIONS = 4
"""With more, the table has a hundred thousand entries, and a page is not compact anyway."""
CELL_ROWS = 150
"""The order within this many rows, a small part of a page, does not matter."""
_CROWD = 8
"""The number of sampled rows above which a cell has many rows, not just by chance."""
_CROWDED_SHARE = 0.01


@dataclass(frozen=True)
class HilbertCurve:
    """The curve through a space of two to four dimensions."""

    dimensions: int

    @staticmethod
    @cache
    def of(dimensions: int) -> HilbertCurve | None:
        """The curve; None where the order of paths is as good, or not much worse.

        Cached per process, because building its table takes 4 to 30 ms: too long for each of many
        small appends.
        """
        return HilbertCurve(dimensions) if 2 <= dimensions <= _MAX_DIMENSIONS else None

    @property
    def step_levels(self) -> int:
        """The number of levels that a step descends."""
        return _STEP_BITS // self.dimensions

    @property
    def step_bits(self) -> int:
        """The number of bits that a step adds to the position."""
        return self.step_levels * self.dimensions

    @property
    def most_steps(self) -> int:
        """The number of steps after which the order of paths is as good."""
        return _MAX_STEPS

    @cached_property
    def table(self) -> NDArray[np.int64]:
        """int64[states << step_bits]: the result of a step, `next state << step_bits | position`.

        The index is `state << step_bits | cells`, where `cells` has `step_levels` bits of each
        dimension's cell, dimension 0 in the highest bits. The initial state is 0.
        """
        states = [(0, 0)]
        entries = []
        for state in states:  # grows during the loop
            for cells in range(1 << self.step_bits):
                following, position = self._step(state, cells)
                if following not in states:
                    states.append(following)
                entries.append(states.index(following) << self.step_bits | position)
        return np.array(entries, dtype=np.int64)

    def positions(self, cells: NDArray[np.int64], levels: int) -> NDArray[np.int64]:
        """The positions int64[rows] of cells along the curve.

        `cells` is int64[n, rows] with `levels` bits each; `levels` is a multiple of `step_levels`.
        """
        mask = (1 << self.step_levels) - 1
        found = np.zeros(cells.shape[1], dtype=np.int64)
        position = np.zeros_like(found)
        for below in range(levels - self.step_levels, -1, -self.step_levels):
            index = found >> self.step_bits
            for cell in cells:
                index = index << self.step_levels | cell >> below & mask
            found = self.table[index]
            position = position << self.step_bits | found & ((1 << self.step_bits) - 1)
        return position

    def _step(self, state: tuple[int, int], cells: int) -> tuple[tuple[int, int], int]:
        """The next state and the position for one entry of the table, computed level by level."""
        n, mask = self.dimensions, (1 << self.step_levels) - 1
        parts = [cells >> self.step_levels * (n - 1 - i) & mask for i in range(n)]
        entry, direction = state
        position = 0
        for below in range(self.step_levels - 1, -1, -1):
            digit = 0
            for part in parts:
                digit = digit << 1 | part >> below & 1
            child = _inverse_gray(self._rotated(digit ^ entry, -direction - 1))
            position = position << n | child
            entry ^= self._rotated(_entry_of(child), direction + 1)
            direction = (direction + self._direction_of(child) + 1) % n
        return (entry, direction), position

    def _rotated(self, bits: int, by: int) -> int:
        """The bits of one digit, rotated left."""
        by %= self.dimensions
        return (bits << by | bits >> self.dimensions - by) & (1 << self.dimensions) - 1

    def _direction_of(self, child: int) -> int:
        """The dimension along which the curve leaves the child with this number."""
        if not child:
            return 0
        return _trailing_ones(child if child % 2 else child - 1) % self.dimensions


@dataclass(frozen=True)
class RowOrder:
    """The order of rows along the Hilbert curve for the first levels, and along the path below."""

    layout: PathLayout
    levels: int
    """The number of levels that matter, at most `layout.first_levels`."""

    @property
    def curve(self) -> HilbertCurve | None:
        return HilbertCurve.of(self.layout.dimensions)

    @property
    def steps(self) -> int:
        """The number of steps along the curve. The last one may go deeper than `levels`."""
        curve = self.curve
        return min(curve.most_steps, -(-self.levels // curve.step_levels)) if curve else 0

    @property
    def levels_by_path(self) -> range:
        """The levels below those of the curve."""
        curve = self.curve
        return range(self.steps * curve.step_levels if curve else 0, self.levels)

    @property
    def bits(self) -> int:
        """The number of bits of a place."""
        curve = self.curve
        by_curve = self.steps * curve.step_bits if curve else 0
        return by_curve + len(self.levels_by_path) * self.layout.dimensions

    def places(self, words: NDArray[np.int64]) -> NDArray[np.int64]:
        """The places int64[rows] of rows in a file; `words` is int64[words, rows]."""
        layout, by_path = self.layout, self.levels_by_path
        below = (layout.levels_per_word - self.levels) * layout.dimensions
        curve = self.curve
        if curve is None:
            deepest: NDArray[np.int64] = words[0] >> below
            return deepest
        by_curve = self.steps * curve.step_levels
        cells = np.zeros((layout.dimensions, words.shape[1]), dtype=np.int64)
        for level in range(by_curve):
            digits = layout.digits(words, level)
            for dimension in range(layout.dimensions):
                bit = digits >> layout.dimensions - 1 - dimension & 1
                cells[dimension] = cells[dimension] << 1 | bit
        places = curve.positions(cells, by_curve)
        bits = len(by_path) * layout.dimensions
        deeper: NDArray[np.int64] = words[0] >> below & (1 << bits) - 1
        return places << bits | deeper if by_path else places


def separating_levels(
    layout: PathLayout, words: NDArray[np.int64], scale: float, cell_rows: int = CELL_ROWS
) -> int:
    """The number of levels after which nearly all rows are in cells with few rows.

    Deeper levels would only sort the rows within a cell.

    Args:
        words: the paths of a uniform sample of the rows, int64[words, rows].
        scale: the number of rows per row of the sample.
        cell_rows: the number of rows that is few.
    """
    first = np.sort(words[0])
    crowd = max(_CROWD, cell_rows / scale)
    # Below the resolution of the sample, rows are assumed to be spread evenly.
    unseen = max(0, math.ceil(math.log2(crowd * scale / cell_rows) / layout.dimensions))
    for levels in range(1, layout.first_levels):
        cells = first >> (layout.levels_per_word - levels) * layout.dimensions
        starts = np.flatnonzero(np.diff(cells, prepend=-1))
        ends = np.append(starts[1:], len(first))
        rows = ends - starts
        # Rows with equal paths share a cell at every level, so deeper levels cannot separate them.
        crowded = rows[(rows > crowd) & (first[starts] < first[ends - 1])]
        if crowded.sum() <= _CROWDED_SHARE * len(first):
            return min(levels + unseen, layout.first_levels)
    return layout.first_levels


def _entry_of(child: int) -> int:
    """The corner where the curve enters the child with this number."""
    first = max(child - 1, 0) // 2 * 2
    return first ^ first >> 1


def _inverse_gray(code: int) -> int:
    number = 0
    while code:
        number ^= code
        code >>= 1
    return number


def _trailing_ones(number: int) -> int:
    return (~number & number + 1).bit_length() - 1
