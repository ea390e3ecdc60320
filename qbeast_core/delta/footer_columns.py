"""What the footers of Parquet files say of columns: the extremes of their values, and their nulls.

The Parquet writer finds them for each row group, exactly, in the order that Delta compares values
by too. Footers are read on the executors, by calls of Parquet's own reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum, auto
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
)

from qbeast_core.delta.java_calls import JavaCalls
from qbeast_core.delta.jvm import Jvm

_PARQUET = "org.apache.parquet."
_METADATA = _PARQUET + "hadoop.metadata."
_LIST = "java.util.List"
_STRING = "java.lang.String"
_REPLACED = "\ufffd"
_LONG_DIGITS = 18
_EPOCH = date(1970, 1, 1)

ColumnChunk = Sequence[str | None]
"""Of a column in a row group: its path, how many values and how many nulls it has, whether extremes
are known, the smallest and the largest value."""


class Kind(Enum):
    """How the extremes of a column are read and written."""

    NUMBER = auto()
    DATE = auto()
    TEXT = auto()


def kind_of(data_type: DataType) -> Kind | None:
    """None for types whose extremes footers leave out or tell differently from Delta.

    Those of floats ignore NaN, and decimals of more digits are compared otherwise.
    """
    if isinstance(data_type, DecimalType):
        return Kind.NUMBER if data_type.precision <= _LONG_DIGITS else None
    if isinstance(data_type, ByteType | ShortType | IntegerType | LongType):
        return Kind.NUMBER
    if isinstance(data_type, DateType):
        return Kind.DATE
    # One with a collation is not equal to it: its order is not that of its bytes.
    return Kind.TEXT if data_type == StringType() else None


@dataclass
class FooterStatistics:
    """What one file's footer says, by the names that columns have in it."""

    rows: int | None = None
    """None where it has none of the columns."""
    minimum: dict[str, str | Decimal] = field(default_factory=dict)
    maximum: dict[str, str | Decimal] = field(default_factory=dict)
    nulls: dict[str, int] = field(default_factory=dict)


def column_chunks(
    jvm: Jvm, delta_log: Any, path: Column, kinds: Mapping[str, Kind], prefix_length: int
) -> Column:
    """What the footer of a table's file says of columns, for `statistics_of`.

    Args:
        path: of the file, as it is in the log.
        kinds: of top-level columns, by their names in the files.
        prefix_length: the characters that Delta keeps of a text.

    Returns:
        array<array<array<string>>>: of each row group the `ColumnChunk` of each column of the
        file, null for other columns than those.
    """
    calls = JavaCalls(jvm)
    long, boolean = (
        jvm.singleton(f"org.apache.spark.sql.types.{name}") for name in ("LongType", "BooleanType")
    )
    paths: dict[Kind, list[str]] = {}
    for column, kind in kinds.items():
        paths.setdefault(kind, []).append(_text_of_path(column))

    def of_chunk(chunk: Any) -> Any:
        path_of = calls.text(calls.method(chunk, "getPath", _METADATA + "ColumnPath"))
        statistics = calls.method(chunk, "getStatistics", _PARQUET + "column.statistics.Statistics")
        counts = [
            calls.text(calls.method(chunk, "getValueCount", long)),
            calls.text(calls.method(statistics, "getNumNulls", long)),
            calls.text(calls.method(statistics, "hasNonNullValue", boolean)),
        ]
        known = F.lit(None)
        for kind, of_kind in paths.items():
            extremes = (
                _extreme(calls, statistics, which, kind, prefix_length) for which in ("Min", "Max")
            )
            told = F.array(*map(calls.column, (path_of, *counts)), *extremes)
            known = F.when(calls.column(path_of).isin(of_kind), told).otherwise(known)
        return calls.expression(known)

    def of_group(group: Any) -> Any:
        chunks = calls.method(group, "getColumns", _LIST)
        return calls.each(chunks, _METADATA + "ColumnChunkMetaData", of_chunk)

    groups = calls.method(_footer(jvm, calls, delta_log, path), "getBlocks", _LIST)
    return calls.column(calls.each(groups, _METADATA + "BlockMetaData", of_group))


def _footer(jvm: Jvm, calls: JavaCalls, delta_log: Any, path: Column) -> Any:
    """The footer of a table's file, an object of Parquet's."""
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
        _PARQUET + "hadoop.ParquetFileReader",
        "readFooter",
        _METADATA + "ParquetMetadata",
        hadoop,
        in_table,
    )


def _extreme(
    calls: JavaCalls, statistics: Any, which: str, kind: Kind, prefix_length: int
) -> Column:
    """The text of the smallest (`Min`) or the largest (`Max`) value, as `_combined` takes it."""
    if kind is Kind.DATE:
        # As days: Parquet's text leaves open whether a year is before the first or after.
        days = calls.method(statistics, f"genericGet{which}", "java.lang.Comparable")
        return calls.column(calls.text(days))
    value = calls.method(statistics, f"{which.lower()}AsString", _STRING)
    text = calls.column(calls.spark_string(value))
    if kind is Kind.NUMBER:
        return text
    shortened = calls.static(
        "org.apache.spark.sql.delta.stats.StatisticsCollection",
        f"truncate{which}StringAgg",
        _STRING,
        calls.expression(F.lit(prefix_length)),
        value,
    )
    # Bytes that are no UTF-8 lie elsewhere in the order than what Java has in their place.
    return F.when(~text.contains(_REPLACED), calls.column(calls.spark_string(shortened)))


def statistics_of(
    row_groups: Sequence[Sequence[ColumnChunk | None]], kinds: Mapping[str, Kind]
) -> FooterStatistics:
    """What the row groups of one file say together.

    Of a column of which one row group does not know the extremes, none are known.
    """
    found = FooterStatistics(rows=None if row_groups else 0)
    for column, kind in kinds.items():
        chunks = list(_chunks_of(column, row_groups))
        if len(chunks) < len(row_groups):
            continue
        values = [int(str(chunk[1])) for chunk in chunks]
        nulls = [int(str(chunk[2])) for chunk in chunks]
        found.rows = sum(values)
        if min(nulls, default=0) >= 0:
            found.nulls[column] = sum(nulls)
        with_values = [chunk for chunk in chunks if chunk[3] == "true"]
        only_nulls = sum(chunk[1] == chunk[2] for chunk in chunks if chunk[3] != "true")
        if not with_values or len(with_values) + only_nulls < len(chunks):
            continue
        for section, position, chosen in ((found.minimum, 4, min), (found.maximum, 5, max)):
            extreme = _combined([chunk[position] for chunk in with_values], kind, chosen)
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
    texts: Sequence[str | None], kind: Kind, chosen: Callable[..., Any]
) -> str | Decimal | None:
    """The smallest or the largest of the values, as Delta writes it; None if it cannot."""
    known = [text for text in texts if text is not None]
    if len(known) < len(texts):
        return None
    if kind is Kind.TEXT:
        # By code points, which is by the bytes of UTF-8.
        return str(chosen(known))
    extreme: Decimal = chosen(map(Decimal, known))
    return extreme if kind is Kind.NUMBER else _date_text(int(extreme))


def _date_text(days: int) -> str | None:
    """The day, so many after 1970-01-01; None for one beyond the years that all readers know."""
    try:
        return (_EPOCH + timedelta(days)).isoformat()
    except OverflowError:
        return None


def _text_of_path(column: str) -> str:
    """A top-level column as Parquet's `ColumnPath` prints it."""
    return f"[{column}]"
