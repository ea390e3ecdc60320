"""Parse and check the options and arguments that users give."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from numbers import Integral, Real

import numpy as np
from pyspark.sql import Column
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from qbeast_core.errors import InvalidOptions, UnknownColumn, UnsupportedColumnType
from qbeast_core.model.revision import is_storable_name
from qbeast_core.model.transformer import Transformer, transformer_for
from qbeast_core.names import suggestion
from qbeast_core.spark.schema import find_field, is_identity

AUTO = "auto"
ALL = "all"
MAX_COLUMNS = 8
MAX_CUBE_SIZE = 2**31 - 1

_KINDS = {
    "linear": "linear",
    "hash": "hashing",
    "hashing": "hashing",
    "quantile": "quantiles",
    "quantiles": "quantiles",
}
_WITHOUT_HASH = ("variant",)
_AUTOMATIC = re.compile(r"\s*auto\s*(?::\s*(?P<at_most>\d{1,9})\s*)?", re.IGNORECASE)
_AUTOMATIC_COLUMNS = 3
_COLUMN = re.compile(r"(?P<name>.+?)(?:\s*:\s*(?P<kind>[A-Za-z_]+))?", re.DOTALL)


class WriteMode(Enum):
    """What a write does if the table already exists."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    ERROR = "error"
    IGNORE = "ignore"

    @staticmethod
    def parse(value: str) -> WriteMode:
        """Parse the name of a mode. Raises InvalidOptions."""
        try:
            return WriteMode(value)
        except ValueError:
            allowed = ", ".join(repr(mode.value) for mode in WriteMode)
            raise InvalidOptions(f"unknown mode {value!r}; use one of {allowed}") from None


@dataclass(frozen=True)
class IndexedColumn:
    """A column to index, as the user specified it."""

    name: str
    kind: str | None = None
    """`linear`, `hashing` or `quantiles`; None for the default of the column's type."""


def parse_columns(value: str | Sequence[str]) -> tuple[IndexedColumn, ...]:
    """Parse the columns to index, each with an optional kind of index.

    Args:
        value: column names as `"a,b:hash"` or `["a", "b:hash"]`, 1 to 8 of them.

    Returns:
        The columns in the given order, with the names as given.

    Raises:
        InvalidOptions: there is no column or more than eight, a kind is unknown, or the format
            cannot store a name.
    """
    if isinstance(value, str):
        items: list[object] = list(value.split(","))
    elif _is_iterable(value) and not isinstance(value, Set):
        items = list(value)
    else:
        # Their order is part of the index, and a set has none.
        raise InvalidOptions(
            "columns_to_index must be a string or a list of names such as 'user_id' or "
            f"'user_id:hash', got {value!r:.200}"
        )
    columns = tuple(_parse_column(item) for item in items)
    if not 1 <= len(columns) <= MAX_COLUMNS:
        raise InvalidOptions(
            f"columns_to_index names {len(columns)} columns; an index has 1 to {MAX_COLUMNS}"
        )
    return columns


def parse_automatic(value: str | Sequence[str] | None) -> int | None:
    """Parse `"auto"` or `"auto:<n>"`, which leave the choice of the indexed columns to the library.

    Args:
        value: the option `columns_to_index`, in any form.

    Returns:
        The maximum number of columns to choose, 3 for plain `"auto"`; None for any other value.

    Raises:
        InvalidOptions: the number is not between 1 and 8.
    """
    match = _AUTOMATIC.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    at_most = int(match["at_most"] or _AUTOMATIC_COLUMNS)
    if not 1 <= at_most <= MAX_COLUMNS:
        raise InvalidOptions(
            f"columns_to_index {value!r} must choose 1 to {MAX_COLUMNS} columns, such as 'auto:2'"
        )
    return at_most


def parse_flag(option: str, value: bool | None) -> bool | None:
    """Check an option that is on or off; None means that it is not set. Raises InvalidOptions."""
    if value is None or isinstance(value, (bool, np.bool_)):
        return None if value is None else bool(value)
    raise InvalidOptions(f"{option} must be true or false, got {value!r}")


def parse_texts(
    option: str, value: str | Iterable[str], what: str, *, also: str = ""
) -> tuple[str, ...]:
    """Check an option that is one text or several, in any iterable; it is read only once.

    Args:
        option: the name of the option, for messages.
        what: what each text is, such as "the name of a column".
        also: what else the option can be, for messages, with a comma at the end.

    Raises:
        InvalidOptions: the value or a part of it is not a text.
    """
    if isinstance(value, str):
        return (value,)
    if not _is_iterable(value):
        raise InvalidOptions(f"{option} must be {also}{what} or a list of them, got {value!r:.200}")
    texts = tuple(value)
    for text in texts:
        if not isinstance(text, str):
            raise InvalidOptions(f"{option} contains {text!r:.200}, which is not {what}")
    return texts


def parse_user_metadata(value: str | None) -> str | None:
    """Check the `userMetadata` of a commit; None for none. Raises InvalidOptions."""
    if value is None or isinstance(value, str):
        return value
    raise InvalidOptions(
        f"user_metadata must be a string, got {value!r:.200}; write an object as JSON, with "
        "json.dumps"
    )


def parse_name(value: str) -> str:
    """The name of a table as text. Raises InvalidOptions."""
    if isinstance(value, str):
        return value
    raise InvalidOptions(f"a table's name must be a string such as 'schema.table', got {value!r}")


def parse_path(option: str, value: str | os.PathLike[str]) -> str:
    """A path as text, from a text or an object such as `pathlib.Path`. Raises InvalidOptions."""
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    if isinstance(path, str) and path.strip():
        return path
    raise InvalidOptions(f"{option} must be a path or a URI, got {value!r}")


def resolve_columns(
    columns: Sequence[IndexedColumn],
    schema: StructType,
    case_sensitive: bool = False,
    *,
    may_be_identity: bool = False,
) -> tuple[Transformer, ...]:
    """Resolve the columns to index against a schema.

    Args:
        columns: as `parse_columns` returns them.
        schema: the schema of the rows or of the table.
        case_sensitive: whether names must match the schema's case.
        may_be_identity: whether to accept identity columns. An index built from existing rows
            can have them, because their values are known by then.

    Returns:
        One transformer for each column, with the name as the schema spells it.

    Raises:
        InvalidOptions: a column is named twice.
        UnknownColumn: the schema has no such column.
        UnsupportedColumnType: the type cannot be indexed, or not with the requested kind.
    """
    transformers = tuple(
        _resolve(column, schema, case_sensitive, may_be_identity) for column in columns
    )
    names = [transformer.column for transformer in transformers]
    for name in names:
        if names.count(name) > 1:
            raise InvalidOptions(f"columns_to_index names {name!r} twice; name each column once")
    return transformers


def parse_sample_key(value: str | Sequence[str] | None) -> tuple[str, ...] | str | None:
    """Parse the option `sample_key`.

    Args:
        value: column names as `"a,b"` or `["a", "b"]`, `"all"`, or None.

    Returns:
        The column names, `"all"`, or None if the option is not set.

    Raises:
        InvalidOptions: the value is none of these.
    """
    if value is None:
        return None
    if isinstance(value, str) and value.strip().lower() == ALL:
        return ALL
    names = list(value.split(",")) if isinstance(value, str) else value
    if not isinstance(names, Sequence) or not names or not all(map(_is_name, names)):
        raise InvalidOptions(
            f"sample_key {value!r} must be 'all' or name columns, as in ['order_id'] or "
            "'order_id,line'"
        )
    return tuple(name.strip() for name in names)


def resolve_sample_key(
    key: Sequence[str] | str,
    schema: StructType,
    case_sensitive: bool = False,
    *,
    may_be_identity: bool = False,
) -> tuple[str, ...]:
    """Resolve a sample key against a schema.

    Args:
        key: as `parse_sample_key` returns it, but not None.
        schema: the schema of the rows or of the table.
        case_sensitive: whether names must match the schema's case.
        may_be_identity: whether to accept identity columns, as in `resolve_columns`.

    Returns:
        The columns of the key as the schema spells them. `"all"` stands for every column that
        Spark can hash, except identity columns and strings with a collation.

    Raises:
        InvalidOptions: a column is named twice.
        UnknownColumn: the schema has no such column.
        UnsupportedColumnType: Spark cannot hash a column or hashes it by its collation, or it is an
            identity column.
    """
    if key == ALL:
        found = [
            field for field in schema.fields if _has_hash(field.dataType) and not is_identity(field)
        ]
    else:
        found = [_field_of(name, schema, "of the sample key", case_sensitive) for name in key]
    if not found:
        raise UnsupportedColumnType("sample_key 'all': Spark cannot hash any column of the table")
    for field in found:
        if not may_be_identity:
            _refuse_identity(field, "be part of a sample key")
        if not _has_hash(field.dataType):
            raise UnsupportedColumnType(
                f"column {field.name!r} of type {field.dataType.simpleString()} cannot be part of "
                f"a sample key because {_why_no_hash(field.dataType)}; name other columns"
            )
        if found.count(field) > 1:
            raise InvalidOptions(f"sample_key names {field.name!r} twice; name each column once")
    return tuple(field.name for field in found)


def parse_cube_size(value: int | str) -> int | None:
    """Parse the rows per cube; None for `auto`. Raises InvalidOptions."""
    if value == AUTO:
        return None
    is_number = isinstance(value, Integral) and not isinstance(value, bool)
    is_text = isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d{1,20}\s*", value)
    size = int(value) if is_number or is_text else 0
    if not 1 <= size <= MAX_CUBE_SIZE:
        raise InvalidOptions(
            f"cube_size {value!r} is not allowed; "
            f"use 'auto' or an integer number of rows from 1 to {MAX_CUBE_SIZE}"
        )
    return size


def parse_fraction(value: float | Decimal) -> float:
    """Check a sample fraction, from 0 (no rows) to 1 (all rows). Raises InvalidOptions."""
    if isinstance(value, bool) or not isinstance(value, (Real, Decimal)):
        raise InvalidOptions(f"fraction {value!r} is not a number from 0 to 1")
    # A decimal that is not a number cannot be compared.
    is_number = not isinstance(value, Decimal) or value.is_finite()
    if not (is_number and 0 <= value <= 1):
        raise InvalidOptions(f"fraction {value!r} is not between 0 and 1; one percent is 0.01")
    return float(value)


def _parse_column(item: object) -> IndexedColumn:
    match = _COLUMN.fullmatch(item.strip()) if isinstance(item, str) else None
    if match is None:
        raise InvalidOptions(
            f"columns_to_index contains {item!r}, which is not a column name; "
            "write names like 'ts' or 'user_id:hash'"
        )
    name, kind = match["name"], match["kind"]
    if not is_storable_name(name):
        raise InvalidOptions(
            f"column {name!r} cannot be indexed: the format cannot store a name with a comma or "
            f"colon, and the kinds of index are {_list(_KINDS)}; rename the column"
        )
    if kind is not None and kind.lower() not in _KINDS:
        raise InvalidOptions(
            f"column {name!r} cannot be indexed as {kind!r}{suggestion(kind.lower(), _KINDS)}; "
            f"use one of {_list(_KINDS)}"
        )
    return IndexedColumn(name, _KINDS[kind.lower()] if kind else None)


def _resolve(
    column: IndexedColumn, schema: StructType, case_sensitive: bool, may_be_identity: bool
) -> Transformer:
    found = _field_of(column.name, schema, "to index", case_sensitive)
    if not may_be_identity:
        _refuse_identity(found, "be indexed")
    return transformer_for(found.name, found.dataType.simpleString(), column.kind)


def _field_of(name: str, schema: StructType, what: str, case_sensitive: bool) -> StructField:
    found = find_field(schema, name, case_sensitive=case_sensitive)
    if found is None:
        raise UnknownColumn(
            f"column {name!r} {what} does not exist{suggestion(name, schema.fieldNames())}; "
            f"the columns are {_list(schema.fieldNames())}"
        )
    return found


def _refuse_identity(field: StructField, what: str) -> None:
    if is_identity(field):
        raise UnsupportedColumnType(
            f"column {field.name!r} cannot {what}: it is an identity column, and Delta generates "
            "its values only after rows are placed in the index; name other columns"
        )


def _is_iterable(value: object) -> bool:
    """Whether the value lists others; a column of Spark only looks as if it did."""
    return isinstance(value, Iterable) and not isinstance(value, (bytes, Column, Mapping))


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _has_hash(data_type: DataType) -> bool:
    """Whether Spark's `hash()` accepts the type and does not depend on a setting.

    It rejects maps and variants. The hash of a string with a collation depends on
    `spark.sql.legacy.collationAwareHashFunctions`.
    """
    if isinstance(data_type, StructType):
        return all(_has_hash(field.dataType) for field in data_type.fields)
    if isinstance(data_type, ArrayType):
        return _has_hash(data_type.elementType)
    if isinstance(data_type, MapType) or _has_collation(data_type):
        return False
    return data_type.simpleString() not in _WITHOUT_HASH


def _has_collation(data_type: DataType) -> bool:
    return " collate " in data_type.simpleString()


def _why_no_hash(data_type: DataType) -> str:
    if _has_collation(data_type):
        return "a setting of Spark decides whether its hash depends on the collation"
    return "Spark cannot hash it"


def _list(names: Iterable[str] | Mapping[str, str]) -> str:
    return ", ".join(repr(name) for name in names)
