"""Finds the cubes that may hold a row that satisfies a filter (docs/format.md 9.2).

A filter is a small tree of the classes below, independent of any engine. Columns are compared as
they are stored: a comparison of a cast column (`cast(a as float) = 1`) is `Anything`.

The result is conservative: `False` means that no row of the cube can satisfy the filter. Equal
values have equal coordinates, and transformations never reverse the order, so an interval of values
maps to an interval of coordinates, ends included.

>>> And((Comparison("a", ">=", 5), Comparison("a", "<", 7), In("s", ("x", "y"))))
And(parts=(Comparison(column='a', op='>=', value=5), Comparison(column='a', op='<', value=7), \
In(column='s', values=('x', 'y'))))
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from qbeast_core.model.datatypes import FLOATING, STANDARD_TIME_MILLIS, DataType, to_millis
from qbeast_core.model.revision import Revision
from qbeast_core.model.transformation import (
    HashTransformation,
    LinearTransformation,
    NumericQuantiles,
    StringHistogram,
    StringQuantiles,
    Transformation,
)
from qbeast_core.model.transformer import HashTransformer, Transformer

_CHARSETS = ("ascii", "latin-1", "cp1252")
"""The default charsets of JVMs whose locale is not UTF-8."""
DATE_SLACK_MILLIS = 26 * 3_600_000
"""Dates are midnights; other writers use those of their own time zone, up to a day off."""
_CALENDAR_SLACK_MILLIS = 11 * 86_400_000
_GREGORIAN_MILLIS = to_millis(datetime.date(1582, 11, 1))


@dataclass(frozen=True)
class And:
    """All parts are true; also true without parts."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Or:
    """At least one part is true; false without parts."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Comparison:
    """Compares a column with an int, float, Decimal, str, date, or datetime with a time zone."""

    column: str
    op: Literal["<", "<=", "=", ">=", ">"]
    value: Any


@dataclass(frozen=True)
class In:
    """A column equals one of the values; None among them matches nothing."""

    column: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class IsNull:
    """A column is null."""

    column: str


@dataclass(frozen=True)
class Anything:
    """A condition that the index cannot evaluate: any row may satisfy it."""


Predicate = And | Or | Comparison | In | IsNull | Anything


def may_match(
    predicate: Predicate,
    revision: Revision,
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Whether each of many cubes of a revision may hold a row that satisfies the filter.

    `lower` and `upper` are float64[cubes, n], the corners of the cubes; the result is bool[cubes].
    Any cube may satisfy a condition that the index cannot evaluate, such as one on a column that is
    not indexed or with a value of another type than the column.
    """
    return _Cubes(revision, lower, upper).matching(predicate)


_Intervals = list[tuple[float, float]]
"""Disjoint intervals of coordinates in [0, 1], ascending, both ends included."""

_EVERYWHERE: _Intervals = [(0.0, 1.0)]

REPLACED = "\ufffd"
"""What Java reads instead of bytes that are not UTF-8, so a text with it may stand for others."""


class _Cubes:
    """The cubes to which a filter is applied."""

    def __init__(
        self, revision: Revision, lower: NDArray[np.float64], upper: NDArray[np.float64]
    ) -> None:
        self.lower = lower
        # The upper end belongs to the cube only if it is 1.0; a larger number then makes `<` work.
        self.end = np.where(upper >= 1.0, 2.0, upper)
        self.columns = {
            transformer.column: (dimension, transformer, transformation)
            for dimension, (transformer, transformation) in enumerate(
                zip(revision.transformers, revision.transformations, strict=False)
            )
        }

    def matching(self, predicate: Predicate) -> NDArray[np.bool_]:
        match predicate:
            case And():
                return self._all(predicate)
            case Or(parts):
                result = np.zeros(len(self.lower), dtype=np.bool_)
                for part in parts:
                    result |= self.matching(part)
                return result
            case Comparison(column) | In(column) | IsNull(column) if column in self.columns:
                return self._inside(column, self._intervals(predicate))
            case _:
                return np.ones(len(self.lower), dtype=np.bool_)

    def _all(self, predicate: And) -> NDArray[np.bool_]:
        """Intersects conditions on the same column first: `a > 5 and a < 3` matches no cube."""
        result = np.ones(len(self.lower), dtype=np.bool_)
        of_column: dict[str, _Intervals] = {}
        for part in _flattened(predicate):
            if isinstance(part, Comparison | In | IsNull) and part.column in self.columns:
                known = of_column.get(part.column, _EVERYWHERE)
                of_column[part.column] = _common(known, self._intervals(part))
            else:
                result &= self.matching(part)
        for column, intervals in of_column.items():
            result &= self._inside(column, intervals)
        return result

    def _inside(self, column: str, intervals: _Intervals) -> NDArray[np.bool_]:
        """bool[cubes]: whether the cube overlaps an interval."""
        dimension = self.columns[column][0]
        low, high = np.array(intervals).reshape(-1, 2).T
        # The first interval that does not end before the cube; infinity if there is none.
        first = np.searchsorted(high, self.lower[:, dimension], side="left")
        inside: NDArray[np.bool_] = np.append(low, np.inf)[first] < self.end[:, dimension]
        return inside

    def _intervals(self, predicate: Comparison | In | IsNull) -> _Intervals:
        """The coordinates of the values of an indexed column that satisfy the predicate."""
        _, transformer, transformation = self.columns[predicate.column]
        match predicate:
            case Comparison(_, op, value):
                return _satisfying(op, value, transformer, transformation)
            case In(_, values):
                each = [
                    _satisfying("=", value, transformer, transformation)
                    for value in values
                    if value is not None
                ]
                return _joined([interval for intervals in each for interval in intervals])
            case IsNull():
                if not isinstance(transformation, _PLACE_NULLS):
                    return _EVERYWHERE
                if isinstance(transformation, LinearTransformation) and (
                    transformation.null_value is None
                ):
                    return _EVERYWHERE
                nulls: list[Any] = [None]
                if isinstance(transformation, StringQuantiles):
                    # qbeast-spark can turn a histogram, whose nulls lie at "null", into quantiles.
                    nulls.append("null")
                coordinates = [_clamped(transformation.transform(null)) for null in nulls]
                return _joined([(each, each) for each in coordinates])


_PLACE_NULLS = (
    LinearTransformation,
    NumericQuantiles,
    HashTransformation,
    StringQuantiles,
    StringHistogram,
)
"""The transformations that give null a coordinate."""


def _satisfying(
    op: str, value: Any, transformer: Transformer, transformation: Transformation
) -> _Intervals:
    """The coordinates of the values v for which `v op value` holds."""
    try:
        coordinates = sorted(_coordinates(op, value, transformer, transformation))
    except (ValueError, ArithmeticError):
        return _EVERYWHERE
    low, high = _clamped(coordinates[0]), _clamped(coordinates[-1])
    is_bounded = isinstance(transformation, LinearTransformation) and (
        transformation.data_type not in FLOATING
    )
    match op:
        case "=" if isinstance(transformation, HashTransformation):
            return _joined([(each, each) for each in coordinates])
        case "=" | ">" | ">=" if is_bounded and coordinates[0] > 1.0:
            return []
        case "=" | "<" | "<=" if is_bounded and coordinates[-1] < 0.0:
            return []
        case "=":
            return [(low, high)]
        case "<" | "<=":
            return [(0.0, high)]
        case ">" | ">=":
            return [(low, 1.0)]
    return _EVERYWHERE


def _coordinates(
    op: str, value: Any, transformer: Transformer, transformation: Transformation
) -> list[float]:
    """The coordinates of a value, unsorted and not clamped. Raises ValueError if it has none."""
    if value is None or isinstance(value, bool):
        raise ValueError(f"an index does not compare {value!r}")
    if isinstance(value, str) and REPLACED in value:
        raise ValueError("this string may stand for bytes that are not UTF-8")
    stored = [value]
    match transformation:
        case LinearTransformation(data_type=data_type) | NumericQuantiles(data_type=data_type):
            is_instant = isinstance(value, datetime.datetime)
            if data_type is DataType.DATE:
                if is_instant:
                    raise ValueError("comparing dates and timestamps depends on the time zone")
                stored = _stored_millis(to_millis(value), is_date=True)
            elif is_instant is not (data_type is DataType.TIMESTAMP):
                raise ValueError("timestamps are only compared with timestamps")
            elif is_instant:
                stored = _stored_millis(to_millis(value), is_date=False)
            elif isinstance(transformation, NumericQuantiles) and value == 0:
                # In Java's order, -0.0 is below 0.0; filters take them as equal.
                stored = [-math.ulp(0.0), 0.0]
        case HashTransformation():
            if op != "=" or not isinstance(transformer, HashTransformer):
                raise ValueError("a hash has no order")
            stored = _hashed_values(value, transformer)
        case StringQuantiles() | StringHistogram():
            # Filters order strings by UTF-8 bytes, transformations by UTF-16 units. The orders
            # differ for characters from U+D800 on, where the surrogates start.
            if op != "=" and isinstance(value, str) and any(c >= "\ud800" for c in value):
                raise ValueError("the order of this string depends on its encoding")
            if op in ("<", "<=") and isinstance(value, str) and not value.isascii():
                # Bytes that are not UTF-8 are placed as U+FFFD, but can be below the value's bytes.
                ascii_part = next(i for i, c in enumerate(value) if not c.isascii())
                stored = [value[:ascii_part] + "\uffff"]
        case _:
            raise ValueError("every value has the same coordinate")
    return [transformation.transform(each) for each in stored]


def _stored_millis(millis: float, *, is_date: bool) -> list[float]:
    """The range of numbers that writers may have placed a date or a timestamp at.

    qbeast-spark uses `java.util.Date`, which has the Julian calendar until October 1582 and, in
    most time zones, local mean time until the 19th century.
    """
    is_local = is_date or millis < STANDARD_TIME_MILLIS
    slack = DATE_SLACK_MILLIS if is_local else 0
    if millis < _GREGORIAN_MILLIS:
        slack += _CALENDAR_SLACK_MILLIS
    return [millis - slack, millis + slack]


def _hashed_values(value: Any, transformer: HashTransformer) -> list[Any]:
    """The stored values that equal a value, in the type whose text was hashed."""
    data_type = transformer.data_type
    if data_type is DataType.STRING and isinstance(value, str):
        if value.isascii():
            return [value]
        # qbeast-spark hashes the bytes in the JVM's default charset.
        return [value, *(value.encode(charset, "replace") for charset in _CHARSETS)]
    is_whole = isinstance(value, int | float | Decimal) and int(value) == value
    if data_type in (DataType.INTEGER, DataType.LONG) and is_whole:
        return [int(value)]
    # The text of a float depends on the Java version that wrote the row (docs/format.md 4.4), that
    # of a decimal on its scale, which revisions do not store.
    raise ValueError(f"{value!r} has no hash in a column of type {data_type.value}")


def _clamped(coordinate: float) -> float:
    """Clamps like paths: rows outside the range of their revision lie in its outermost cubes."""
    return 1.0 if math.isnan(coordinate) else min(max(coordinate, 0.0), 1.0)


def _joined(intervals: _Intervals) -> _Intervals:
    """The union of intervals in any order."""
    joined: _Intervals = []
    for low, high in sorted(intervals):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    return joined


def _common(some: _Intervals, others: _Intervals) -> _Intervals:
    """The intersection of two unions of intervals; all three are sorted and disjoint."""
    common: _Intervals = []
    i = j = 0
    while i < len(some) and j < len(others):
        low, high = max(some[i][0], others[j][0]), min(some[i][1], others[j][1])
        if low <= high:
            common.append((low, high))
        if some[i][1] < others[j][1]:
            i += 1
        else:
            j += 1
    return common


def _flattened(predicate: And) -> Iterator[Predicate]:
    for part in predicate.parts:
        if isinstance(part, And):
            yield from _flattened(part)
        else:
            yield part
