"""What a column of a table is in its data files, whatever it is called."""

from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from qbeast_core.delta.column_identity import ColumnIdentity, described

WIDENED = {"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]}


def mapped(name: str) -> dict[str, Any]:
    return {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": name}


def field(name: str, kind: DataType | None = None, **metadata: Any) -> StructField:
    return StructField(name, kind or IntegerType(), True, metadata)


def identity(*fields: StructField, names: str | None = None) -> ColumnIdentity:
    return ColumnIdentity.of(StructType(list(fields)), list(names or [f.name for f in fields]))


def test_a_record_is_described_by_names() -> None:
    inner = StructType([field("x"), field("y", ArrayType(StringType()))])
    found = identity(field("a"), field("s", ArrayType(inner)))
    assert described(found.text) == "a (int), s (array<struct<x:int,y:array<string>>>)"
    for foreign in ("nonsense", "5", '[["a"]]', '[["a",{}]]'):
        assert described(foreign) == repr(foreign)


def test_a_column_that_was_never_called_otherwise_needs_no_record() -> None:
    found = identity(field("a"), field("b", StringType()), field("c", **WIDENED), names="ba")
    assert found.text == '[["b","string"],["a","int"]]'
    assert found.recorded is None
    assert found.is_recorded_as(None)
    assert found.is_recorded_as(found.text)
    assert not found.is_recorded_as('[["a","int"],["b","string"]]')


def test_enabling_column_mapping_later_keeps_a_columns_identity() -> None:
    assert identity(field("a", **mapped("a"))) == identity(field("a"))


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        (field("a", **mapped("col-1")), '[["col-1","int"]]'),
        (field("a", LongType(), **WIDENED), '[["a","bigint"]]'),
        (field("a", LongType(), **mapped("a"), **WIDENED), '[["a","bigint"]]'),
        (field("a", StructType([field("y"), field("x")])), '[["a",[["y","int"],["x","int"]]]]'),
        (
            field("a", ArrayType(StructType([field("x", **mapped("col-2"))]))),
            '[["a",{"array":[["col-2","int"]]}]]',
        ),
    ],
)
def test_columns_that_names_do_not_identify_are_recorded(changed: StructField, text: str) -> None:
    found = identity(changed)
    assert found.recorded == found.text == text
    assert found.is_recorded_as(text)
    assert not found.is_recorded_as(None)


def test_a_name_that_passed_to_another_column_means_that_one() -> None:
    before = identity(field("a", **mapped("col-1")), field("b", **mapped("col-2")))
    after = identity(field("a", **mapped("col-2")), field("b", **mapped("col-1")))
    assert not after.is_recorded_as(before.recorded)
    assert identity(field("a", **mapped("b"))).recorded is not None


def test_a_column_that_is_missing_is_left_out() -> None:
    assert identity(field("a"), names="ab") == identity(field("a"))


def test_array_elements_are_distinguished() -> None:
    def of(element: Mapping[str, Any], kind: DataType) -> str:
        return identity(field("a", ArrayType(kind), **element)).text

    assert of({}, IntegerType()) == '[["a",{"array":"int"}]]'
    assert of({}, IntegerType()) != of(WIDENED, LongType())
