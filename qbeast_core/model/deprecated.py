"""Transformations found only in older tables. They are read, and the first change replaces them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from qbeast_core.errors import CorruptMetadata
from qbeast_core.model.coordinate import (
    EmptyTransformation,
    NullValueDraw,
    Transformation,
    field_of,
)
from qbeast_core.model.datatypes import DataType, Number
from qbeast_core.model.linear import IdentityTransformation, LinearTransformation
from qbeast_core.model.quantiles import (
    TextTable,
    is_ascending,
    string_step,
    text_table,
    texts_of,
    unsorted,
    utf16_order,
)
from qbeast_core.model.unusable import UnusableTransformation


@dataclass(frozen=True, slots=True)
class StringHistogram(Transformation):
    """The predecessor of string quantiles; null counts as the string "null"."""

    class_name: ClassVar[str] = "StringHistogramTransformation"

    histogram: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.histogram) < 2 or not is_ascending(self.histogram, utf16_order):
            raise ValueError(
                f"a histogram needs at least two sorted strings, got {self.histogram!r:.200}"
            )

    def transform(self, value: Any) -> float:
        return string_step(self.histogram, "null" if value is None else value)

    def coordinate_table(self) -> TextTable:
        """The same function of strings as a table."""
        return text_table(self.histogram)

    def to_json(self) -> dict[str, Any]:
        return self._named(histogram=self.histogram)

    @staticmethod
    def from_json(json_object: Mapping[str, Any]) -> StringHistogram | UnusableTransformation:
        texts = texts_of(json_object, "histogram")
        if not is_ascending(texts, utf16_order):
            return unsorted(json_object)
        return StringHistogram(texts)

    def is_superseded_by(self, other: Transformation) -> bool:
        if isinstance(other, StringHistogram):
            return other.histogram != self.histogram
        return not isinstance(other, EmptyTransformation)


@dataclass(frozen=True, slots=True)
class IdentityToZero(Transformation):
    """A column with a single value, in versions up to 0.7: every coordinate is 0.0."""

    class_name: ClassVar[str] = "IdentityToZeroTransformation"

    identity_value: Number

    def transform(self, value: Any) -> float:
        return 0.0

    def to_json(self) -> dict[str, Any]:
        return self._named(identityValue=self.identity_value)

    @staticmethod
    def from_json(json_object: Mapping[str, Any]) -> IdentityToZero:
        value = field_of(json_object, "identityValue")
        if type(value) not in (int, float):
            raise CorruptMetadata(f"identityValue must be a number, got {value!r:.200}")
        return IdentityToZero(value)

    def is_superseded_by(self, other: Transformation) -> bool:
        return self._as_identity(other).is_superseded_by(other)

    def merged_with(self, other: Transformation, null_value: NullValueDraw) -> Transformation:
        if not self.is_superseded_by(other):
            return self
        return self._as_identity(other).merged_with(other, null_value)

    def _as_identity(self, other: Transformation) -> IdentityTransformation:
        """The current equivalent, with the type of the new data because the old form has none."""
        if isinstance(other, (IdentityTransformation, LinearTransformation)):
            return IdentityTransformation(self.identity_value, other.data_type)
        return IdentityTransformation(self.identity_value, DataType.DOUBLE)


@dataclass(frozen=True, slots=True)
class NullToZero(Transformation):
    """A column without values, in versions up to 0.7: every coordinate is 0.0."""

    class_name: ClassVar[str] = "NullToZeroTransformation$"

    def transform(self, value: Any) -> float:
        return 0.0

    def to_json(self) -> dict[str, Any]:
        return self._named()

    @staticmethod
    def from_json(_: Mapping[str, Any]) -> NullToZero:
        return NullToZero()

    def is_superseded_by(self, other: Transformation) -> bool:
        if isinstance(other, IdentityTransformation):
            return other.identity_value is not None
        return not isinstance(other, (NullToZero, EmptyTransformation))


IDENTITY_OF_0_2 = "IdentityTransformation$"
"""The class name of a column with a single value in version 0.2."""


def read_identity_of_0_2(json_object: Mapping[str, Any]) -> UnusableTransformation:
    """The transformation of a column with a single value in version 0.2."""
    return UnusableTransformation(json_object, "version 0.2 used the lowest byte of the value")
