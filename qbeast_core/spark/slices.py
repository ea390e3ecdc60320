"""The column of slices that a table may store: what it is to Delta, to the rows and to a sample."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ByteType, StructField, StructType

from qbeast_core.model.slices import SLICE_COLUMN, slice_expression
from qbeast_core.spark.columns import weight_text
from qbeast_core.spark.schema import GENERATION_KEY

_COMMENT = "Which samples the row is in: where it is k or more, that of 1 / 2^k of the rows"


def with_slices(schema: StructType, weight_columns: Sequence[str]) -> StructType:
    """The schema of a table with these columns that also stores slices, as its last column.

    Delta computes it in every write, and lets no program write that could not.
    """
    computed = slice_expression(weight_text(weight_columns))
    metadata = {GENERATION_KEY: computed, "comment": _COMMENT}
    return StructType([*schema.fields, StructField(SLICE_COLUMN, ByteType(), True, metadata)])


def row_slice(weight_columns: Sequence[str]) -> Column:
    """The slice of a row, tinyint, computed from its weight."""
    return F.expr(slice_expression(weight_text(weight_columns)))


def has_slice_column(rows: DataFrame) -> bool:
    """Whether there is a column of that name, whatever it means."""
    return SLICE_COLUMN in map(str.lower, rows.columns)


def own_rows(given: DataFrame, stores_slices: bool) -> DataFrame:
    """Rows for a table, without slices that it computes itself; they may have been read from it."""
    return given.drop(SLICE_COLUMN) if stores_slices and has_slice_column(given) else given


def reaches(lowest: int) -> Column:
    """Whether a row's stored slice is at least so high; files from before it was stored have none.

    The number is of the column's type: a cast would have to be taken away again by the optimizer.
    """
    return F.expr(f"{SLICE_COLUMN} >= {lowest}Y or {SLICE_COLUMN} is null")
