"""The smallest and largest numbers of columns, as the footers of Parquet files tell them.

Delta's own reader of footers leaves decimals out, and needs releases of Spark that this does not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from qbeast_core.delta.java_calls import JavaCalls
from qbeast_core.delta.jvm import Jvm

_PARQUET = "org.apache.parquet.hadoop."
_HADOOP_PATH = "org.apache.hadoop.fs.Path"
_LIST = "java.util.List"
_CONFIGURATION = "org.apache.spark.util.SerializableConfiguration"
_EXTREMES = re.compile(r"min: (\S+), max: (\S+), num_nulls.*")
_NULLS = re.compile(r"num_nulls: (\d+), min/max not defined")

ColumnChunk = Sequence[str]
"""Of a column in a row group: its path, the number of its values and nulls, its statistics."""


def column_chunks(jvm: Jvm, delta_log: Any, path: Column, columns: Collection[str]) -> Column:
    """What the footer of a table's file says of columns, for `numbers_of`.

    Args:
        path: of the file, as it is in the log.
        columns: numbers of at most 64 bits, by their names in the files.

    Returns:
        array<array<array<string>>>: of each row group the `ColumnChunk` of each column of the
        file, null for other columns than those. Without columns no footer is read.
    """
    if not columns:
        return F.array()
    calls = JavaCalls(jvm)
    in_table = calls.static(
        "org.apache.spark.sql.delta.util.DeltaFileOperations",
        "absolutePath",
        _HADOOP_PATH,
        calls.literal(str(delta_log.dataPath()), "java.lang.String"),
        calls.java_string(calls.expression(path)),
    )
    sent = jvm.jvm.org.apache.spark.util.SerializableConfiguration(delta_log.newDeltaHadoopConf())
    footer = calls.static(
        _PARQUET + "ParquetFileReader",
        "readFooter",
        _PARQUET + "metadata.ParquetMetadata",
        calls.method(
            calls.literal(sent, _CONFIGURATION), "value", "org.apache.hadoop.conf.Configuration"
        ),
        in_table,
    )
    wanted = [_text_of_path(column) for column in columns]

    def of_chunk(chunk: Any) -> Any:
        path_of, values, statistics = (
            calls.column(calls.text(calls.method(chunk, function, kind)))
            for function, kind in (
                ("getPath", _PARQUET + "metadata.ColumnPath"),
                ("getValueCount", jvm.singleton("org.apache.spark.sql.types.LongType")),
                ("getStatistics", "org.apache.parquet.column.statistics.Statistics"),
            )
        )
        known = F.array(path_of, values, statistics)
        return calls.expression(F.when(path_of.isin(wanted), known))

    def of_group(group: Any) -> Any:
        chunks = calls.method(group, "getColumns", _LIST)
        return calls.each(chunks, _PARQUET + "metadata.ColumnChunkMetaData", of_chunk)

    groups = calls.method(footer, "getBlocks", _LIST)
    return calls.column(calls.each(groups, _PARQUET + "metadata.BlockMetaData", of_group))


def numbers_of(
    row_groups: Sequence[Sequence[ColumnChunk | None]], columns: Collection[str]
) -> Mapping[str, tuple[Decimal, Decimal]]:
    """The smallest and the largest number of each column that has any, of one file.

    A column of which one row group says nothing is left out.
    """
    found = {}
    for column in columns:
        pairs = [
            _extremes(values, statistics)
            for _, values, statistics in _chunks_of(column, row_groups)
        ]
        known = [pair for pair in pairs if pair is not None]
        numbers = [number for pair in known for number in pair]
        if len(known) == len(row_groups) and numbers:
            found[column] = min(numbers), max(numbers)
    return found


def _chunks_of(
    column: str, row_groups: Sequence[Sequence[ColumnChunk | None]]
) -> Iterator[ColumnChunk]:
    path = _text_of_path(column)
    for chunks in row_groups:
        yield from (chunk for chunk in chunks if chunk is not None and chunk[0] == path)


def _extremes(values: str, statistics: str) -> tuple[Decimal, ...] | None:
    """Two numbers, none where all values are null, or None where the footer does not say."""
    if found := _EXTREMES.fullmatch(statistics):
        return Decimal(found[1]), Decimal(found[2])
    nulls = _NULLS.fullmatch(statistics)
    return () if nulls and nulls[1] == values else None


def _text_of_path(column: str) -> str:
    """A top-level column as Parquet's `ColumnPath` prints it."""
    return f"[{column}]"
