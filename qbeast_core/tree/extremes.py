"""Which filters the rows of a file can satisfy, by the statistics of its columns."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from qbeast_core.tree.query import (
    REPLACED,
    And,
    Anything,
    Comparison,
    In,
    IsNull,
    Or,
    Predicate,
)


@dataclass(frozen=True)
class Extremes:
    """What the statistics of a file say of a column; by default nothing.

    Values are of the classes that `tree.query.Comparison` has.
    """

    minimum: Any = None
    """A lower bound of the values that are not null; None if unknown."""
    maximum: Any = None
    """An upper bound of the values that are not null; None if unknown."""
    only_nulls: bool = False
    no_nulls: bool = False


FileFilter = Callable[[Mapping[str, Extremes]], bool]


def columns_of(predicate: Predicate) -> set[str] | None:
    """The columns whose extremes decide a filter; None if a part of it needs more than extremes."""
    match predicate:
        case And(parts) | Or(parts):
            found: set[str] = set()
            for part in parts:
                columns = columns_of(part)
                if columns is None:
                    return None
                found |= columns
            return found
        case Comparison(column) | In(column) | IsNull(column):
            return {column}
        case Anything():
            return None


def file_filter(predicate: Predicate) -> FileFilter:
    """A function that says whether a row of a file can satisfy the filter, by the file's extremes.

    Make it once for many files. A column without extremes can satisfy everything.
    """
    match predicate:
        case And(parts):
            filters = [file_filter(part) for part in parts]
            return lambda extremes: all(each(extremes) for each in filters)
        case Or(parts):
            filters = [file_filter(part) for part in parts]
            return lambda extremes: any(each(extremes) for each in filters)
        case Comparison(column, op, value):
            return lambda extremes: _may_hold(extremes.get(column, _UNKNOWN), op, value)
        case In(column, values):
            may_be_in = _list_filter([value for value in values if value is not None])
            return lambda extremes: may_be_in(extremes.get(column, _UNKNOWN))
        case IsNull(column):
            return lambda extremes: not extremes.get(column, _UNKNOWN).no_nulls
        case Anything():
            return lambda _: True


def _list_filter(values: list[Any]) -> Callable[[Extremes], bool]:
    """Whether a column may equal one of these values: a binary search instead of a comparison with
    each of them."""
    if any(map(_may_stand_for_others, values)):
        return lambda known: not known.only_nulls
    try:
        ascending = sorted(values)
    except TypeError:  # values of several types
        return lambda known: any(_may_hold(known, "=", value) for value in values)

    def may_be_in(known: Extremes) -> bool:
        if known.only_nulls:
            return False
        low = known.minimum
        first = 0 if low is None else bisect_left(ascending, low)
        return first < len(ascending) and _may_hold(known, "=", ascending[first])

    return may_be_in


def _may_stand_for_others(value: Any) -> bool:
    # Spark's order has NaN above all numbers.
    return bool(value != value) or (isinstance(value, str) and REPLACED in value)


def _may_hold(known: Extremes, op: str, value: Any) -> bool:
    if known.only_nulls:
        return False
    if _may_stand_for_others(value):
        return True
    reaches_up = known.maximum is None or known.maximum >= value
    reaches_down = known.minimum is None or known.minimum <= value
    match op:
        case "=":
            return reaches_down and reaches_up
        case ">=":
            return reaches_up
        case "<=":
            return reaches_down
        case ">":
            # NaN is above infinity, and is infinity in the statistics.
            above = known.maximum is None or known.maximum > value
            return bool(above or known.maximum == value == math.inf)
        case _:
            return known.minimum is None or bool(known.minimum < value)


_UNKNOWN = Extremes()
