"""Derives a condition on the target table from the keys of a merge's source, to skip files."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NumericType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from qbeast_core.spark.columns import column, column_from
from qbeast_core.spark.schema import find_field
from qbeast_core.tree.query import REPLACED

LISTED_KEYS = 1000
"""Up to this many distinct keys are listed; with more, only their range is used."""
LONGEST_TEXT = 1000
"""The number of characters up to which a text can skip files, so that the driver gets few bytes."""

_MAX_DIGITS = 38
_WHOLE_DIGITS: dict[type[NumericType], int] = {
    ByteType: 3,
    ShortType: 5,
    IntegerType: 10,
    LongType: 20,
}


def key_condition(
    source: DataFrame, on: Sequence[str], table: StructType, alias: str
) -> Column | None:
    """A condition that every row of the table with a key of the source satisfies.

    Args:
        on: the columns of the key, in the table's spelling.
        alias: the table's alias.

    Returns:
        The condition; true if the keys do not restrict the rows. None if no row of the source has
        a key without nulls, so that nothing can match.
    """
    ordered = [name for name in on if _is_ordered(source.schema, table, name)]
    whole = source.where(reduce(Column.__and__, (column(name).isNotNull() for name in on)))
    if not ordered:
        return F.lit(True) if whole.limit(1).count() else None
    keys = whole.select(
        *(
            _stored(column(name), _type(source.schema, name)).alias(f"key{i}")
            for i, name in enumerate(ordered)
        )
    )
    listed = keys.distinct().limit(LISTED_KEYS + 1).collect()
    if not listed:
        return None
    if len(listed) <= LISTED_KEYS:
        values = {name: {row[i] for row in listed} for i, name in enumerate(ordered)}
    else:
        ends = [end(key) for key in map(F.col, keys.columns) for end in (F.min, F.max)]
        found = keys.select(*ends).first()
        assert found is not None
        values = {name: {found[2 * i], found[2 * i + 1]} for i, name in enumerate(ordered)}
    conditions = []
    for name, known in values.items():
        if any(map(_is_unusable, known)):
            continue
        literal = _literal(_type(source.schema, name), _type(table, name))
        target = column_from(name, alias)
        conditions.append(target.between(literal(min(known)), literal(max(known))))
        if len(listed) <= LISTED_KEYS:
            conditions.append(target.isin(*map(literal, sorted(known))))
    return reduce(Column.__and__, conditions, F.lit(True))


def _is_unusable(value: Any) -> bool:
    """Whether the value does not restrict the rows that equal it.

    It is NaN, a text that is cut, or one that may stand for bytes that are not UTF-8.
    """
    if isinstance(value, str):
        return len(value) > LONGEST_TEXT or REPLACED in value
    return isinstance(value, float) and math.isnan(value)


def _is_ordered(source: StructType, table: StructType, name: str) -> bool:
    """Whether the key's values have the same order in the source and in the table."""
    here, there = _type(source, name), _type(table, name)
    if isinstance(here, NumericType) and isinstance(there, NumericType):
        # Without ANSI mode, Spark compares a float and a whole number as floats.
        same_kind = isinstance(here, FloatType) == isinstance(there, FloatType)
        return same_kind and _is_compared_exactly(here, there)
    # Python compares strings by their characters, and a collation does not.
    is_plain = here == StringType() or isinstance(here, (DateType, TimestampType))
    return here == there and is_plain


def _is_compared_exactly(here: NumericType, there: NumericType) -> bool:
    """Whether Spark compares numbers of these types by all of their digits.

    It rounds decimals whose common type would have more than 38 digits. A literal of the same
    value has fewer digits than the type, so it would be compared exactly.
    """
    floating = (FloatType, DoubleType)
    if here == there or isinstance(here, floating) or isinstance(there, floating):
        return True
    wholes, fractions = zip(_digits(here), _digits(there), strict=True)
    return max(wholes) + max(fractions) <= _MAX_DIGITS


def _digits(number: NumericType) -> tuple[int, int]:
    """The digits before and after the decimal point, as Spark counts them for a common type."""
    if isinstance(number, DecimalType):
        return number.precision - number.scale, number.scale
    return _WHOLE_DIGITS[type(number)], 0


def _type(schema: StructType, name: str) -> DataType:
    found = find_field(schema, name)
    assert found is not None
    return found.dataType


def _stored(value: Column, data_type: DataType) -> Column:
    """The value, with timestamps and dates as numbers: Python would convert timestamps to its own
    time zone, and lacks some of Spark's dates. Long texts are cut, but stay recognizable."""
    if isinstance(data_type, StringType):
        return F.substring(value, 1, LONGEST_TEXT + 1)
    if isinstance(data_type, TimestampType):
        return F.unix_micros(value)
    return F.unix_date(value) if isinstance(data_type, DateType) else value


def _literal(stored: DataType, target: DataType) -> Callable[[Any], Column]:
    def make(value: Any) -> Column:
        if isinstance(stored, TimestampType):
            return F.timestamp_micros(F.lit(value).cast("bigint"))
        if isinstance(stored, DateType):
            return F.date_from_unix_date(F.lit(value).cast("int"))
        # If the types are equal, use the table's type, or Spark casts the column to compare it.
        return F.lit(value).cast(target) if stored == target else F.lit(value)

    return make
