"""How large cubes are when the user leaves it open (`cube_size: auto`), and samples that plan them.

A file is to be large enough to read at full speed and small enough that a sample, which reads whole
files, costs about what it should: a twentieth of the table, within 16 MB and 128 MB.
"""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

_SMALLEST_FILE_BYTES = 16 << 20
_LARGEST_FILE_BYTES = 128 << 20
_SMALLEST_BAND_BYTES = 128 << 10
_FILES_WANTED = 21

# When a table has outgrown its cube size, and how much of what its rows ask for it gets then.
_OUTGROWN = 8
_SHARE_GRANTED = 0.25
_LEAST_GROWTH = 2

# A cube's share of the rows is then known to a tenth.
_SAMPLE_ROWS_OF_A_CUBE = 1 << 7
_FEWEST_SAMPLE_ROWS = 1 << 15
MOST_SAMPLE_ROWS = 1 << 17
"""So many rows of a few columns are all that the driver is sent."""

# Rough Parquet sizes; a factor of two more or less only moves the size of files.
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
    """The cube size for a table that has grown to `rows` rows, if the present one is too small.

    That is when the rows ask for one eight times as large. A new size opens a new revision, whose
    tree starts from nothing, so sizes that are a little off are better kept. What there is keeps
    its small blocks: were the size to catch up at once, the table had many for its cube size.
    """
    _, largest = _limits(schema)
    wanted = rows // _FILES_WANTED
    grown = min(largest, int(wanted * _SHARE_GRANTED))
    return grown if wanted >= _OUTGROWN * present and grown >= _LEAST_GROWTH * present else None


def sample_rows(rows: int, cube_size: int | None, schema: StructType) -> int:
    """How large a sample plans the tree of about so many rows; None for the automatic cube size.

    Each task of the first pass keeps that many rows at most, and the driver gets them.
    """
    wanted = _SAMPLE_ROWS_OF_A_CUBE * rows // (cube_size or automatic_cube_size(rows, schema))
    return max(_FEWEST_SAMPLE_ROWS, min(MOST_SAMPLE_ROWS, wanted))


def smallest_band_rows(schema: StructType) -> int:
    """The fewest rows of the root that are worth a file of their own."""
    return max(1, int(_SMALLEST_BAND_BYTES / row_bytes(schema)))


def row_bytes(schema: StructType) -> float:
    """About how many bytes a row takes in a file."""
    return max(1.0, _type_bytes(schema) * _COMPRESSION)


def _limits(schema: StructType) -> tuple[int, int]:
    of_row = row_bytes(schema)
    smallest, largest = (int(b / of_row) for b in (_SMALLEST_FILE_BYTES, _LARGEST_FILE_BYTES))
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
