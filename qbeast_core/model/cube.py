"""Cube ids: the nodes of the OTree, a 2^n-ary tree over the unit cube (docs/format.md 6).

A cube is its path from the root: one bit per dimension at each level, 1 for the upper half. The
path is one Python int, so comparing, truncating and testing containment are bit shifts.

>>> cube = CubeId.parse("QgQ", dimensions=2)
>>> cube.text, cube.parent.text, cube.lower, cube.upper
('QgQ', 'Qg', (0.25, 0.625), (0.375, 0.75))
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache, total_ordering

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_BITS_PER_SYMBOL = 6
MAX_LEVELS = 1074
"""Coordinates are doubles, which have no bit below 2^-1074 by which to divide a cube further."""


@total_ordering
@dataclass(frozen=True, slots=True)
class CubeId:
    """A cube of the OTree over `dimensions` columns, `depth` levels below the root.

    `path` has `depth * dimensions` bits. Level 0 is the most significant; within a level,
    dimension 0 is. Cubes of one tree are ordered depth first, parents before their children.
    """

    dimensions: int
    depth: int
    path: int

    def __post_init__(self) -> None:
        if self.dimensions < 1 or self.depth < 0:
            raise ValueError(
                f"a cube needs dimensions >= 1 and depth >= 0, got {self.dimensions}, {self.depth}"
            )
        if self.path < 0 or self.path.bit_length() > self.dimensions * self.depth:
            raise ValueError(
                f"path {self.path} does not fit a cube of depth {self.depth} "
                f"in {self.dimensions} dimensions"
            )

    @staticmethod
    def root(dimensions: int) -> CubeId:
        """The cube that contains every point."""
        return CubeId(dimensions, 0, 0)

    @staticmethod
    def parse(text: str, dimensions: int) -> CubeId:
        """Parses the string form; `""` is the root. Raises ValueError if it is not valid."""
        if len(text) > MAX_LEVELS * -(-dimensions // _BITS_PER_SYMBOL):
            raise ValueError(f"cube id {text!r:.100} has more than {MAX_LEVELS:,} levels")
        return _parse(text, dimensions)

    @property
    def text(self) -> str:
        """The string form used in block tags: Base64 symbols, level by level."""
        n = self.dimensions
        if n <= _BITS_PER_SYMBOL:
            level_mask, unused_bits = (1 << n) - 1, _BITS_PER_SYMBOL - n
            shifts = range(n * (self.depth - 1), -1, -n)
            return "".join(
                [_ALPHABET[((self.path >> shift) & level_mask) << unused_bits] for shift in shifts]
            )
        return "".join(_level_text(digit, n) for digit in self._digits())

    @property
    def parent(self) -> CubeId:
        """The cube one level up. Raises ValueError for the root."""
        if self.depth == 0:
            raise ValueError("the root cube has no parent")
        return CubeId(self.dimensions, self.depth - 1, self.path >> self.dimensions)

    def ancestors(self) -> Iterator[CubeId]:
        """The cubes that contain this one, nearest first and the root last; not the cube itself."""
        path = self.path
        for depth in range(self.depth - 1, -1, -1):
            path >>= self.dimensions
            yield CubeId(self.dimensions, depth, path)

    def children(self) -> Iterator[CubeId]:
        """The 2^n cubes one level down, in order."""
        first = self.path << self.dimensions
        for digit in range(1 << self.dimensions):
            yield CubeId(self.dimensions, self.depth + 1, first | digit)

    def contains(self, other: CubeId) -> bool:
        """Whether `other` is this cube or lies below it."""
        levels_below = other.depth - self.depth
        return (
            levels_below >= 0
            and self.dimensions == other.dimensions
            and other.path >> (self.dimensions * levels_below) == self.path
        )

    @property
    def lower(self) -> tuple[float, ...]:
        """The inclusive lower corner, one coordinate per dimension."""
        cells = 1 << self.depth
        return tuple(k / cells for k in self._cell())

    @property
    def upper(self) -> tuple[float, ...]:
        """The upper corner: exclusive, except that a coordinate of 1.0 is inclusive.

        Rounded up where doubles are too coarse (depth above 53), so that no point is excluded.
        """
        cells = 1 << self.depth
        return tuple(_divided_upwards(k + 1, cells) for k in self._cell())

    @property
    def preorder_key(self) -> tuple[bytes, int]:
        """A sort key in the order of the cubes; faster than comparing cubes in large lists."""
        bits = self.dimensions * self.depth
        whole_bytes = (bits + 7) // 8
        return (self.path << (8 * whole_bytes - bits)).to_bytes(whole_bytes, "big"), self.depth

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, CubeId) or other.dimensions != self.dimensions:
            return NotImplemented
        levels_below = other.depth - self.depth
        if levels_below >= 0:
            prefix = other.path >> (self.dimensions * levels_below)
            return self.path < prefix or (self.path == prefix and levels_below > 0)
        return (self.path >> (-levels_below * self.dimensions)) < other.path

    def __str__(self) -> str:
        return self.text

    def _digits(self) -> Iterator[int]:
        """The n bits of each level as a number, top level first."""
        mask = (1 << self.dimensions) - 1
        for shift in range(self.dimensions * (self.depth - 1), -1, -self.dimensions):
            yield (self.path >> shift) & mask

    def _cell(self) -> list[int]:
        """The cube's position among the 2^depth cells of each dimension."""
        if self.depth == 0:
            return [0] * self.dimensions
        bits = format(self.path, f"0{self.dimensions * self.depth}b")
        return [int(bits[i :: self.dimensions], 2) for i in range(self.dimensions)]


def _divided_upwards(numerator: int, power_of_two: int) -> float:
    quotient = numerator / power_of_two
    over, under = quotient.as_integer_ratio()
    if over * power_of_two < numerator * under:
        return math.nextafter(quotient, math.inf)
    return quotient


def _level_text(digit: int, dimensions: int) -> str:
    """One level's n bits as symbols of 6 bits; the last symbol is padded with low zero bits."""
    symbols = -(-dimensions // _BITS_PER_SYMBOL)
    padded = digit << (symbols * _BITS_PER_SYMBOL - dimensions)
    return "".join(
        _ALPHABET[(padded >> (_BITS_PER_SYMBOL * place)) & 63]
        for place in range(symbols - 1, -1, -1)
    )


@lru_cache(maxsize=1 << 17)
def _parse(text: str, dimensions: int) -> CubeId:
    symbols = -(-dimensions // _BITS_PER_SYMBOL)
    if len(text) % symbols:
        raise ValueError(
            f"cube id {text!r} has {len(text)} symbols, not a multiple of the {symbols} that "
            f"each level takes in {dimensions} dimensions"
        )
    unused_bits = symbols * _BITS_PER_SYMBOL - dimensions
    path = 0
    if symbols == 1:
        digit_of_symbol = _digits_of_symbols(dimensions)
        try:
            for symbol in text:
                path = path << dimensions | digit_of_symbol[symbol]
            return CubeId(dimensions, len(text), path)
        except KeyError:
            path = 0  # the loop below raises the precise error
    for start in range(0, len(text), symbols):
        digit = 0
        for symbol in text[start : start + symbols]:
            value = _VALUE_OF_SYMBOL.get(symbol)
            if value is None:
                raise ValueError(f"cube id {text!r} has {symbol!r}, which is not a Base64 symbol")
            digit = digit << _BITS_PER_SYMBOL | value
        if digit & ((1 << unused_bits) - 1):
            raise ValueError(
                f"cube id {text!r} sets bits beyond its {dimensions} dimensions "
                f"in {text[start : start + symbols]!r}"
            )
        path = path << dimensions | digit >> unused_bits
    return CubeId(dimensions, len(text) // symbols, path)


@cache
def _digits_of_symbols(dimensions: int) -> dict[str, int]:
    """The symbols that each encode a whole level, for up to 6 dimensions."""
    unused_bits = _BITS_PER_SYMBOL - dimensions
    return {_ALPHABET[digit << unused_bits]: digit for digit in range(1 << dimensions)}


_VALUE_OF_SYMBOL = {symbol: value for value, symbol in enumerate(_ALPHABET)}
