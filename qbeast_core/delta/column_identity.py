"""Identifies the columns in data files that a table's column names refer to (docs/format.md 7.4).

With column mapping, a name can move from one column to another: by `RENAME COLUMN`, or by a drop
and an add. Type widening changes the type of a column. Neither touches a file. So an index that was
written for columns of these names may describe other columns or other values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from qbeast_core.delta.metadata import name_in_files
from qbeast_core.model.json_text import parse_json, to_json_text

_TYPE_CHANGES = "delta.typeChanges"


@dataclass(frozen=True)
class ColumnIdentity:
    """The columns in the data files that some names refer to, with their types."""

    text: str
    """JSON text: for each column its name in the files, which Delta never reuses, and its type. The
    fields of a struct are such pairs too."""
    is_original: bool
    """Whether these names have always referred to these columns, in all files of the table."""

    @staticmethod
    def of(schema: StructType, names: Sequence[str]) -> ColumnIdentity:
        """The columns of these names in a table with this schema; missing names are left out."""
        fields = [schema[name] for name in names if name in schema.fieldNames()]
        return ColumnIdentity(
            text=to_json_text([_in_files(field) for field in fields]),
            is_original=all(map(_is_original, fields)),
        )

    @property
    def recorded(self) -> str | None:
        """What a writer records with a file; None if the names alone identify the columns."""
        return None if self.is_original else self.text

    def is_recorded_as(self, record: str | None) -> bool:
        """Whether a file with this record (None if it has none) was written for these columns."""
        return record == self.text or (record is None and self.is_original)


def described(record: str) -> str:
    """The columns of a record, or of `ColumnIdentity.text`, in the form used in messages."""
    try:
        return ", ".join(f"{name} ({_type_text(kind)})" for name, kind in parse_json(record))
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
    """Whether the name has always referred to this column. Never true for a struct: reordering its
    fields changes its hash and leaves no trace in the schema."""
    inner = field.dataType
    while isinstance(inner, ArrayType):
        inner = inner.elementType
    return (
        name_in_files(field) == field.name
        and _TYPE_CHANGES not in field.metadata
        and not isinstance(inner, StructType)
    )
