"""Schemas: the form in which Delta stores them, and Delta's metadata of columns."""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StructField, StructType

GENERATION_KEY = "delta.generationExpression"
"""In the metadata of a generated column: the SQL that computes it."""
_DEFAULT_KEY = "CURRENT_DEFAULT"
_IDENTITY_PREFIX = "delta.identity."
_EXPLICIT_KEY = _IDENTITY_PREFIX + "allowExplicitInsert"
_DECLARED_KEY = "__CHAR_VARCHAR_TYPE_STRING"
_CHAR = re.compile(r"\bchar\(", re.IGNORECASE)


def nullable(schema: StructType) -> StructType:
    """The schema with every column and element nullable.

    That Spark infers a column to be never null is specific to the query, but Delta would enforce it
    on every later write.
    """
    made: StructType = _nullable(schema)
    return made


def same_type(one: DataType, other: DataType) -> bool:
    """Whether two types are equal, field names included, apart from nullability."""
    if isinstance(one, StructType) and isinstance(other, StructType):
        return one.fieldNames() == other.fieldNames() and all(
            same_type(left.dataType, right.dataType) for left, right in zip(one, other, strict=True)
        )
    if isinstance(one, ArrayType) and isinstance(other, ArrayType):
        return same_type(one.elementType, other.elementType)
    if isinstance(one, MapType) and isinstance(other, MapType):
        return same_type(one.keyType, other.keyType) and same_type(one.valueType, other.valueType)
    return one == other


def has_void(kind: DataType) -> bool:
    """Whether a type has the type void at any depth."""
    if isinstance(kind, StructType):
        return any(has_void(field.dataType) for field in kind)
    if isinstance(kind, ArrayType):
        return has_void(kind.elementType)
    if isinstance(kind, MapType):
        return has_void(kind.keyType) or has_void(kind.valueType)
    return isinstance(kind, NullType)


def nested_voids(schema: StructType) -> list[str]:
    """The places of values without a type that Delta cannot store.

    These are elements of arrays and maps, and structs that have nothing else. A column or field of
    type void is allowed: it is null in every row.
    """
    return [path for field in schema for path in _nested_voids(field.dataType, field.name)]


def find_field(
    schema: StructType, name: str, *, case_sensitive: bool = False
) -> StructField | None:
    """The column of this name; None if there is none. The exact spelling goes before any other.

    >>> schema = StructType().add("ID", "long").add("id", "string")
    >>> find_field(schema, "id").name, find_field(schema, "Id").name
    ('id', 'ID')
    """
    found = next((field for field in schema if field.name == name), None)
    if found is None and not case_sensitive:
        lowered = name.lower()
        found = next((field for field in schema if field.name.lower() == lowered), None)
    return found


def default_expression(field: StructField) -> str | None:
    """The SQL of a column's default; None for a column without a default."""
    return field.metadata.get(_DEFAULT_KEY)


def generation_expression(field: StructField) -> str | None:
    """The SQL that computes a generated column; None for any other column."""
    return field.metadata.get(GENERATION_KEY)


def declared_type(field: StructField) -> str:
    """The type that SQL shows for a column.

    Unlike `field.dataType`, it is `varchar(n)` or `char(n)` for a column that was declared so.
    """
    return str(field.metadata.get(_DECLARED_KEY) or field.dataType.simpleString())


def has_char(field: StructField) -> bool:
    """Whether a column has values of type `char(n)` at any depth.

    They have spaces at the end when they are read.
    """
    return bool(_CHAR.search(str(field.metadata.get(_DECLARED_KEY, ""))))


def is_identity(field: StructField) -> bool:
    """Whether the field is an identity column, whose values Delta generates."""
    return any(key.startswith(_IDENTITY_PREFIX) for key in field.metadata)


def is_always_generated(field: StructField) -> bool:
    """Whether the field is an identity column that does not accept explicit values."""
    return is_identity(field) and not field.metadata.get(_EXPLICIT_KEY, False)


def _nested_voids(kind: DataType, path: str, *, inside: bool = False) -> list[str]:
    """`inside` is whether an array or map is above."""
    if isinstance(kind, NullType):
        return [path] if inside else []
    if isinstance(kind, StructType):
        if all(isinstance(field.dataType, NullType) for field in kind):
            return [path]
        parts = {field.name: field.dataType for field in kind}
    elif isinstance(kind, ArrayType):
        parts, inside = {"element": kind.elementType}, True
    elif isinstance(kind, MapType):
        parts, inside = {"key": kind.keyType, "value": kind.valueType}, True
    else:
        return []
    found = (_nested_voids(part, f"{path}.{name}", inside=inside) for name, part in parts.items())
    return [void for voids in found for void in voids]


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
