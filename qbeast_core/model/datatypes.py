"""The column types that can be indexed, and their values as numbers (docs/format.md 4.1)."""

from __future__ import annotations

import datetime
import math
import re
import time
from decimal import Decimal
from enum import Enum
from typing import Any

import numpy as np

from qbeast_core.errors import CorruptMetadata, UnsupportedColumnType

SUPPORTED_SPARK_TYPES = (
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal",
    "timestamp",
    "date",
    "string",
)
"""The Spark types that can be indexed; decimals of any precision and scale."""

MILLIS_PER_MINUTE = 60_000
MILLIS_PER_DAY = 86_400_000
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)

Number = int | float
"""A bound or an ordinate: int for integer, long, timestamp and date, float for other types."""


class DataType(Enum):
    """A column type; the value is the name stored in revisions."""

    INTEGER = "IntegerDataType"
    LONG = "LongDataType"
    FLOAT = "FloatDataType"
    DOUBLE = "DoubleDataType"
    DECIMAL = "DecimalDataType"
    TIMESTAMP = "TimestampDataType"
    DATE = "DateDataType"
    STRING = "StringDataType"

    @property
    def is_ordered(self) -> bool:
        """Whether values have an ordinate, which `linear` requires."""
        return self is not DataType.STRING

    @property
    def is_whole(self) -> bool:
        """Whether bounds are integers; timestamps and dates count milliseconds since 1970."""
        return self in _WHOLE

    @staticmethod
    def of_spark(spark_type: str) -> DataType:
        """The type of a column with this Spark `simpleString`, such as `decimal(12,2)`.

        Bytes and shorts are stored as integers. Raises UnsupportedColumnType.
        """
        found = _OF_SPARK.get("decimal" if _DECIMAL.fullmatch(spark_type) else spark_type)
        if found is None:
            raise UnsupportedColumnType(
                f"a column of type {spark_type} cannot be indexed; "
                f"supported types: {', '.join(SUPPORTED_SPARK_TYPES)}"
            )
        return found

    @staticmethod
    def of_name(name: Any) -> DataType:
        """The type with this stored name. Raises CorruptMetadata for an unknown one."""
        try:
            return DataType(name)
        except ValueError:
            known = ", ".join(data_type.value for data_type in DataType)
            raise CorruptMetadata(f"unknown data type {name!r:.200}; known: {known}") from None


def to_ordinate(value: Any, data_type: DataType) -> float | None:
    """A column's value as the double that transformations compute with; None stays None.

    Dates are days * 86,400,000 in UTC, timestamps are floored to milliseconds, decimals are
    rounded to the nearest double. Raises ValueError for a value of another type.
    """
    if value is None:
        return None
    if data_type in (DataType.TIMESTAMP, DataType.DATE):
        return float(to_millis(value))
    if isinstance(value, (int, float, Decimal, np.number)) and data_type.is_ordered:
        try:
            return float(value)
        except OverflowError:
            raise ValueError(f"{value} is too large for a double") from None
    raise ValueError(f"{value!r} is not a value of a column of type {data_type.value}")


def to_bound(value: Any, data_type: DataType) -> Number:
    """A column's minimum or maximum in the form that revisions store.

    An integer of 64 bits for integer, long, timestamp and date columns, else a double; bounds of
    float columns are rounded to 32 bits. Raises ValueError for NaN, infinities and numbers that the
    type cannot hold: bounds are finite.
    """
    if data_type.is_whole:
        return _whole_bound(value, data_type)
    ordinate = to_ordinate(value, data_type)
    if ordinate is not None and data_type is DataType.FLOAT:
        with np.errstate(over="ignore"):
            ordinate = float(np.float32(ordinate))
    if ordinate is None or not math.isfinite(ordinate):
        raise ValueError(f"{value!r} cannot be the bound of a column")
    return ordinate


def _whole_bound(value: Any, data_type: DataType) -> int:
    if data_type in (DataType.TIMESTAMP, DataType.DATE):
        bound = to_millis(value)
    elif isinstance(value, (int, np.integer)):
        bound = int(value)
    else:
        ordinate = to_ordinate(value, data_type)
        if ordinate is None or not math.isfinite(ordinate):
            raise ValueError(f"{value!r} cannot be the bound of a column")
        if not ordinate.is_integer():
            raise ValueError(f"{value!r} is not an integer")
        bound = int(ordinate)
    if not -(2**63) <= bound < 2**63:
        raise ValueError(f"{value!r:.50} is not a number of 64 bits")
    return bound


def now_millis() -> int:
    """The current time in milliseconds since 1970."""
    return int(time.time() * 1000)


def to_millis(value: Any) -> int:
    """A date (midnight UTC) or a timestamp (floored) in milliseconds since 1970.

    Integers are taken as milliseconds. Raises ValueError for a datetime without a time zone.
    """
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone; timestamps are instants")
        return (value - EPOCH) // datetime.timedelta(milliseconds=1)
    if isinstance(value, datetime.date):
        return (value.toordinal() - EPOCH.toordinal()) * MILLIS_PER_DAY
    if isinstance(value, (int, np.integer)):
        return int(value)
    raise ValueError(f"{value!r} is neither a date nor a timestamp")


_DECIMAL = re.compile(r"decimal\(\d+,-?\d+\)")
_OF_SPARK = {
    "tinyint": DataType.INTEGER,
    "smallint": DataType.INTEGER,
    "int": DataType.INTEGER,
    "bigint": DataType.LONG,
    "float": DataType.FLOAT,
    "double": DataType.DOUBLE,
    "decimal": DataType.DECIMAL,
    "timestamp": DataType.TIMESTAMP,
    "date": DataType.DATE,
    "string": DataType.STRING,
}
_WHOLE = frozenset({DataType.INTEGER, DataType.LONG, DataType.TIMESTAMP, DataType.DATE})
STANDARD_TIME_MILLIS = to_millis(datetime.date(1900, 1, 1))
"""Before this, qbeast-spark may place an instant by the local mean time of a time zone."""
WHOLE_MINUTES_MILLIS = to_millis(datetime.date(1972, 2, 1))
"""Since then, time zones differ from UTC by whole minutes. Monrovia was the last with seconds."""
FLOATING = frozenset({DataType.FLOAT, DataType.DOUBLE})
"""Types with NaN and infinities. Rows with these values lie in the outermost cubes whatever the
bounds are; all other rows lie between the bounds of their revision."""
