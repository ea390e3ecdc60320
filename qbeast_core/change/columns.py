"""Check and resolve the columns that a change names."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from qbeast_core.errors import IncompatibleTable, InvalidOptions, UnknownColumn
from qbeast_core.locate.open_table import OpenTable
from qbeast_core.names import suggestion
from qbeast_core.spark.schema import find_field, generation_expression, is_identity


def check_assignable(table: OpenTable) -> None:
    """Raise IncompatibleTable if the table has generated or identity columns."""
    computed = [
        field.name
        for field in table.snapshot.schema
        if generation_expression(field) or is_identity(field)
    ]
    if computed:
        raise IncompatibleTable(
            f"{table.label} has generated or identity columns ({', '.join(computed)}), which only "
            "Delta's own UPDATE and MERGE can maintain; use these, then run optimize"
        )


def expressions_of(
    schema: StructType, assignments: Mapping[str, str], option: str, label: str
) -> dict[str, Column]:
    """The expressions that columns are set to, by the names as the table spells them.

    Args:
        assignments: SQL text by column name.
        option: the name of the option, for messages.
        label: the name of the table, for messages.

    Raises:
        UnknownColumn: the table has no such column.
        InvalidOptions: two of the names refer to the same column, or a value is not SQL text.
    """
    named: dict[str, str] = {}
    for name in assignments:
        found = table_spelling(schema, name, option, label)
        if found in named:
            raise InvalidOptions(
                f"{option} sets {found!r} of {label} twice, as {named[found]!r} and as {name!r}; "
                "set each column once"
            )
        if not isinstance(assignments[name], str):
            raise InvalidOptions(
                f"{option} sets {found!r} of {label} to {assignments[name]!r:.200}; write the "
                "value as SQL text, such as 'null', '5' or 'price * 2'"
            )
        named[found] = name
    return {found: F.expr(assignments[name]) for found, name in named.items()}


def table_spelling(schema: StructType, name: str, option: str, label: str) -> str:
    """The name of a column as the table spells it. Raises UnknownColumn."""
    found = find_field(schema, str(name))
    if found is None:
        known = schema.fieldNames()
        raise UnknownColumn(
            f"{option} names {name!r}, which is not a column of {label}"
            f"{suggestion(str(name), known)}; the columns are {', '.join(known)}"
        )
    return found.name
