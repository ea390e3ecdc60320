"""Which columns of its data files a table means by some names.

With column mapping a name can pass from one column to another, by `RENAME COLUMN` or by a drop and
an add; type widening changes the type of a column. Neither touches a file. So what was written for
the columns of these names, such as an index, may speak of other columns or of other values.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from qbeast_core.delta.metadata import name_in_files
from qbeast_core.model.json_text import to_json_text

_TYPE_CHANGES = "delta.typeChanges"


@dataclass(frozen=True)
class ColumnIdentity:
    """The columns of the data files that some names mean, with their types."""

    text: str
    """As JSON: for each column the name that it has in files, which is never given to another one,
    and its type. Fields of a struct are such pairs too."""
    is_original: bool
    """Whether these names have meant nothing else in any file of the table."""

    @staticmethod
    def of(schema: StructType, names: Sequence[str]) -> ColumnIdentity:
        """What the names mean in a table with this schema; names that it lacks are left out."""
        fields = [schema[name] for name in names if name in schema.fieldNames()]
        return ColumnIdentity(
            text=to_json_text([_in_files(field) for field in fields]),
            is_original=all(map(_is_original, fields)),
        )

    @property
    def recorded(self) -> str | None:
        """What a writer records with a file; nothing where that is understood."""
        return None if self.is_original else self.text

    def is_recorded_as(self, record: str | None) -> bool:
        """Whether a file with this record, or without one, was written for the same columns."""
        return record == self.text or (record is None and self.is_original)


def described(record: str) -> str:
    """The columns of a record, or of `ColumnIdentity.text`, as messages name them."""
    try:
        return ", ".join(f"{name} ({_type_text(kind)})" for name, kind in json.loads(record))
    except (ValueError, TypeError, KeyError):
        return repr(record)


def _type_text(kind: Any) -> str:
    if isinstance(kind, dict):
        return f"array<{_type_text(kind['array'])}>"
    if isinstance(kind, list):
        return f"struct<{','.join(f'{name}:{_type_text(inner)}' for name, inner in kind)}>"
    return str(kind)


def _in_files(field: StructField) -> tuple[str, Any]:
    return name_in_files(field), _type_in_files(field.dataType)


def _type_in_files(data_type: DataType) -> Any:
    if isinstance(data_type, StructType):
        return [_in_files(field) for field in data_type]
    if isinstance(data_type, ArrayType):
        return {"array": _type_in_files(data_type.elementType)}
    return data_type.simpleString()


def _is_original(field: StructField) -> bool:
    """Fields of a struct can be put in another order, which changes its hash and leaves no trace
    in the schema, so a struct never is."""
    inner = field.dataType
    while isinstance(inner, ArrayType):
        inner = inner.elementType
    return (
        name_in_files(field) == field.name
        and _TYPE_CHANGES not in field.metadata
        and not isinstance(inner, StructType)
    )
