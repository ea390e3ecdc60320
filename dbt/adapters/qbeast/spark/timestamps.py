"""Fetches rows whose timestamps are in the session's time zone and name its offset.

PySpark returns a timestamp in the operating system's time zone, and without it. If a macro renders
such a value into SQL, Spark reads it in the session's time zone, which is another moment. An aware
value is the same moment wherever it is read: in SQL, in `dbt source freshness`, in Python.
"""

from datetime import datetime, timedelta, timezone
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

_EPOCH = datetime(1970, 1, 1)


def fetch(frame: DataFrame, limit: int | None = None) -> list[Row]:
    """All rows of a frame, or the first `limit` of them.

    A column of type TIMESTAMP has aware values. Inside arrays, maps and structs, which dbt turns
    into JSON, timestamps have the time of the session's zone without an offset. TIMESTAMP_NTZ stays
    as it is.
    """
    types = [field.dataType for field in frame.schema.fields]
    if [local_type(each) for each in types] == types:
        return _rows(frame, limit)
    names = [f"c{index}" for index in range(len(types))]  # those of a query may be repeated
    columns = [_sent(name, each) for name, each in zip(names, types, strict=True)]
    row = Row(*frame.columns)
    return [
        row(*map(_received, values, types))
        for values in _rows(frame.toDF(*names).select(*columns), limit)
    ]


def local_type(data_type: DataType) -> DataType:
    """The type with TIMESTAMP_NTZ in place of TIMESTAMP, also inside; keys of maps stay.

    >>> local_type(ArrayType(TimestampType())).simpleString()
    'array<timestamp_ntz>'
    """
    if isinstance(data_type, TimestampType):
        return TimestampNTZType()
    if isinstance(data_type, ArrayType):
        return ArrayType(local_type(data_type.elementType), data_type.containsNull)
    if isinstance(data_type, MapType):
        value = local_type(data_type.valueType)
        return MapType(data_type.keyType, value, data_type.valueContainsNull)
    if isinstance(data_type, StructType):
        return StructType(
            [
                StructField(field.name, local_type(field.dataType), field.nullable, field.metadata)
                for field in data_type.fields
            ]
        )
    return data_type


def aware(local: datetime, epoch_micros: int) -> datetime:
    """A moment with the offset of its local time.

    Args:
        local: the local time, without an offset.
        epoch_micros: the moment, in microseconds since 1970 in UTC.

    >>> str(aware(datetime(1970, 1, 1, 2), 0))
    '1970-01-01 02:00:00+02:00'
    """
    return local.replace(tzinfo=timezone(local - _EPOCH - timedelta(microseconds=epoch_micros)))


def _sent(name: str, data_type: DataType) -> Column:
    """What Spark sends for a column.

    For a timestamp, this is its local time and its moment. Spark knows the rules of every zone id
    that it accepts, and a local time in the year 9999 may be a moment that Python cannot express.
    """
    column = F.col(name)
    local = local_type(data_type)
    if isinstance(data_type, TimestampType):
        return F.struct(column.cast(local), F.unix_micros(column)).alias(name)
    return column if local == data_type else column.cast(local).alias(name)


def _received(value: Any, data_type: DataType) -> Any:
    if not isinstance(data_type, TimestampType):
        return value
    local, epoch_micros = value
    return None if local is None else aware(local, epoch_micros)


def _rows(frame: DataFrame, limit: int | None) -> list[Row]:
    return frame.collect() if limit is None else frame.take(limit)
