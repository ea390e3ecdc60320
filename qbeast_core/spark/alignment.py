"""Aligns rows with a table's schema: columns and fields by name, values by store assignment.

As in Delta's INSERT and MERGE (SQL's ANSI store assignment), a value that does not fit the table's
type fails the write, whatever the session's settings. Types must be right before anything is
computed: `hash()` of an int differs from that of a bigint, and Delta's file writer does not check
types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, CharType, DataType, MapType, StructField, StructType

from qbeast_core.errors import InvalidOptions
from qbeast_core.jvm.catalyst import Catalyst
from qbeast_core.jvm.expressions import unsubstituted
from qbeast_core.jvm.gateway import Jvm
from qbeast_core.spark.columns import column, column_from
from qbeast_core.spark.schema import (
    declared_type,
    default_expression,
    generation_expression,
    has_char,
    has_void,
    is_always_generated,
    is_identity,
    same_type,
)


def aligned(rows: DataFrame, schema: StructType, table: str) -> DataFrame:
    """New rows for a table, with all of its columns except those that only Delta can fill.

    A missing column gets its default, the result of its generation expression, or null; a missing
    field of a struct is null. Delta fills a missing identity column when it writes the files.

    Args:
        table: the table's name in messages.

    Raises:
        InvalidOptions: the rows have a column or field that the table lacks, a duplicate column, a
            value for an identity column that Delta always generates, or a type that cannot be
            stored as the table's type.
    """
    given = _names(rows, table)
    _check_known(given, schema, table)
    # Rows with the metadata of a char column may still lack the spaces.
    is_ready = same_type(rows.schema, schema) and not any(map(has_char, schema))
    if is_ready and _metadata(rows.schema) == _metadata(schema):
        return rows
    values = {
        field.name: column(given[field.name.lower()])
        if field.name.lower() in given
        else absent_value(rows.sparkSession, field)
        for field in schema
        if field.name.lower() in given or not (is_identity(field) or generation_expression(field))
    }
    made = _selected(rows, schema, assigned(rows, schema, values, table, fill=True))
    computed = {
        field.name: F.expr(expression)
        for field in schema
        if field.name not in values and (expression := generation_expression(field))
    }
    if not computed:
        return made
    present = {name: column(name) for name in made.columns}
    return _selected(made, schema, {**present, **assigned(made, schema, computed, table)})


def assigned(
    rows: DataFrame,
    schema: StructType,
    values: Mapping[str, Column],
    table: str,
    *,
    fill: bool = False,
) -> dict[str, Column]:
    """Values for some columns of a table, in the form that the table stores.

    Args:
        rows: the rows from which the values are computed.
        values: expressions over the rows, by column names as spelled in the schema.
        fill: whether struct fields that the values lack become null; else they are an error.

    Raises:
        InvalidOptions: a value has a field that the table lacks, lacks a field that the table has,
            or has a type that cannot be stored as the table's type.
    """
    assignment = _Assignment(Catalyst(Jvm(rows.sparkSession)), table, fill=fill)
    return assignment.of(rows, schema, values)


def with_padded_chars(rows: DataFrame) -> DataFrame:
    """The rows of a new table with the values of type `char(n)` as they will be read."""
    schema = rows.schema
    if not any(map(has_char, schema)):
        return rows
    assignment = _Assignment(Catalyst(Jvm(rows.sparkSession)), "the new table", fill=False)
    present = {field.name: column(field.name) for field in schema}
    return _selected(rows, schema, assignment.of(rows, schema, present))


def with_voids(rows: DataFrame, schema: StructType, table: str) -> DataFrame:
    """Rows of a table with its columns and fields of type void, which Delta can leave out."""
    if has_void(schema) and not same_type(rows.schema, schema):
        return widened(rows, schema, table)
    return rows


def widened(rows: DataFrame, schema: StructType, table: str) -> DataFrame:
    """Rows of a table in a schema with more columns and fields, which are null, or wider types."""
    return _selected(rows, schema, widened_values(rows, schema, table))


def widened_values(
    rows: DataFrame, schema: StructType, table: str, alias: str | None = None
) -> dict[str, Column]:
    """The columns of `widened`, for queries in which `alias` names the rows."""
    values = {
        field.name: column_from(field.name, alias)
        if field.name in rows.columns
        else F.lit(None).cast(field.dataType)
        for field in schema
    }
    return assigned(rows, schema, values, table, fill=True)


def lacks_some(given: DataType, stored: DataType) -> bool:
    """Whether a type lacks a column or field that the stored one has, at some depth."""
    if isinstance(given, StructType) and isinstance(stored, StructType):
        fields = {field.name.lower(): field.dataType for field in given}
        return any(
            field.name.lower() not in fields
            or lacks_some(fields[field.name.lower()], field.dataType)
            for field in stored
        )
    if isinstance(given, ArrayType) and isinstance(stored, ArrayType):
        return lacks_some(given.elementType, stored.elementType)
    if isinstance(given, MapType) and isinstance(stored, MapType):
        pairs = ((given.keyType, stored.keyType), (given.valueType, stored.valueType))
        return any(lacks_some(*pair) for pair in pairs)
    return False


def is_filled_by_delta(rows: DataFrame, schema: StructType) -> bool:
    """Whether aligned rows lack columns of the table, which Delta fills during the write."""
    return len(rows.columns) < len(schema)


def known_part(
    rows: DataFrame,
    schema: StructType,
    table: str,
    *,
    updates: Callable[[str], bool],
    keeps_others: bool = False,
) -> DataFrame:
    """The columns and fields that both the rows and the table have, in the form the table stores.

    Columns are in the table's order.

    Args:
        updates: whether a column, as spelled in the schema, will be set in existing rows of the
            table. A missing field of a struct is then an error; otherwise it becomes null.
        keeps_others: whether to append columns that the table lacks, unchanged.

    Raises:
        InvalidOptions: the rows have a duplicate column, lack a required field of a struct, or have
            a type that cannot be stored as the table's type.
    """
    given = _names(rows, table)
    values = {
        field.name: column(given[field.name.lower()])
        for field in schema
        if field.name.lower() in given
    }
    catalyst, stored = Catalyst(Jvm(rows.sparkSession)), dict[str, Column]()
    for fill in (True, False):
        assignment = _Assignment(catalyst, table, fill=fill, leave_out=True)
        chosen = {name: value for name, value in values.items() if updates(name) is not fill}
        stored |= assignment.of(rows, schema, chosen)
    known = {field.name.lower() for field in schema}
    others = [name for key, name in given.items() if key not in known] if keeps_others else []
    return _selected(rows, schema, stored, [column(name) for name in others])


def absent_value(spark: SparkSession, field: StructField) -> Column:
    """The value of a new row in a column without a given value: the column's default, or null."""
    default = default_expression(field)
    return F.lit(None) if default is None else unsubstituted(spark, default)


@dataclass(frozen=True)
class _Assignment:
    """Converts values to the form that a table stores."""

    catalyst: Catalyst
    table: str
    fill: bool
    """Whether fields that a value lacks become null; else they are an error."""
    leave_out: bool = False
    """Whether fields that the table lacks are left out; else they are an error."""

    def of(
        self, rows: DataFrame, schema: StructType, values: Mapping[str, Column]
    ) -> dict[str, Column]:
        named = (value.alias(f"value{i}") for i, value in enumerate(values.values()))
        given = [field.dataType for field in rows.select(*named).schema]
        return {
            name: self._padded(self._value(value, kind, schema[name].dataType, name), schema[name])
            for (name, value), kind in zip(values.items(), given, strict=True)
        }

    def _padded(self, value: Column, field: StructField) -> Column:
        """A value with its `char(n)` as it will be read: Spark adds spaces in a read, but not in a
        write.

        Rows are placed by their values, so these must be the same before and after the write.
        """
        if not has_char(field):
            return value
        declared = self.catalyst.parsed_type(declared_type(field))
        return self._padded_as(value, field.dataType, declared)

    def _padded_as(self, value: Column, kind: DataType, declared: DataType | None) -> Column:
        """
        Args:
            kind: the value's type, with strings for `char(n)`.
            declared: the declared type; a struct may have more fields by now.
        """
        if isinstance(declared, CharType):
            return self.catalyst.padded(value, declared.length)
        if isinstance(kind, StructType) and isinstance(declared, StructType):
            known = {field.name: field.dataType for field in declared}
            fields = (
                self._padded_as(
                    value.getField(field.name), field.dataType, known.get(field.name)
                ).alias(field.name)
                for field in kind
            )
            return F.when(value.isNotNull(), F.struct(*fields))
        if isinstance(kind, ArrayType) and isinstance(declared, ArrayType):
            kinds = (kind.elementType, declared.elementType)
            return F.transform(value, lambda each: self._padded_as(each, *kinds))
        if isinstance(kind, MapType) and isinstance(declared, MapType):
            keys, values = (kind.keyType, declared.keyType), (kind.valueType, declared.valueType)
            value = F.transform_keys(value, lambda key, _: self._padded_as(key, *keys))
            return F.transform_values(value, lambda _, each: self._padded_as(each, *values))
        return value

    def _value(self, value: Column, given: DataType, wanted: DataType, path: str) -> Column:
        if same_type(given, wanted):
            return value
        if isinstance(given, StructType) and isinstance(wanted, StructType):
            return self._struct(value, given, wanted, path)
        if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
            kinds = (given.elementType, wanted.elementType)
            return F.transform(value, lambda each: self._value(each, *kinds, f"{path}.element"))
        if isinstance(given, MapType) and isinstance(wanted, MapType):
            return self._map(value, given, wanted, path)
        if not self.catalyst.can_store(given, wanted):
            raise InvalidOptions(
                f"{path!r} is {given.simpleString()} in the query and {wanted.simpleString()} in "
                f"{self.table}; Spark cannot store {given.simpleString()} as "
                f"{wanted.simpleString()}. Cast it in the query"
            )
        return self.catalyst.stored(value, given, wanted, path)

    def _struct(self, value: Column, given: StructType, wanted: StructType, path: str) -> Column:
        present = _by_name(given.fieldNames(), path)
        known = {field.name.lower() for field in wanted}
        extra = [f"{path}.{name}" for key, name in present.items() if key not in known]
        if extra and not self.leave_out:
            raise _unknown(extra, self.table)
        lacking = [f"{path}.{field.name}" for field in wanted if field.name.lower() not in present]
        if lacking and not self.fill:
            raise InvalidOptions(
                f"the new values lack {', '.join(map(repr, lacking))}, which {self.table} has; "
                "an update or a merge must set every field of a struct"
            )
        fields = []
        for field in wanted:
            name = present.get(field.name.lower())
            if name is None:
                inner = F.lit(None).cast(field.dataType)
            else:
                kinds = (given[name].dataType, field.dataType)
                inner = self._value(value.getField(name), *kinds, f"{path}.{field.name}")
            fields.append(inner.alias(field.name))
        return F.when(value.isNotNull(), F.struct(*fields))

    def _map(self, value: Column, given: MapType, wanted: MapType, path: str) -> Column:
        keys, values = (given.keyType, wanted.keyType), (given.valueType, wanted.valueType)
        if not same_type(*keys):
            value = F.transform_keys(value, lambda key, _: self._value(key, *keys, f"{path}.key"))
        if not same_type(*values):
            value = F.transform_values(
                value, lambda _, each: self._value(each, *values, f"{path}.value")
            )
        return value


def _names(rows: DataFrame, table: str) -> dict[str, str]:
    """The columns of the rows by lower-case name; column names in Delta are not case-sensitive."""
    return _by_name(rows.columns, f"the data for {table}")


def _by_name(names: Sequence[str], where: str) -> dict[str, str]:
    found = {name.lower(): name for name in names}
    if len(found) < len(names):
        lower = [name.lower() for name in names]
        twice = sorted({name for name in lower if lower.count(name) > 1})
        raise InvalidOptions(
            f"{where} has {', '.join(map(repr, twice))} more than once, and column names in "
            "Delta are not case-sensitive; drop or rename one of them"
        )
    return found


def _check_known(given: Mapping[str, str], schema: StructType, table: str) -> None:
    known = {field.name.lower(): field for field in schema}
    extra = [name for key, name in given.items() if key not in known]
    if extra:
        raise _unknown(extra, table)
    generated = [
        field.name for key, field in known.items() if key in given and is_always_generated(field)
    ]
    if generated:
        raise InvalidOptions(
            f"Delta generates the values of {', '.join(map(repr, generated))} in {table} (an "
            "identity column, GENERATED ALWAYS); drop the column from the data"
        )


def _unknown(extra: Iterable[str], table: str) -> InvalidOptions:
    return InvalidOptions(
        f"the data have columns or fields that {table} does not: {', '.join(map(repr, extra))}; "
        "add them to the table first, which write_table does with merge_schema=True, or drop them "
        "from the data"
    )


def _selected(
    rows: DataFrame,
    schema: StructType,
    values: Mapping[str, Column],
    others: Sequence[Column] = (),
) -> DataFrame:
    """The values with the names and metadata of the table's columns, in the table's order."""
    stored = (
        values[field.name].alias(field.name, metadata=field.metadata)
        for field in schema
        if field.name in values
    )
    return rows.select(*stored, *others)


def _metadata(schema: StructType) -> list[dict[str, Any]]:
    return [field.metadata for field in schema]
