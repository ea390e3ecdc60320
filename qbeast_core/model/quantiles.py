"""Quantile coordinates, which spread skewed data evenly over [0, 1] (docs/format.md 4.5)."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from qbeast_core.errors import CorruptMetadata
from qbeast_core.model.coordinate import EmptyTransformation, Transformation, field_of
from qbeast_core.model.datatypes import DataType, to_ordinate
from qbeast_core.model.unusable import UnusableTransformation

_LARGEST = float(np.finfo(np.float64).max)

T = TypeVar("T")
K = TypeVar("K", float, bytes)


class Knot(NamedTuple):
    """A distinct quantile.

    `at` is the coordinate of the value itself, `after` that of the values just above it. The two
    may differ if the quantile is repeated.
    """

    value: Any
    at: float
    after: float


@dataclass(frozen=True, eq=False)
class NumericTable:
    """Numeric quantiles as tables, for arrays of values and for expressions in an engine.

    The *slot* of a value is `2i + 1` if it equals `values[i]`, else `2i` where i is the number of
    `values` below it. Its coordinate is `(start[slot] + (value - low[slot]) / width[slot]) /
    intervals`, bit for bit the result of `NumericQuantiles.transform`. The first and the last slot
    are infinitely wide, so all finite values in them have the coordinate 0.0 or 1.0. The formula
    replaces infinities by the finite numbers farthest from zero, and NaN by the largest of them.
    """

    values: NDArray[np.float64]
    """float64[k], the distinct quantiles in ascending order; no negative zero."""
    start: NDArray[np.float64]
    """float64[2k + 1], like `low` and `width`."""
    low: NDArray[np.float64]
    width: NDArray[np.float64]
    intervals: float

    def coordinates(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The coordinates of an array of ordinates; both are float64[n]."""
        rank = np.searchsorted(self.values, numbers)
        found = self.values[np.minimum(rank, len(self.values) - 1)] == numbers
        slot = 2 * rank + found
        finite = np.fmin(np.fmax(numbers, -_LARGEST), _LARGEST)
        inside = (finite - self.low[slot]) / self.width[slot]
        placed: NDArray[np.float64] = (self.start[slot] + inside) / self.intervals
        return placed


@dataclass(frozen=True, eq=False)
class TextTable:
    """Sorted strings as a table; slots are those of `NumericTable`, each with one coordinate."""

    values: tuple[str, ...]
    """The k distinct strings, ascending in Java's order."""
    placed: NDArray[np.float64]
    """float64[2k + 1]: the coordinate of each slot."""

    def coordinates(self, texts: Sequence[str | None]) -> NDArray[np.float64]:
        """The coordinates of a sequence of strings, float64[n]; NaN for None."""
        keys = [utf16_order(text) for text in self.values]
        return np.array([math.nan if t is None else self._placed(keys, t) for t in texts])

    def _placed(self, keys: list[bytes], text: str) -> float:
        key = utf16_order(text)
        rank = bisect_left(keys, key)
        found = rank < len(keys) and keys[rank] == key
        return float(self.placed[2 * rank + found])


@dataclass(frozen=True, slots=True)
class NumericQuantiles(Transformation):
    """The position of a number among quantiles, interpolated between them; null maps to 0.0."""

    class_name: ClassVar[str] = "CDFNumericQuantilesTransformation"

    quantiles: tuple[float, ...]
    data_type: DataType

    def __post_init__(self) -> None:
        if not self.data_type.is_ordered:
            raise ValueError(f"numeric quantiles cannot order {self.data_type.value}")
        if not all(map(math.isfinite, self.quantiles)):
            raise ValueError(f"quantiles must be finite, got {self.quantiles}")
        _check_quantiles(self.quantiles, float)
        if not all(math.isfinite(high - low) for low, high in pairwise(self.quantiles)):
            raise ValueError(
                f"the distance between adjacent quantiles must fit a double: {self.quantiles}"
            )

    def transform(self, value: Any) -> float:
        """The coordinate, always in [0, 1]; NaN sorts above every number."""
        ordinate = to_ordinate(value, self.data_type)
        if ordinate is None:
            return 0.0
        if math.isnan(ordinate):
            return 1.0
        quantiles, last = self.quantiles, len(self.quantiles) - 1
        found, place = search(quantiles, ordinate)
        if found:
            return place / last
        if place in (0, len(quantiles)):
            return 1.0 if place else 0.0
        below, above = quantiles[place - 1], quantiles[place]
        return ((place - 1) + (ordinate - below) / (above - below)) / last

    def knots(self) -> tuple[Knot, ...]:
        """The distinct quantiles in order.

        Between two knots the coordinate is `(r + (v - low) / (high - low)) / m` with
        `r = low.after * m` (an integer) and `m = len(quantiles) - 1`.
        """
        return _knots(self.quantiles, float)

    def coordinate_table(self) -> NumericTable:
        """The same function as tables."""
        knots, intervals = self.knots(), len(self.quantiles) - 1
        values = np.array([knot.value for knot in knots]) + 0.0
        slots = 2 * len(knots) + 1
        start, low, width = np.zeros(slots), np.zeros(slots), np.ones(slots)
        low[1::2] = values
        # Recover the integers from which the coordinates were computed.
        start[1::2] = np.round([knot.at * intervals for knot in knots])
        start[2:-1:2] = np.round([knot.after * intervals for knot in knots[:-1]])
        low[2:-1:2] = values[:-1]
        width[2:-1:2] = np.diff(values)
        start[-1], width[0], width[-1] = intervals, math.inf, math.inf
        return NumericTable(values, start, low, width, float(intervals))

    def to_json(self) -> dict[str, Any]:
        return self._named(quantiles=self.quantiles, dataType=self.data_type.value)

    @staticmethod
    def from_json(json_object: Mapping[str, Any]) -> NumericQuantiles | UnusableTransformation:
        numbers = field_of(json_object, "quantiles")
        if not isinstance(numbers, list) or not all(type(q) in (int, float) for q in numbers):
            raise CorruptMetadata(f"quantiles must be a list of numbers, got {numbers!r:.200}")
        quantiles = tuple(map(float, numbers))
        data_type = DataType.of_name(field_of(json_object, "dataType"))
        if all(map(math.isfinite, quantiles)) and not is_ascending(quantiles, float):
            return unsorted(json_object)
        return NumericQuantiles(quantiles, data_type)

    def is_superseded_by(self, other: Transformation) -> bool:
        if isinstance(other, NumericQuantiles):
            return other.quantiles != self.quantiles
        return not isinstance(other, EmptyTransformation)


@dataclass(frozen=True, slots=True)
class StringQuantiles(Transformation):
    """The position of a string among quantiles, a step function; null maps to 0.0.

    Strings are ordered by UTF-16 code units, as in Java.
    """

    class_name: ClassVar[str] = "CDFStringQuantilesTransformation"

    quantiles: tuple[str, ...]

    def __post_init__(self) -> None:
        _check_quantiles(self.quantiles, utf16_order)

    def transform(self, value: Any) -> float:
        return 0.0 if value is None else string_step(self.quantiles, value)

    def knots(self) -> tuple[Knot, ...]:
        """The distinct quantiles in order; values between two of them map to `low.after`."""
        return _knots(self.quantiles, utf16_order)

    def coordinate_table(self) -> TextTable:
        """The same function as a table."""
        return text_table(self.quantiles)

    def to_json(self) -> dict[str, Any]:
        return self._named(quantiles=self.quantiles)

    @staticmethod
    def from_json(json_object: Mapping[str, Any]) -> StringQuantiles | UnusableTransformation:
        texts = texts_of(json_object, "quantiles")
        if not is_ascending(texts, utf16_order):
            return unsorted(json_object)
        return StringQuantiles(texts)

    def is_superseded_by(self, other: Transformation) -> bool:
        if isinstance(other, StringQuantiles):
            return other.quantiles != self.quantiles
        return not isinstance(other, EmptyTransformation)


def string_step(quantiles: Sequence[str], value: Any) -> float:
    """The coordinate of a string among sorted strings: that of the last one not above it."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a value of a string column")
    found, place = search([utf16_order(q) for q in quantiles], utf16_order(value))
    return (place if found else max(place - 1, 0)) / (len(quantiles) - 1)


def search(ordered: Sequence[K], value: K) -> tuple[bool, int]:
    """Scala's binary search: (True, an index of the value) or (False, the insertion point).

    Which of several equal values it finds is part of the format (docs/format.md 4.5).
    """
    low, high = 0, len(ordered)
    while low < high:
        middle = low + (high - low - 1) // 2
        if value < ordered[middle]:
            high = middle
        elif value > ordered[middle]:
            low = middle + 1
        else:
            return True, middle
    return False, low


def utf16_order(text: str) -> bytes:
    """A key that sorts strings as Java does."""
    return text.encode("utf-16-be", "surrogatepass")


def is_ascending(values: Sequence[T], key: Callable[[T], K]) -> bool:
    """Whether the values are in ascending order of their keys; values may repeat."""
    keys = [key(value) for value in values]
    return not any(low > high for low, high in pairwise(keys))


def unsorted(json_object: Mapping[str, Any]) -> UnusableTransformation:
    """Quantiles or a histogram whose coordinates do not follow the order of the values.

    qbeast-spark does not check the order. It sorts the strings that it measures by their UTF-8
    bytes, but searches them by their UTF-16 units.
    """
    return UnusableTransformation(json_object, "its values are not in ascending order")


def texts_of(json_object: Mapping[str, Any], field: str) -> tuple[str, ...]:
    """A JSON field that is a list of strings. Raises CorruptMetadata."""
    texts = field_of(json_object, field)
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise CorruptMetadata(f"{field} must be a list of strings, got {texts!r:.200}")
    return tuple(texts)


def text_table(ordered: Sequence[str]) -> TextTable:
    """`string_step` for these strings as a table."""
    knots = _knots(ordered, utf16_order)
    placed = np.zeros(2 * len(knots) + 1)
    placed[1::2] = [knot.at for knot in knots]
    placed[2::2] = [knot.after for knot in knots]
    return TextTable(tuple(knot.value for knot in knots), placed)


def _check_quantiles(quantiles: Sequence[T], key: Callable[[T], K]) -> None:
    if len(quantiles) < 2:
        raise ValueError(f"at least two quantiles are needed, got {list(quantiles)}")
    if not is_ascending(quantiles, key):
        raise ValueError(f"quantiles must be in ascending order, got {list(quantiles)!r:.200}")


def _knots(quantiles: Sequence[T], key: Callable[[T], K]) -> tuple[Knot, ...]:
    keys, last = [key(q) for q in quantiles], len(quantiles) - 1
    last_index = {k: index for index, k in enumerate(keys)}
    return tuple(
        Knot(quantiles[index], search(keys, k)[1] / last, index / last)
        for k, index in last_index.items()
    )
