"""Coordinates by quantiles: even over [0, 1] for data that is not (FORMAT section 5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, TypeVar

from qbeast_core.errors import CorruptMetadata
from qbeast_core.model.coordinate import EmptyTransformation, Transformation, field_of
from qbeast_core.model.datatypes import DataType, to_ordinate

T = TypeVar("T")
K = TypeVar("K", float, bytes)


class Knot(NamedTuple):
    """A distinct quantile. With repeated quantiles its values' coordinate is not the end's.

    `at` is the coordinate of the value itself, `after` that of the values just above it.
    """

    value: Any
    at: float
    after: float


@dataclass(frozen=True, slots=True)
class NumericQuantiles(Transformation):
    """The place of a number among quantiles, interpolated between them; null has 0.0."""

    class_name: ClassVar[str] = "CDFNumericQuantilesTransformation"

    quantiles: tuple[float, ...]
    data_type: DataType

    def __post_init__(self) -> None:
        if not self.data_type.is_ordered:
            raise ValueError(f"numeric quantiles cannot order {self.data_type.value}")
        if not all(map(math.isfinite, self.quantiles)):
            raise ValueError(f"quantiles must be finite, got {self.quantiles}")
        _check_quantiles(self.quantiles, float)

    def transform(self, value: Any) -> float:
        """The coordinate, always in [0, 1]; NaN is above every number."""
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
        `r = low.after * m` (a whole number) and `m = len(quantiles) - 1`.
        """
        return _knots(self.quantiles, float)

    def to_json(self) -> dict[str, Any]:
        return self._named(quantiles=self.quantiles, dataType=self.data_type.value)

    @staticmethod
    def from_json(json_object: Mapping[str, Any]) -> NumericQuantiles:
        numbers = field_of(json_object, "quantiles")
        if not isinstance(numbers, list) or not all(type(q) in (int, float) for q in numbers):
            raise CorruptMetadata(f"quantiles must be a list of numbers, got {numbers!r:.200}")
        return NumericQuantiles(
            tuple(map(float, numbers)), DataType.of_name(field_of(json_object, "dataType"))
        )

    def is_superseded_by(self, other: Transformation) -> bool:
        if isinstance(other, NumericQuantiles):
            return other.quantiles != self.quantiles
        return not isinstance(other, EmptyTransformation)


@dataclass(frozen=True, slots=True)
class StringQuantiles(Transformation):
    """The place of a text among quantiles, a step function; null has 0.0.

    Texts are ordered by their UTF-16 code units, as Java orders strings.
    """

    class_name: ClassVar[str] = "CDFStringQuantilesTransformation"

    quantiles: tuple[str, ...]

    def __post_init__(self) -> None:
        _check_quantiles(self.quantiles, utf16_order)

    def transform(self, value: Any) -> float:
        return 0.0 if value is None else string_step(self.quantiles, value)

    def knots(self) -> tuple[Knot, ...]:
        """The distinct quantiles in order; between two of them `low.after` is the coordinate."""
        return _knots(self.quantiles, utf16_order)

    def to_json(self) -> dict[str, Any]:
        return self._named(quantiles=self.quantiles)

    @staticmethod
    def from_json(json_object: Mapping[str, Any]) -> StringQuantiles:
        return StringQuantiles(texts_of(json_object, "quantiles"))

    def is_superseded_by(self, other: Transformation) -> bool:
        if isinstance(other, StringQuantiles):
            return other.quantiles != self.quantiles
        return not isinstance(other, EmptyTransformation)


def string_step(quantiles: Sequence[str], value: Any) -> float:
    """A text's coordinate among sorted texts: that of the last one not above it."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no value of a string column")
    found, place = search([utf16_order(q) for q in quantiles], utf16_order(value))
    return (place if found else max(place - 1, 0)) / (len(quantiles) - 1)


def search(ordered: Sequence[K], value: K) -> tuple[bool, int]:
    """Scala's binary search: (True, an index of the value) or (False, the insertion point).

    Which index is found among equal ones is part of the format.
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
    """A key that sorts texts as Java does."""
    return text.encode("utf-16-be", "surrogatepass")


def texts_of(json_object: Mapping[str, Any], field: str) -> tuple[str, ...]:
    """A JSON field that is a list of texts. Raises CorruptMetadata."""
    texts = field_of(json_object, field)
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise CorruptMetadata(f"{field} must be a list of texts, got {texts!r:.200}")
    return tuple(texts)


def _check_quantiles(quantiles: Sequence[T], key: Callable[[T], K]) -> None:
    if len(quantiles) < 2:
        raise ValueError(f"at least two quantiles are needed, got {list(quantiles)}")
    keys = [key(q) for q in quantiles]
    if any(low > high for low, high in pairwise(keys)):
        raise ValueError(f"quantiles must be in ascending order, got {list(quantiles)!r:.200}")


def _knots(quantiles: Sequence[T], key: Callable[[T], K]) -> tuple[Knot, ...]:
    keys, last = [key(q) for q in quantiles], len(quantiles) - 1
    last_index = {k: index for index, k in enumerate(keys)}
    return tuple(
        Knot(quantiles[index], search(keys, k)[1] / last, index / last)
        for k, index in last_index.items()
    )
