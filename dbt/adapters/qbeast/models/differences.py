"""How the columns of a query differ from those of a table, at any depth."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from qbeast_core import quoted, same_type


class Change(Enum):
    """How a column or field of a query differs from the table's."""

    NEW = "new"
    GONE = "gone"
    RETYPED = "of another type"


@dataclass(frozen=True)
class Difference:
    """A column, or a field inside one, that differs between a query and its table."""

    change: Change
    path: tuple[str, ...]
    """The column, and the path from there to the field, as ALTER TABLE names it."""
    data_type: DataType
    """The query's type; the table's if the query lacks the column or field."""

    @property
    def quoted(self) -> str:
        return ".".join(map(quoted, self.path))

    def __str__(self) -> str:
        return ".".join(self.path)


def differences(
    wanted: DataType, present: DataType, path: tuple[str, ...] = ()
) -> Iterator[Difference]:
    """How a query (`wanted`) differs from a table (`present`), at any depth, ignoring case."""
    if isinstance(wanted, StructType) and isinstance(present, StructType):
        known = {field.name.lower(): field for field in present}
        for field in wanted:
            old = known.pop(field.name.lower(), None)
            if old is None:
                yield Difference(Change.NEW, (*path, field.name), field.dataType)
            else:
                yield from differences(field.dataType, old.dataType, (*path, old.name))
        for field in known.values():
            yield Difference(Change.GONE, (*path, field.name), field.dataType)
    elif isinstance(wanted, ArrayType) and isinstance(present, ArrayType):
        yield from differences(wanted.elementType, present.elementType, (*path, "element"))
    elif isinstance(wanted, MapType) and isinstance(present, MapType):
        yield from differences(wanted.keyType, present.keyType, (*path, "key"))
        yield from differences(wanted.valueType, present.valueType, (*path, "value"))
    elif not same_type(wanted, present):
        yield Difference(Change.RETYPED, path, wanted)


def sql_type(data_type: DataType) -> str:
    """A type as SQL, with quoted field names.

    >>> from pyspark.sql.types import StringType
    >>> sql_type(StructType().add("a b", ArrayType(StringType())))
    'struct<`a b`: array<string>>'
    """
    if isinstance(data_type, StructType):
        fields = (f"{quoted(field.name)}: {sql_type(field.dataType)}" for field in data_type)
        return f"struct<{', '.join(fields)}>"
    if isinstance(data_type, ArrayType):
        return f"array<{sql_type(data_type.elementType)}>"
    if isinstance(data_type, MapType):
        return f"map<{sql_type(data_type.keyType)}, {sql_type(data_type.valueType)}>"
    return data_type.simpleString()
