"""How each column is indexed: its name, its type and the kind of its transformation.

docs/format.md 3.2 specifies the JSON, docs/format.md 2.3 the kinds and their defaults.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from qbeast_core.errors import CorruptMetadata, InvalidOptions, UnsupportedColumnType
from qbeast_core.model.coordinate import PACKAGE, field_of
from qbeast_core.model.datatypes import DataType

KINDS = ("linear", "hashing", "quantiles")
"""The kinds that a user can choose, as `columnsToIndex` spells them."""


class Transformer(ABC):
    """The settings of one indexed column, from which the data determine its transformation."""

    kind: ClassVar[str]
    """The name of the kind in `columnsToIndex`."""

    class_name: ClassVar[str]
    """The class name stored in revisions, without its package."""

    column: str

    def is_for(self, spark_type: str) -> bool:
        """Whether the transformer can index a column of this Spark type."""
        indexed_as = getattr(self, "data_type", None)
        if indexed_as is None:
            return True
        try:
            return DataType.of_spark(spark_type) is indexed_as
        except UnsupportedColumnType:
            return False

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The JSON object stored in revisions, with its keys in the stored order."""

    def _named(self, **fields: Any) -> dict[str, Any]:
        return {"className": PACKAGE + self.class_name, "columnName": self.column, **fields}


@dataclass(frozen=True)
class LinearTransformer(Transformer):
    """An ordered column, indexed by the position between its minimum and maximum."""

    kind: ClassVar[str] = "linear"
    class_name: ClassVar[str] = "LinearTransformer"

    column: str
    data_type: DataType

    def to_json(self) -> dict[str, Any]:
        return self._named(dataType=self.data_type.value)


@dataclass(frozen=True)
class HashTransformer(Transformer):
    """A column of strings or numbers, indexed for equality."""

    kind: ClassVar[str] = "hashing"
    class_name: ClassVar[str] = "HashTransformer"

    column: str
    data_type: DataType

    def to_json(self) -> dict[str, Any]:
        return self._named(dataType=self.data_type.value)


@dataclass(frozen=True)
class NumericQuantilesTransformer(Transformer):
    """An ordered column with an uneven distribution, indexed by quantiles."""

    kind: ClassVar[str] = "quantiles"
    class_name: ClassVar[str] = "CDFNumericQuantilesTransformer"

    column: str
    data_type: DataType

    def to_json(self) -> dict[str, Any]:
        return self._named(orderedDataType=self.data_type.value)


@dataclass(frozen=True)
class StringQuantilesTransformer(Transformer):
    """A string column, indexed by quantiles so that range filters can use the index."""

    kind: ClassVar[str] = "quantiles"
    class_name: ClassVar[str] = "CDFStringQuantilesTransformer"

    column: str
    data_type: ClassVar[DataType] = DataType.STRING

    def to_json(self) -> dict[str, Any]:
        return self._named()


@dataclass(frozen=True)
class EmptyTransformer(Transformer):
    """A column of a staging revision: not indexed yet, of unknown type."""

    kind: ClassVar[str] = "empty"
    class_name: ClassVar[str] = "EmptyTransformer"

    column: str
    declared: str | None = field(default=None, compare=False)
    """The kind given in the table's `columnsToIndex`; revisions do not store it."""

    def to_json(self) -> dict[str, Any]:
        return self._named()


@dataclass(frozen=True)
class StringHistogramTransformer(Transformer):
    """The deprecated predecessor of string quantiles; read only."""

    kind: ClassVar[str] = "histogram"
    class_name: ClassVar[str] = "StringHistogramTransformer"

    column: str
    data_type: DataType

    def to_json(self) -> dict[str, Any]:
        return self._named(dataType=self.data_type.value)


def transformer_for(column: str, spark_type: str, kind: str | None = None) -> Transformer:
    """The transformer of a column of this Spark type; `kind` None means the default of the type.

    Ordered types are linear by default, strings are hashed. Raises UnsupportedColumnType for a
    type that cannot be indexed, at all or as this kind, and InvalidOptions for an unknown kind.
    """
    try:
        data_type = DataType.of_spark(spark_type)
    except UnsupportedColumnType as problem:
        raise UnsupportedColumnType(f"column {column!r}: {problem}") from None
    fitting = kinds_for(data_type)
    chosen = fitting[0] if kind is None else kind
    if chosen not in KINDS:
        raise InvalidOptions(
            f"column {column!r}: unknown kind of index {kind!r}; use one of {', '.join(KINDS)}"
        )
    if chosen not in fitting:
        raise UnsupportedColumnType(
            f"column {column!r} of type {spark_type} cannot be indexed as {kind!r}; "
            f"use one of {', '.join(fitting)}"
        )
    if chosen == "linear":
        return LinearTransformer(column, data_type)
    if chosen == "hashing":
        return HashTransformer(column, data_type)
    if data_type is DataType.STRING:
        return StringQuantilesTransformer(column)
    return NumericQuantilesTransformer(column, data_type)


def kinds_for(data_type: DataType) -> tuple[str, ...]:
    """The kinds that a type allows, its default first.

    The format has no hash of dates and timestamps.
    """
    if data_type is DataType.STRING:
        return ("hashing", "quantiles")
    if data_type in (DataType.DATE, DataType.TIMESTAMP):
        return ("linear", "quantiles")
    return ("linear", "hashing", "quantiles")


def wanted_kind(transformer: Transformer) -> str | None:
    """The kind to request for the same index; None for the default of the type."""
    if isinstance(transformer, EmptyTransformer):
        return transformer.declared
    return transformer.kind if transformer.kind in KINDS else None


def kept_kind(transformer: Transformer, spark_type: str) -> str | None:
    """The kind that a column keeps when its type changes to `spark_type`; None for the default of
    that type."""
    kind = wanted_kind(transformer)
    try:
        return kind if kind in kinds_for(DataType.of_spark(spark_type)) else None
    except UnsupportedColumnType:
        return None


def transformer_from_json(json_object: Any) -> Transformer:
    """The transformer of the class `className` in a JSON object; unknown fields are ignored.

    Raises CorruptMetadata for an unknown class or a missing field.
    """
    name = json_object.get("className") if isinstance(json_object, dict) else None
    read = _READERS.get(name) if isinstance(name, str) else None
    if read is None:
        raise CorruptMetadata(f"unknown transformer: {json_object!r:.200}")
    column = field_of(json_object, "columnName")
    if not isinstance(column, str):
        raise CorruptMetadata(f"columnName must be a string, got {column!r:.200}")
    return read(column, json_object)


def _typed(
    kind: Callable[[str, DataType], Transformer], field: str
) -> Callable[[str, Mapping[str, Any]], Transformer]:
    return lambda column, fields: kind(column, DataType.of_name(field_of(fields, field)))


_READERS: dict[str, Callable[[str, Mapping[str, Any]], Transformer]] = {
    PACKAGE + LinearTransformer.class_name: _typed(LinearTransformer, "dataType"),
    PACKAGE + HashTransformer.class_name: _typed(HashTransformer, "dataType"),
    PACKAGE + NumericQuantilesTransformer.class_name: _typed(
        NumericQuantilesTransformer, "orderedDataType"
    ),
    PACKAGE + StringQuantilesTransformer.class_name: lambda c, _: StringQuantilesTransformer(c),
    PACKAGE + EmptyTransformer.class_name: lambda c, _: EmptyTransformer(c),
    PACKAGE + StringHistogramTransformer.class_name: _typed(StringHistogramTransformer, "dataType"),
}
