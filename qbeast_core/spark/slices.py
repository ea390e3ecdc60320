"""The slice column that a table may store: in its schema, in its rows and in samples."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ByteType, StructField, StructType

from qbeast_core.errors import UnsupportedColumnType
from qbeast_core.model.slices import SLICE_COLUMN, slice_expression
from qbeast_core.spark.columns import weight_text
from qbeast_core.spark.schema import GENERATION_KEY, generation_expression

_COMMENT = "The rows with k or more are the sample of 1 / 2^k of the table"


def with_slices(schema: StructType, weight_columns: Sequence[str]) -> StructType:
    """The schema with the slice column added as the last column.

    Delta computes it in every write, and rejects programs that cannot compute it.

    Raises UnsupportedColumnType, as `check_weight_columns` does.
    """
    check_weight_columns(schema, weight_columns)
    computed = slice_expression(weight_text(weight_columns))
    metadata = {GENERATION_KEY: computed, "comment": _COMMENT}
    return StructType([*schema.fields, StructField(SLICE_COLUMN, ByteType(), True, metadata)])


def check_weight_columns(schema: StructType, weight_columns: Sequence[str]) -> None:
    """Raise UnsupportedColumnType if slices cannot be computed from these columns of a schema."""
    weight_text(weight_columns)
    for name in weight_columns:
        if name in schema.fieldNames() and generation_expression(schema[name]):
            raise UnsupportedColumnType(
                f"column {name!r} cannot be part of slices because it is a generated column, and "
                "Delta generates no column from another generated one; set slices to false, or "
                "name other columns"
            )


def is_slice_of(expression: str, weight_columns: Sequence[str]) -> bool:
    """Whether this stored SQL computes a row's slice from the weight of these columns."""
    try:
        computed = slice_expression(weight_text(weight_columns))
    except UnsupportedColumnType:
        return False
    # Spark ignores the case of names.
    return expression.lower() == computed.lower()


def without_slices(schema: StructType) -> StructType:
    """The schema without the slice column."""
    return StructType([field for field in schema if field.name != SLICE_COLUMN])


def row_slice(weight_columns: Sequence[str]) -> Column:
    """The slice of a row, tinyint, computed from its weight."""
    return F.expr(slice_expression(weight_text(weight_columns)))


def has_slice_column(rows: DataFrame) -> bool:
    """Whether the rows have a column with the name of the slice column."""
    return SLICE_COLUMN in map(str.lower, rows.columns)


def without_given_slices(rows: DataFrame, stores_slices: bool) -> DataFrame:
    """New rows for a table, without the slice column if the table computes it.

    Rows have this column if plain Delta reads them from a table.
    """
    return rows.drop(SLICE_COLUMN) if stores_slices and has_slice_column(rows) else rows


def reaches(lowest: int) -> Column:
    """Whether a row's stored slice is `lowest` or more; null, as in older files, counts as true.

    The literal has the column's type, so the optimizer need not remove a cast.
    """
    return F.expr(f"{SLICE_COLUMN} >= {lowest}Y or {SLICE_COLUMN} is null")
