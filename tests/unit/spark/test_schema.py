"""What a column's metadata in Delta's log says about it."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
)

from qbeast_core.spark.schema import find_field, has_char, has_void, nested_voids


@pytest.mark.parametrize(
    ("declared", "found"),
    [
        ("char(6)", True),
        ("CHAR(255)", True),
        ("varchar(6)", False),
        ("array<char(3)>", True),
        ("struct<v:varchar(3),m:map<int,char(2)>>", True),
        (None, False),
    ],
)
def test_a_char_is_found_at_any_depth(declared: str | None, found: bool) -> None:
    metadata = {} if declared is None else {"__CHAR_VARCHAR_TYPE_STRING": declared}
    assert has_char(StructField("c", StringType(), True, metadata)) == found


VOID, LONG = NullType(), LongType()


def struct(**types: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in types.items()])


@pytest.mark.parametrize(
    ("kind", "places"),
    [
        (VOID, []),
        (LONG, []),
        (struct(x=VOID, y=LONG), []),
        (struct(x=VOID), ["c"]),
        (struct(), ["c"]),
        (ArrayType(struct()), ["c.element"]),
        (struct(y=LONG, x=struct(z=VOID)), ["c.x"]),
        (ArrayType(VOID), ["c.element"]),
        (ArrayType(struct(x=VOID, y=LONG)), ["c.element.x"]),
        (MapType(LONG, struct(s=ArrayType(VOID), y=LONG)), ["c.value.s.element"]),
        (struct(y=MapType(LONG, VOID)), ["c.y.value"]),
    ],
    ids=str,
)
def test_nulls_without_a_type_are_found_where_delta_cannot_store_them(
    kind: DataType, places: list[str]
) -> None:
    assert nested_voids(struct(id=LONG, c=kind)) == places


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (struct(a=LONG), False),
        (struct(a=LONG, b=VOID), True),
        (struct(s=struct(a=LONG, b=VOID)), True),
        (struct(s=ArrayType(struct(a=LONG, b=VOID))), True),
        (struct(s=MapType(LONG, struct(a=LONG, b=VOID))), True),
        (struct(s=MapType(LONG, ArrayType(LONG))), False),
    ],
)
def test_a_void_is_found_at_any_depth(kind: StructType, found: bool) -> None:
    assert has_void(kind) == found


@pytest.mark.parametrize(
    ("name", "case_sensitive", "found"),
    [("id", False, 1), ("Id", False, 0), ("id", True, 1), ("Id", True, None), ("x", False, None)],
)
def test_the_exact_spelling_of_a_column_goes_before_any_other(
    name: str, case_sensitive: bool, found: int | None
) -> None:
    schema = StructType([StructField("ID", LongType()), StructField("id", StringType())])
    expected = None if found is None else schema[found]
    assert find_field(schema, name, case_sensitive=case_sensitive) is expected
