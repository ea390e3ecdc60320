"""Paths: the way from the root to a point, packed into 64-bit words.

At each level of the tree, a point lies in one of 2^n children. The child's number is that level's
*digit* (n bits, dimension 0 most significant, as in `CubeId.path`). A *word* is a non-negative
int64 with `62 // n` digits, the first level in the highest bits and the last digit in the lowest (a
word of n = 3 holds 20 digits in its low 60 bits). Deep paths and paths of many dimensions take
several words. Comparing paths word by word compares them in pre-order.

>>> layout = PathLayout(2)
>>> layout.words, layout.levels_per_word, layout.max_depth
(1, 31, 31)
>>> layout.cube_of(layout.path_words(np.array([[0.3, 0.7]]))[:, 0], depth=3).text
'QgQ'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbeast_core.model.cube import CubeId

WORD_BITS = 62
MAX_DEPTH = 50
# With three or more dimensions, one word has 20 levels or fewer, which is too few to separate
# values that lie close together; words are added until there are at least this many levels.
_LEVELS_WANTED = 24


@dataclass(frozen=True)
class PathLayout:
    """How the paths of a tree over `dimensions` columns (at least 1) are packed into words."""

    dimensions: int

    def __post_init__(self) -> None:
        if not 1 <= self.dimensions <= WORD_BITS:
            raise ValueError(f"a path needs 1 to {WORD_BITS} dimensions, got {self.dimensions}")

    @property
    def levels_per_word(self) -> int:
        """The number of digits in one word."""
        return WORD_BITS // self.dimensions

    @property
    def first_levels(self) -> int:
        """The number of levels that the first word covers."""
        return min(self.levels_per_word, self.max_depth)

    @property
    def words(self) -> int:
        """The number of words in a full path."""
        return 1 if self.dimensions <= 2 else -(-_LEVELS_WANTED // self.levels_per_word)

    @property
    def max_depth(self) -> int:
        """The depth of the deepest cubes that paths distinguish.

        Digits of deeper levels, for which only one dimension has room, are 0.
        """
        return min(self.words * self.levels_per_word, MAX_DEPTH)

    def path_words(self, coordinates: NDArray[np.float64]) -> NDArray[np.int64]:
        """The paths int64[words, rows] of points with coordinates float64[rows, n].

        Coordinates are clamped to [0, 1], NaN counts as 1.0, and 1.0 lies in the last cube of every
        level.
        """
        rows, dimensions = coordinates.shape
        if dimensions != self.dimensions:
            raise ValueError(f"points of {dimensions} coordinates in {self.dimensions} dimensions")
        cell = self.cells(coordinates)
        words = np.zeros((self.words, rows), dtype=np.int64)
        for level in range(self.max_depth):
            word, shift = self._place(level)
            for dimension in range(dimensions):
                bit = (cell[:, dimension] >> (self.max_depth - 1 - level)) & 1
                words[word] |= bit << (shift + dimensions - 1 - dimension)
        return words

    def cells(self, coordinates: NDArray[np.float64]) -> NDArray[np.int64]:
        """The cells of coordinates, from 0 to `2^max_depth - 1`, by the rules of `path_words`."""
        cells = 1 << self.max_depth
        clamped = np.clip(np.where(np.isnan(coordinates), 1.0, coordinates), 0.0, 1.0)
        # Scaling by a power of two is exact, so this gives the same bits as repeated doubling.
        found: NDArray[np.int64] = np.floor(clamped * float(cells)).astype(np.int64)
        return np.minimum(found, cells - 1)

    def digits(self, words: NDArray[np.int64], level: int) -> NDArray[np.int64]:
        """The digits int64[rows] of paths int64[words, rows] at a level; 0 is below the root."""
        word, shift = self._place(level)
        digits: NDArray[np.int64] = (words[word] >> shift) & ((1 << self.dimensions) - 1)
        return digits

    def cube_of(self, words: Sequence[int] | NDArray[np.int64], depth: int) -> CubeId:
        """The cube at `depth` (at most `max_depth`) on the way to the path with these words."""
        path = 0
        for word in words:
            path = (path << self._bits_per_word) | int(word)
        unused = len(words) * self._bits_per_word - depth * self.dimensions
        return CubeId(self.dimensions, depth, path >> unused)

    def cubes_of(
        self, words: NDArray[np.int64], depths: NDArray[np.integer[Any]]
    ) -> tuple[list[CubeId], NDArray[np.int64]]:
        """The distinct cubes at these depths on these paths, and the index of each row's cube.

        `words` is int64[words, rows], `depths` int[rows]; the indices are int64[rows].
        """
        levels_kept = depths.astype(np.int64)
        keys = [levels_kept]
        for k, word in enumerate(words):
            unused = np.clip((k + 1) * self.levels_per_word - levels_kept, 0, self.levels_per_word)
            keys.append((word >> (unused * self.dimensions)) << (unused * self.dimensions))
        order = np.lexsort(keys)
        is_first = np.zeros(len(order), dtype=np.bool_)
        is_first[:1] = True
        for key in keys:
            is_first[1:] |= key[order[1:]] != key[order[:-1]]
        cube_of_row = np.empty(len(order), dtype=np.int64)
        cube_of_row[order] = np.cumsum(is_first) - 1
        found = order[is_first]
        columns = [key[found].tolist() for key in keys]
        return [
            self.cube_of(path, depth) for depth, *path in zip(*columns, strict=True)
        ], cube_of_row

    def cube_interval(self, cube: CubeId) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The words of the first and the last path in a cube, both inclusive.

        A cube deeper than `max_depth` has the interval of its ancestor at that depth.
        """
        first, last = self.span(cube, self.words)
        return self.split(first, self.words), self.split(last, self.words)

    def span(self, cube: CubeId, words: int) -> tuple[int, int]:
        """The same interval as two integers of `words` words each, for arithmetic on paths."""
        depth = min(cube.depth, self.max_depth)
        path = cube.path >> ((cube.depth - depth) * self.dimensions)
        free_bits = words * self._bits_per_word - depth * self.dimensions
        if free_bits < 0:
            raise ValueError(f"a cube of depth {depth} does not fit {words} path words")
        return path << free_bits, ((path + 1) << free_bits) - 1

    def split(self, path: int, words: int) -> tuple[int, ...]:
        """Splits an integer of `words` words into its words, the first levels first."""
        bits, mask = self._bits_per_word, (1 << self._bits_per_word) - 1
        return tuple((path >> (bits * k)) & mask for k in range(words - 1, -1, -1))

    @property
    def _bits_per_word(self) -> int:
        return self.levels_per_word * self.dimensions

    def _place(self, level: int) -> tuple[int, int]:
        """The word that holds a level's digit, and the digit's left shift in it."""
        word, place = divmod(level, self.levels_per_word)
        return word, (self.levels_per_word - 1 - place) * self.dimensions
