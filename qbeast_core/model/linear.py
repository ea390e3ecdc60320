"""Coordinates of ordered columns: the position in the range of values (docs/format.md 4.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from qbeast_core.errors import CorruptMetadata
from qbeast_core.model.coordinate import NullValueDraw, Transformation, field_of
from qbeast_core.model.datatypes import (
    FLOATING,
    MILLIS_PER_MINUTE,
    STANDARD_TIME_MILLIS,
    WHOLE_MINUTES_MILLIS,
    DataType,
    Number,
    to_bound,
    to_ordinate,
)


@dataclass(frozen=True, slots=True)
class LinearTransformation(Transformation):
    """`(value - minimum) / (maximum - minimum)`, computed in the order that the format defines.

    Bounds and `null_value` are ints for integer, long, timestamp and date columns (the last two in
    milliseconds since 1970, UTC) and floats for other types. `null_value` is None if the metadata
    lacks it; this library then places nulls at the minimum.
    """

    class_name: ClassVar[str] = "LinearTransformation"

    minimum: Number
    maximum: Number
    null_value: Number | None
    data_type: DataType

    def __post_init__(self) -> None:
        if not self.data_type.is_ordered:
            raise ValueError(f"a linear transformation cannot order {self.data_type.value}")
        if not self.minimum < self.maximum:
            raise ValueError(
                f"a linear transformation needs minimum < maximum, "
                f"got {self.minimum} and {self.maximum}"
            )

    def transform(self, value: Any) -> float:
        """The coordinate; outside [0, 1] for finite values out of range.

        NaN and +infinity map to 1.0, -infinity to 0.0.
        """
        null = self.minimum if self.null_value is None else self.null_value
        ordinate = to_ordinate(null if value is None else value, self.data_type)
        assert ordinate is not None
        if math.isinf(ordinate):
            return 1.0 if ordinate > 0 else 0.0
        coordinate = (ordinate - float(self.minimum)) * self.scale
        # Not finite if the value is NaN, or if the range overflows or underflows a double.
        if math.isfinite(coordinate):
            return coordinate
        return 0.0 if coordinate == -math.inf else 1.0

    def may_have(self, minimum: Any, maximum: Any) -> bool:
        """Whether rows placed by this transformation can have these extremes; None is unknown.

        Always true for floats, which may be infinite, and for dates, whose time zone is unknown.
        """
        if self.data_type in FLOATING or self.data_type is DataType.DATE:
            return True
        below, above = (
            None if each is None else to_ordinate(each, self.data_type)
            for each in (minimum, maximum)
        )
        slack = 0
        if self.data_type is DataType.TIMESTAMP:
            if below is not None and below < STANDARD_TIME_MILLIS:
                return True
            slack = 1  # statistics are rounded down
            if below is None or below < WHOLE_MINUTES_MILLIS:
                # Delta's text lacks up to a minute of the offset, so the extremes are a minute
                # wider, and can be off by another one.
                slack += 2 * MILLIS_PER_MINUTE
        return (below is None or below >= float(self.minimum) - slack) and (
            above is None or above <= float(self.maximum) + slack
        )

    @property
    def scale(self) -> float:
        """`1 / (maximum - minimum)`; 0 or infinity if a double cannot hold it."""
        extent = float(self.maximum) - float(self.minimum)
        return 1.0 / extent if extent else math.inf

    def to_json(self) -> dict[str, Any]:
        null = self.null_value
        return self._named(
            minNumber=_stored(self.minimum, self.data_type),
            maxNumber=_stored(self.maximum, self.data_type),
            **({} if null is None else {"nullValue": _stored(null, self.data_type)}),
            orderedDataType=self.data_type.value,
        )

    @staticmethod
    def from_json(json_object: Mapping[str, Any]) -> LinearTransformation:
        data_type = DataType.of_name(field_of(json_object, "orderedDataType"))
        null = json_object.get("nullValue")
        return LinearTransformation(
            minimum=_read(field_of(json_object, "minNumber"), data_type),
            maximum=_read(field_of(json_object, "maxNumber"), data_type),
            null_value=None if null is None else _read(null, data_type),
            data_type=data_type,
        )

    def is_superseded_by(self, other: Transformation) -> bool:
        if isinstance(other, LinearTransformation) and other.data_type is self.data_type:
            return self.minimum > other.minimum or self.maximum < other.maximum
        if isinstance(other, IdentityTransformation):
            value = other.identity_value
            return value is not None and not self.minimum <= value <= self.maximum
        return Transformation.is_superseded_by(self, other)

    def merged_with(self, other: Transformation, null_value: NullValueDraw) -> Transformation:
        if not self.is_superseded_by(other):
            return self
        if isinstance(other, LinearTransformation) and other.data_type is self.data_type:
            return self._extended((other.minimum, other.maximum), null_value)
        if isinstance(other, IdentityTransformation) and other.identity_value is not None:
            return self._extended((other.identity_value,), null_value)
        return other

    def _extended(self, values: tuple[Number, ...], null_value: NullValueDraw) -> Transformation:
        return range_transformation(
            min(self.minimum, *values), max(self.maximum, *values), self.data_type, null_value
        )


@dataclass(frozen=True, slots=True)
class IdentityTransformation(Transformation):
    """A column with a single value or none: every coordinate is 0.0."""

    class_name: ClassVar[str] = "IdentityTransformation"

    identity_value: Number | None
    data_type: DataType

    def transform(self, value: Any) -> float:
        return 0.0

    def to_json(self) -> dict[str, Any]:
        value = self.identity_value
        return self._named(
            identityValue=None if value is None else _stored(value, self.data_type),
            orderedDataType=self.data_type.value,
        )

    @staticmethod
    def from_json(json_object: Mapping[str, Any]) -> IdentityTransformation:
        data_type = DataType.of_name(field_of(json_object, "orderedDataType"))
        value = json_object.get("identityValue")
        return IdentityTransformation(None if value is None else _read(value, data_type), data_type)

    def is_superseded_by(self, other: Transformation) -> bool:
        if isinstance(other, IdentityTransformation):
            if other.identity_value is None or self.identity_value is None:
                return other.identity_value is not None
            # Compared as doubles: values that round to the same double cannot span a range.
            return float(other.identity_value) != float(self.identity_value)
        return Transformation.is_superseded_by(self, other)

    def merged_with(self, other: Transformation, null_value: NullValueDraw) -> Transformation:
        value = self.identity_value
        if value is None or not self.is_superseded_by(other):
            return Transformation.merged_with(self, other, null_value)
        if isinstance(other, IdentityTransformation) and other.identity_value is not None:
            lowest, highest = sorted((value, other.identity_value))
            return range_transformation(lowest, highest, other.data_type, null_value)
        if isinstance(other, LinearTransformation):
            return other.merged_with(self, null_value)
        return other


def range_transformation(
    minimum: Any, maximum: Any, data_type: DataType, null_value: NullValueDraw
) -> LinearTransformation | IdentityTransformation:
    """The transformation of a column whose finite values lie between `minimum` and `maximum`.

    Accepts Python values as Spark returns them, and None for a column without values. A single
    value, or values that round to the same double, give the identity transformation.
    """
    if minimum is None or maximum is None:
        known = maximum if minimum is None else minimum
        return IdentityTransformation(
            None if known is None else to_bound(known, data_type), data_type
        )
    lowest, highest = to_bound(minimum, data_type), to_bound(maximum, data_type)
    if float(lowest) == float(highest):
        return IdentityTransformation(lowest, data_type)
    drawn = null_value(lowest, highest, data_type)
    return LinearTransformation(lowest, highest, drawn, data_type)


def _stored(value: Number, data_type: DataType) -> Any:
    """A bound as the JSON writer needs it: 32-bit floats are written differently from doubles."""
    return np.float32(value) if data_type is DataType.FLOAT else value


def _read(value: Any, data_type: DataType) -> Number:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return to_bound(value, data_type)
        except ValueError as problem:
            raise CorruptMetadata(f"a bound of type {data_type.value}: {problem}") from None
    raise CorruptMetadata(f"a bound of type {data_type.value} must be a number, got {value!r:.200}")
