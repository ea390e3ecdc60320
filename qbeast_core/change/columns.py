"""The columns of a table that a change names."""

from __future__ import annotations

from pyspark.sql.types import StructType

from qbeast_core.errors import IncompatibleTable, UnknownColumn
from qbeast_core.locate.table import OpenTable
from qbeast_core.spark.schema import generation_expression, is_identity


def check_assignable(table: OpenTable) -> None:
    """Raise IncompatibleTable for columns whose values Delta computes from others."""
    computed = [
        field.name
        for field in table.snapshot.schema
        if generation_expression(field) or is_identity(field)
    ]
    if computed:
        raise IncompatibleTable(
            f"{table.label} has generated or identity columns ({', '.join(computed)}), which only "
            "Delta's own UPDATE and MERGE keep right; use these, and optimize afterwards"
        )


def column_of(schema: StructType, name: str, option: str, label: str) -> str:
    """A column in the table's spelling. Raises UnknownColumn."""
    wanted = str(name).lower()
    found = next((field.name for field in schema if field.name.lower() == wanted), None)
    if found is None:
        raise UnknownColumn(
            f"{option} names {name!r}, which is not a column of {label}; "
            f"the columns are {', '.join(schema.fieldNames())}"
        )
    return found
