"""Which filters the rows of a file can satisfy, by the statistics of its columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
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
    """Not above any value that is not null; None if unknown."""
    maximum: Any = None
    """Not below any value that is not null; None if unknown."""
    only_nulls: bool = False
    no_nulls: bool = False


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


def may_satisfy(predicate: Predicate, extremes: Mapping[str, Extremes]) -> bool:
    """Whether a row of a file can satisfy the filter. Unknown columns can satisfy everything."""
    match predicate:
        case And(parts):
            return all(may_satisfy(part, extremes) for part in parts)
        case Or(parts):
            return any(may_satisfy(part, extremes) for part in parts)
        case Comparison(column, op, value):
            return _may_hold(extremes.get(column, _UNKNOWN), op, value)
        case In(column, values):
            known = extremes.get(column, _UNKNOWN)
            return any(_may_hold(known, "=", value) for value in values if value is not None)
        case IsNull(column):
            return not extremes.get(column, _UNKNOWN).no_nulls
        case Anything():
            return True


def _may_hold(known: Extremes, op: str, value: Any) -> bool:
    if known.only_nulls:
        return False
    if value != value:  # NaN, whose place in Spark's order is above all numbers
        return True
    if isinstance(value, str) and REPLACED in value:
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
