"""Schemas: what Delta stores of a DataFrame's, and rows cast to a table's."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from qbeast_core.errors import InvalidOptions
from qbeast_core.spark.columns import column


def nullable(schema: StructType) -> StructType:
    """The schema with every column and element nullable.

    What Spark infers to be never null is an accident of the query; Delta would enforce it on every
    later write.
    """
    made: StructType = _nullable(schema)
    return made


def cast_to(rows: DataFrame, schema: StructType, table: str) -> DataFrame:
    """The rows with the table's columns: its names, order and types; missing ones are null.

    The types matter before anything is computed: `hash()` of an int is not that of a bigint, and
    Delta's writer takes a file of other types without complaint.

    Raises:
        InvalidOptions: the rows have a column that the table does not.
    """
    # As Spark resolves names in a write: without regard to case.
    known = {field.name.lower() for field in schema.fields}
    extra = [name for name in rows.columns if name.lower() not in known]
    if extra:
        raise InvalidOptions(
            f"the data have columns that {table} does not: {', '.join(map(repr, extra))}; "
            "add them to the table first, or leave them out"
        )
    if _described(rows.schema) == _described(schema):
        return rows
    given = {name.lower(): name for name in rows.columns}
    return rows.select(
        *(
            (column(given[field.name.lower()]) if field.name.lower() in given else F.lit(None))
            .cast(field.dataType)
            .alias(field.name, metadata=field.metadata)
            for field in schema.fields
        )
    )


def _described(schema: StructType) -> list[tuple[Any, ...]]:
    return [(field.name, field.dataType, field.metadata) for field in schema.fields]


def _nullable(data_type: DataType) -> Any:
    if isinstance(data_type, StructType):
        return StructType(
            [
                StructField(field.name, _nullable(field.dataType), True, field.metadata)
                for field in data_type.fields
            ]
        )
    if isinstance(data_type, ArrayType):
        return ArrayType(_nullable(data_type.elementType), True)
    if isinstance(data_type, MapType):
        return MapType(_nullable(data_type.keyType), _nullable(data_type.valueType), True)
    return data_type
