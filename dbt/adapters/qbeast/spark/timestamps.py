"""Fetches rows whose timestamps are in the session's time zone, and whose values JSON can express.

PySpark returns a timestamp in the operating system's time zone, and without it. If a macro renders
such a value into SQL, Spark reads it in the session's time zone, which is another moment. As with
other connections to Spark, values are therefore local times of the session, without an offset.

dbt writes maps and structs as JSON, whose keys are texts and numbers. Spark turns other keys into
texts, and intervals with years or months, for which Python has no type.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta, timezone
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    CalendarIntervalType,
    DataType,
    DecimalType,
    FractionalType,
    IntegralType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    YearMonthIntervalType,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_in_utc: ContextVar[bool] = ContextVar("in_utc", default=False)


@contextmanager
def in_utc() -> Iterator[None]:
    """Inside the block, this thread fetches timestamps as times in UTC, with that offset."""
    token = _in_utc.set(True)
    try:
        yield
    finally:
        _in_utc.reset(token)


def fetch(frame: DataFrame, limit: int | None = None) -> list[Row]:
    """All rows of a frame, or the first `limit` of them.

    Timestamps have the local time of the session's zone, also inside arrays, maps and structs.
    TIMESTAMP_NTZ stays as it is. The keys of maps are texts, numbers or booleans. Structs are
    dictionaries, because dbt would take a Row as a list.
    """
    types = [field.dataType for field in frame.schema.fields]
    sent = as_sent(frame)
    if sent is frame and not any(map(_is_nested, types)):
        return _rows(frame, limit)
    row = Row(*frame.columns)
    return [row(*map(_received, values, types)) for values in _rows(sent, limit)]


def as_sent(frame: DataFrame) -> DataFrame:
    """The frame with the types that Spark can send to Python, and write."""
    types = [field.dataType for field in frame.schema.fields]
    if [fetched_type(each) for each in types] == types:
        return frame
    names = [f"c{index}" for index in range(len(types))]  # those of a query may be repeated
    columns = [_sent(name, each) for name, each in zip(names, types, strict=True)]
    return frame.toDF(*names).select(*columns)


def fetched_type(data_type: DataType) -> DataType:
    """The type with TIMESTAMP_NTZ in place of TIMESTAMP, and texts in place of what Python lacks.

    >>> fetched_type(ArrayType(TimestampType())).simpleString()
    'array<timestamp_ntz>'
    >>> fetched_type(MapType(TimestampType(), TimestampType())).simpleString()
    'map<string,timestamp_ntz>'
    """
    if isinstance(data_type, TimestampType):
        return TimestampNTZType()
    if isinstance(data_type, (CalendarIntervalType, YearMonthIntervalType)):
        return StringType()
    if isinstance(data_type, ArrayType):
        return ArrayType(fetched_type(data_type.elementType), data_type.containsNull)
    if isinstance(data_type, MapType):
        key = data_type.keyType if _is_key_of_json(data_type.keyType) else StringType()
        return MapType(key, fetched_type(data_type.valueType), data_type.valueContainsNull)
    if isinstance(data_type, StructType):
        return StructType(
            [
                StructField(
                    field.name, fetched_type(field.dataType), field.nullable, field.metadata
                )
                for field in data_type.fields
            ]
        )
    return data_type


def _is_key_of_json(data_type: DataType) -> bool:
    if isinstance(data_type, DecimalType):
        return False
    return isinstance(data_type, (StringType, IntegralType, FractionalType, BooleanType))


def moment(epoch_micros: int) -> datetime:
    """The time in UTC for a number of microseconds since 1970.

    >>> str(moment(-1))
    '1969-12-31 23:59:59.999999+00:00'
    """
    return _EPOCH + timedelta(microseconds=epoch_micros)


def _sent(name: str, data_type: DataType) -> Column:
    """What Spark sends for a column; PySpark would express a moment in the system's time zone."""
    column = F.col(name)
    fetched = fetched_type(data_type)
    if _is_moment(data_type):
        return F.unix_micros(column).alias(name)
    return column if fetched == data_type else column.cast(fetched).alias(name)


def _received(value: Any, data_type: DataType) -> Any:
    return moment(value) if value is not None and _is_moment(data_type) else with_names(value)


def with_names(value: Any) -> Any:
    """A fetched value with a dictionary in place of each Row, also inside lists and maps.

    >>> with_names([Row(a=1, b={"k": Row(c=None)})])
    [{'a': 1, 'b': {'k': {'c': None}}}]
    """
    if isinstance(value, Row):
        value = dict(zip(value.__fields__, value, strict=True))
    if isinstance(value, dict):
        return {key: with_names(each) for key, each in value.items()}
    return [with_names(each) for each in value] if isinstance(value, list) else value


def _is_nested(data_type: DataType) -> bool:
    return isinstance(data_type, (ArrayType, MapType, StructType))


def _is_moment(data_type: DataType) -> bool:
    return isinstance(data_type, TimestampType) and _in_utc.get()


def _rows(frame: DataFrame, limit: int | None) -> list[Row]:
    return frame.collect() if limit is None else frame.take(limit)
