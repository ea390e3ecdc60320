"""Column statistics in the footers of Parquet files: minimum, maximum and null count.

The Parquet writer records exact values for each row group, in the same order in which Delta
compares values. Executors read the footers with Parquet's own reader.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from enum import Enum, auto
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from qbeast_core.jvm.calls import JavaCalls
from qbeast_core.jvm.gateway import Jvm
from qbeast_core.model.datatypes import EPOCH

_PARQUET = "org.apache.parquet."
PARQUET_READER = _PARQUET + "hadoop.ParquetFileReader"
_METADATA = _PARQUET + "hadoop.metadata."
_LIST = "java.util.List"
_STRING = "java.lang.String"
_REPLACED = "\ufffd"
_LARGEST_ASCII, _LARGEST = "\x7f", "\U0010ffff"
_LAST_OF_ONE_UNIT = 0xFFFF
_LONG_DIGITS = 18
_LARGEST_INT = 2**31 - 1

ColumnChunk = Sequence[str | None]
"""A column in a row group: its path, the number of values and of nulls, whether minimum and maximum
are known, the minimum and the maximum."""


class ValueType(Enum):
    """How the minimum and maximum of a column are read and written."""

    NUMBER = auto()
    FLOAT = auto()
    DATE = auto()
    INSTANT = auto()
    LOCAL_TIME = auto()
    TEXT = auto()
    WITHOUT_ORDER = auto()
    """Only nulls are counted."""


_VALUE_TYPES: Mapping[type[DataType], ValueType] = {
    ByteType: ValueType.NUMBER,
    ShortType: ValueType.NUMBER,
    IntegerType: ValueType.NUMBER,
    LongType: ValueType.NUMBER,
    FloatType: ValueType.FLOAT,
    DoubleType: ValueType.FLOAT,
    DateType: ValueType.DATE,
    TimestampType: ValueType.INSTANT,
    TimestampNTZType: ValueType.LOCAL_TIME,
    BooleanType: ValueType.WITHOUT_ORDER,
    BinaryType: ValueType.WITHOUT_ORDER,
}


def value_type_of(data_type: DataType) -> ValueType | None:
    """How a type's values are read; None if footers lack their extremes or order them otherwise."""
    if isinstance(data_type, DecimalType):
        return ValueType.NUMBER if data_type.precision <= _LONG_DIGITS else None
    if isinstance(data_type, StringType):
        # A string type with a collation is not equal to it, and is not ordered by its bytes.
        return ValueType.TEXT if data_type == StringType() else None
    return _VALUE_TYPES.get(type(data_type))


@dataclass
class FooterStatistics:
    """The statistics in one file's footer, by the column names in the file, extremes as JSON."""

    rows: int | None = None
    """None if the file has none of the columns."""
    minimum: dict[str, str] = field(default_factory=dict)
    maximum: dict[str, str] = field(default_factory=dict)
    nulls: dict[str, int] = field(default_factory=dict)


def column_chunks(
    jvm: Jvm, delta_log: Any, path: Column, value_types: Mapping[str, ValueType], prefix_length: int
) -> Column:
    """The footer of a table's file as a column, in the form that `statistics_of` takes.

    Args:
        path: the path of the file, as in the log.
        value_types: those of top-level columns, by the columns' names in the files.
        prefix_length: the number of UTF-16 units that Delta keeps of a string.

    Returns:
        array<array<array<string>>>: for each row group, the `ColumnChunk` of each column of the
        file, null for columns that are not in `value_types`.
    """
    calls = JavaCalls(jvm)
    long, boolean = (
        jvm.singleton(f"org.apache.spark.sql.types.{name}") for name in ("LongType", "BooleanType")
    )
    paths: dict[_Extreme | None, list[str]] = {}
    for column, value_type in value_types.items():
        paths.setdefault(_EXTREMES[value_type], []).append(_text_of_path(column))

    def of_chunk(chunk: Any) -> Any:
        path_of = calls.text(calls.method(chunk, "getPath", _METADATA + "ColumnPath"))
        statistics = calls.method(chunk, "getStatistics", _PARQUET + "column.statistics.Statistics")
        counts = [
            calls.text(calls.method(chunk, "getValueCount", long)),
            calls.text(calls.method(statistics, "getNumNulls", long)),
            calls.text(calls.method(statistics, "hasNonNullValue", boolean)),
        ]
        known = F.lit(None)
        for extreme, its_paths in paths.items():
            extremes = (
                extreme(calls, statistics, which, prefix_length)
                for which in ("Min", "Max")
                if extreme
            )
            texts = F.array(*map(calls.column, (path_of, *counts)), *extremes)
            known = F.when(calls.column(path_of).isin(its_paths), texts).otherwise(known)
        return calls.expression(known)

    def of_group(group: Any) -> Any:
        chunks = calls.method(group, "getColumns", _LIST)
        return calls.each(chunks, _METADATA + "ColumnChunkMetaData", of_chunk)

    groups = calls.method(_footer(jvm, calls, delta_log, path), "getBlocks", _LIST)
    return calls.column(calls.each(groups, _METADATA + "BlockMetaData", of_group))


def _footer(jvm: Jvm, calls: JavaCalls, delta_log: Any, path: Column) -> Any:
    """The footer of a table's file, a Parquet `ParquetMetadata`."""
    in_table = calls.static(
        "org.apache.spark.sql.delta.util.DeltaFileOperations",
        "absolutePath",
        "org.apache.hadoop.fs.Path",
        calls.literal(str(delta_log.dataPath()), _STRING),
        calls.java_string(calls.expression(path)),
    )
    sent = jvm.jvm.org.apache.spark.util.SerializableConfiguration(delta_log.newDeltaHadoopConf())
    hadoop = calls.method(
        calls.literal(sent, "org.apache.spark.util.SerializableConfiguration"),
        "value",
        "org.apache.hadoop.conf.Configuration",
    )
    return calls.static(
        PARQUET_READER,
        "readFooter",
        _METADATA + "ParquetMetadata",
        hadoop,
        in_table,
    )


def _printed(calls: JavaCalls, statistics: Any, which: str, prefix_length: int) -> Column:
    """The minimum (`Min`) or maximum (`Max`) as Parquet prints it."""
    return calls.column(calls.spark_string(_parquets_text(calls, statistics, which)))


def _stored(calls: JavaCalls, statistics: Any, which: str, prefix_length: int) -> Column:
    """The number that is stored for a date or a time.

    Parquet's text of it does not distinguish years before and after the year 1.
    """
    stored = calls.method(statistics, f"genericGet{which}", "java.lang.Comparable")
    return calls.column(calls.text(stored))


def _beginning(calls: JavaCalls, statistics: Any, which: str, prefix_length: int) -> Column:
    """The part of a string that determines what Delta keeps of it; null if it is not valid UTF-8.

    Java replaces invalid bytes by a character that sorts differently.
    """
    text = calls.column(calls.spark_string(_parquets_text(calls, statistics, which)))
    units = min(2 * prefix_length + 2, _LARGEST_INT)
    return F.when(~text.contains(_REPLACED), F.substring(text, 1, units))


def _parquets_text(calls: JavaCalls, statistics: Any, which: str) -> Any:
    return calls.method(statistics, f"{which.lower()}AsString", _STRING)


_Extreme = Callable[[JavaCalls, Any, str, int], Column]
_EXTREMES: Mapping[ValueType, _Extreme | None] = {
    ValueType.NUMBER: _printed,
    ValueType.FLOAT: _printed,
    ValueType.DATE: _stored,
    ValueType.INSTANT: _stored,
    ValueType.LOCAL_TIME: _stored,
    ValueType.TEXT: _beginning,
    ValueType.WITHOUT_ORDER: None,
}


def statistics_of(
    row_groups: Sequence[Sequence[ColumnChunk | None]],
    value_types: Mapping[str, ValueType],
    prefix_length: int,
) -> FooterStatistics:
    """The statistics of one file, combined from its row groups.

    If one row group lacks the extremes of a column, the file has none for this column.
    """
    found = FooterStatistics(rows=None if row_groups else 0)
    for column, value_type in value_types.items():
        chunks = list(_chunks_of(column, row_groups))
        if len(chunks) < len(row_groups):
            continue
        values = [int(str(chunk[1])) for chunk in chunks]
        nulls = [int(str(chunk[2])) for chunk in chunks]
        found.rows = sum(values)
        if min(nulls, default=0) >= 0:
            found.nulls[column] = sum(nulls)
        if value_type is ValueType.WITHOUT_ORDER:
            continue
        with_values = [chunk for chunk in chunks if chunk[3] == "true"]
        only_nulls = sum(chunk[1] == chunk[2] for chunk in chunks if chunk[3] != "true")
        if not with_values or len(with_values) + only_nulls < len(chunks):
            continue
        for section, position, chosen in ((found.minimum, 4, min), (found.maximum, 5, max)):
            texts = [chunk[position] for chunk in with_values]
            extreme = _combined(texts, value_type, chosen, prefix_length)
            if extreme is not None:
                section[column] = extreme
    return found


def _chunks_of(
    column: str, row_groups: Sequence[Sequence[ColumnChunk | None]]
) -> Iterator[ColumnChunk]:
    path = _text_of_path(column)
    for chunks in row_groups:
        yield from (chunk for chunk in chunks if chunk is not None and chunk[0] == path)


def _combined(
    texts: Sequence[str | None],
    value_type: ValueType,
    chosen: Callable[..., Any],
    prefix_length: int,
) -> str | None:
    """The smallest or largest of the values in Delta's JSON form; None if there is no such form."""
    known = [text for text in texts if text is not None]
    if len(known) < len(texts):
        return None
    if value_type is ValueType.TEXT:
        # Ordered by code points, which is the order of UTF-8 bytes.
        text = chosen(known)
        kept = text[:prefix_length] if chosen is min else shortened_maximum(text, prefix_length)
        return None if kept is None else json.dumps(kept, ensure_ascii=False)
    if value_type is ValueType.FLOAT:
        number: str = chosen(known, key=float)
        return number if math.isfinite(float(number)) else json.dumps(number)
    exact: Decimal = chosen(map(Decimal, known))
    return str(exact) if value_type is ValueType.NUMBER else _moment(int(exact), value_type)


def shortened_maximum(text: str, length: int) -> str | None:
    """What Delta keeps of a column's largest string: a prefix, and a character that is larger than
    the one that follows.

    The prefix has `length` UTF-16 units, or one more to avoid splitting a character. It is extended
    while U+10FFFF follows; None if this doubles its length.
    """
    kept = _first_units(text, length)
    if text and not kept:
        return None
    while sum(map(_units, kept)) <= 2 * length:
        if kept == text:
            return text
        following = text[len(kept)]
        if following != _LARGEST:
            return kept + (_LARGEST_ASCII if following < _LARGEST_ASCII else _LARGEST)
        kept += following
    return None


def _first_units(text: str, length: int) -> str:
    units = 0
    for position, character in enumerate(text):
        if units >= length:
            return text[:position]
        units += _units(character)
    return text


def _units(character: str) -> int:
    """The number of UTF-16 units of a character."""
    return 2 if ord(character) > _LAST_OF_ONE_UNIT else 1


def _moment(stored: int, value_type: ValueType) -> str | None:
    """Days or microseconds since 1970 as JSON; None outside the years 1 to 9999.

    Delta keeps only milliseconds, and its readers allow for the missing microseconds.
    """
    is_date = value_type is ValueType.DATE
    since = timedelta(stored) if is_date else timedelta(milliseconds=stored // 1000)
    try:
        moment = EPOCH.replace(tzinfo=None) + since
    except OverflowError:
        return None
    if is_date:
        return f'"{moment.date().isoformat()}"'
    zone = "Z" if value_type is ValueType.INSTANT else ""
    return f'"{moment.isoformat(timespec="milliseconds")}{zone}"'


def _text_of_path(column: str) -> str:
    """A top-level column in the form that Parquet's `ColumnPath` prints."""
    return f"[{column}]"
