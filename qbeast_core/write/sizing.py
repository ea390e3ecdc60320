"""Automatic cube sizes (`cube_size: auto`) and the size of the samples that plan a tree.

A file must be large enough to read at full speed, and small enough that a range filter skips most
of the table: a tenth of the table, but at least 16 MB and at most 128 MB. The files with the
lowest weights are smaller (`smallest_band_rows`).
"""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

_MIN_FILE_BYTES = 16 << 20
_MAX_FILE_BYTES = 128 << 20
_MIN_BAND_BYTES = 128 << 10
_FILES_WANTED = 10

# A table outgrows its cube size when an automatic size for its rows would be 8 times as large. The
# new size is a quarter of that, if this at least doubles the present one.
_OUTGROWN = 8
_SHARE_GRANTED = 0.25
_MIN_GROWTH = 2

# With this many sampled rows, a cube's share of the rows is known to about a tenth.
_SAMPLE_ROWS_OF_A_CUBE = 1 << 7
_MIN_SAMPLE_ROWS = 1 << 15
MAX_SAMPLE_ROWS = 1 << 17
"""The driver receives at most this many sampled rows, with a few columns each."""

# Rough Parquet sizes in bytes. A factor of two either way only changes the size of files.
_COMPRESSION = 0.5
_BYTES = {
    "boolean": 1,
    "tinyint": 1,
    "smallint": 2,
    "int": 4,
    "date": 4,
    "float": 4,
    "bigint": 8,
    "double": 8,
    "timestamp": 8,
    "timestamp_ntz": 8,
    "decimal": 8,
    "void": 0,
}
_BYTES_OF_TEXT = 20
_ELEMENTS = 4


def automatic_cube_size(rows: int, schema: StructType) -> int:
    """The cube size, in rows, for a table that starts with `rows` rows of this schema."""
    smallest, largest = _limits(schema)
    return max(smallest, min(largest, rows // _FILES_WANTED))


def outgrown_cube_size(present: int, rows: int, schema: StructType) -> int | None:
    """The new cube size, in rows, of a table that has outgrown its present one; None to keep it.

    A table with `rows` rows outgrows its cube size when they want one eight times as large. A new
    cube size opens a new revision with an empty tree, so a size that is slightly off is better
    kept. The new size is a quarter of the wanted one, because old files keep their small blocks.
    """
    _, largest = _limits(schema)
    wanted = rows // _FILES_WANTED
    grown = min(largest, int(wanted * _SHARE_GRANTED))
    return grown if wanted >= _OUTGROWN * present and grown >= _MIN_GROWTH * present else None


def planned_sample_size(rows: int, cube_size: int | None, schema: StructType) -> int:
    """The number of rows to sample to plan the tree.

    Each task of the first pass keeps at most this many rows, and the driver collects them.

    Args:
        rows: about how many rows the write has.
        cube_size: in rows; None for the automatic one.
    """
    wanted = _SAMPLE_ROWS_OF_A_CUBE * rows // (cube_size or automatic_cube_size(rows, schema))
    return max(_MIN_SAMPLE_ROWS, min(MAX_SAMPLE_ROWS, wanted))


def smallest_band_rows(schema: StructType, cube_size: int) -> int:
    """The minimum number of rows of a band that are worth a separate file."""
    return max(1, min(int(_MIN_BAND_BYTES / row_bytes(schema)), cube_size // 4))


def row_bytes(schema: StructType) -> float:
    """The approximate size of a row in a file, in bytes."""
    return max(1.0, _type_bytes(schema) * _COMPRESSION)


def _limits(schema: StructType) -> tuple[int, int]:
    of_row = row_bytes(schema)
    smallest, largest = (int(b / of_row) for b in (_MIN_FILE_BYTES, _MAX_FILE_BYTES))
    return max(1, smallest), max(1, largest)


def _type_bytes(data_type: DataType) -> float:
    if isinstance(data_type, StructType):
        return sum(_type_bytes(field.dataType) for field in data_type.fields)
    if isinstance(data_type, ArrayType):
        return _ELEMENTS * _type_bytes(data_type.elementType)
    if isinstance(data_type, MapType):
        return _ELEMENTS * (_type_bytes(data_type.keyType) + _type_bytes(data_type.valueType))
    if isinstance(data_type, StringType):
        return _BYTES_OF_TEXT
    return _BYTES.get(data_type.simpleString().partition("(")[0], _BYTES_OF_TEXT)
