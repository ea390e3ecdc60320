"""The columns that can be indexed, and a bounded sample of them, from which `auto` chooses."""

from __future__ import annotations

from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from qbeast_core.errors import UnsupportedColumnType
from qbeast_core.jvm.catalyst import collect_arrow
from qbeast_core.model.datatypes import DataType
from qbeast_core.model.revision import is_storable_name
from qbeast_core.spark import columns
from qbeast_core.spark.drawing import drawn_rows
from qbeast_core.spark.schema import is_identity
from qbeast_core.spark.statistics import SAMPLED_TEXT
from qbeast_core.tree.column_choice import SampledColumn

SAMPLED_ROWS = 1 << 14
_SAMPLED_VALUES = 1 << 22
"""The limit for all columns together; wide tables are sampled with fewer rows."""
_MIN_ROWS = 1 << 10


def indexable_columns(schema: StructType) -> list[tuple[str, DataType]]:
    """The columns that can be indexed by their type, with names that can be stored.

    Excludes identity columns, whose values Delta generates only after rows are placed.
    """
    found = [
        (field.name, _type_of(field))
        for field in schema.fields
        if is_storable_name(field.name) and not is_identity(field)
    ]
    return [(name, data_type) for name, data_type in found if data_type is not None]


def sample_indexable_columns(rows: DataFrame, schema: StructType) -> list[SampledColumn]:
    """The indexable columns in a uniform sample of the rows, which are read once more for it.

    `schema` is the table's, because rows that are read from a table do not show which columns are
    identity columns.
    """
    indexable = indexable_columns(schema)
    if not indexable:
        return []
    at_most = max(_MIN_ROWS, min(SAMPLED_ROWS, _SAMPLED_VALUES // len(indexable)))
    values = rows.select(
        *(_value(name, data_type).alias(f"x{i}") for i, (name, data_type) in enumerate(indexable))
    )
    sample = collect_arrow(drawn_rows(values, at_most))
    return [
        _sampled(name, data_type, sample.column(f"x{i}").combine_chunks())
        for i, (name, data_type) in enumerate(indexable)
    ]


def _type_of(field: StructField) -> DataType | None:
    try:
        return DataType.of_spark(field.dataType.simpleString())
    except UnsupportedColumnType:
        return None


def _value(name: str, data_type: DataType) -> Column:
    value = columns.column(name)
    if data_type is DataType.STRING:
        return F.make_valid_utf8(F.substring(value, 1, SAMPLED_TEXT))
    return columns.ordinal(value, data_type)


def _sampled(name: str, data_type: DataType, array: Any) -> SampledColumn:
    is_null = array.is_null().to_numpy(zero_copy_only=False)
    numbers = None
    if data_type is DataType.STRING:
        values = np.array(
            ["" if text is None else text for text in array.to_pylist()], dtype=object
        )
    else:
        values = numbers = array.cast("float64", safe=False).to_numpy(zero_copy_only=False)
    codes = np.unique(values, return_inverse=True)[1].astype(np.int64)
    return SampledColumn(name, data_type, np.where(is_null, -1, codes), numbers)
