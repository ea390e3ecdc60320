"""Checks the column lists of an incremental model against the columns that exist."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from dbt.adapters.qbeast.column import unquoted
from dbt.adapters.qbeast.models.increment import (
    APPEND_NEW,
    DELETE_INSERT,
    MERGE,
    SYNC_ALL,
    Increment,
)
from dbt.adapters.qbeast.warning import warn
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from qbeast_core import QbeastTable, quoted, suggestion

Path = tuple[str, ...]
"""The names from a column down to a field of its structs; for a column, only its own name."""
_ADDS_COLUMNS = (APPEND_NEW, SYNC_ALL)


@dataclass(frozen=True)
class Columns:
    """The columns that a list may name."""

    schema: StructType
    owner: str
    """What has these columns, for messages."""

    def find(self, name: str, *, nested: bool = False) -> Path | None:
        """The column that a configuration names, as the schema spells it; None if there is none.

        A name may have any case, and backticks around it. With `nested`, it may also be that of a
        field of a struct: the result then has the names from the column down to the field.
        """
        plain = unquoted(name)
        found = next((f for f in self.schema.fields if f.name == plain), None)
        found = found or next(
            (f for f in self.schema.fields if f.name.lower() == plain.lower()), None
        )
        if found is not None:
            return (found.name,)
        first, dot, rest = name.partition(".")
        path = self.find(first) if dot and nested else None
        if path is None:
            return None
        data_type = self.schema[path[0]].dataType
        if not isinstance(data_type, StructType):
            return None
        below = Columns(data_type, self.owner).find(rest, nested=True)
        return None if below is None else (*path, *below)


def checked_increment(
    session: SparkSession,
    query: Callable[[], DataFrame],
    table: str,
    label: str,
    increment: Increment,
    *,
    is_incremental_run: bool,
    is_indexed: bool,
) -> Increment:
    """The increment of a run, with its columns spelled as in the query and the table.

    In a run that creates the table, a wrong column list is only a warning: the run does not use the
    lists, and dbt's own tests expect that it succeeds. Later runs fail.

    Args:
        query: creates the frame of the model's query.
        table: the quoted name of the model's table.
        label: its name in messages.
        is_incremental_run: whether the run changes the table; if not, it creates the table.
        is_indexed: whether the model has an index.

    Raises:
        DbtRuntimeError: the run is incremental, and a list names a column that does not exist.
    """
    if not names_columns(increment):
        return increment
    schema = query().schema
    layout_columns = _layout_columns(session, table) if is_indexed else None
    if is_incremental_run:
        return with_known_columns(increment, schema, session.table(table).schema, layout_columns)
    try:
        return with_known_columns(increment, schema, None, layout_columns)
    except DbtRuntimeError as problem:
        warn(f"{label}: {problem.msg}. Later runs that add rows will fail")
        return increment


def names_columns(increment: Increment) -> bool:
    """Whether the strategy uses column lists that can be checked.

    A project's own strategy may take anything, so its lists are not checked.
    """
    keys = increment.unique_key if increment.strategy in (MERGE, DELETE_INSERT) else ()
    lists = (increment.update_columns, increment.exclude_columns)
    return bool(keys) or (increment.strategy == MERGE and any(lists))


def with_known_columns(
    increment: Increment,
    query: StructType,
    table: StructType | None,
    layout_columns: Collection[str] | None = None,
) -> Increment:
    """The increment, with its columns spelled as in the query and the table.

    Args:
        query: the schema of the model's query.
        table: the schema of its table; None if the run creates the table.
        layout_columns: the columns that the table's index places rows by; None for a model
            without an index, whose key may be a field of a struct.

    Raises:
        DbtRuntimeError: a list names a column that does not exist.
    """
    given = Columns(query, "the model's query")
    present = given if table is None else Columns(table, "the model's table")
    either = given
    if table is not None:
        either = Columns(_both(table, query), "the model's query or its table")
    if increment.on_schema_change in _ADDS_COLUMNS:
        # The run adds the query's new columns to the table first.
        present = either
    if increment.strategy in (MERGE, DELETE_INSERT):
        keys: list[Path] = []
        in_layout = {name.lower() for name in layout_columns or ()}
        for name in increment.unique_key:
            # sync_all_columns has its own error for a column of the index that the query lacks.
            is_kept = increment.on_schema_change == SYNC_ALL and unquoted(name).lower() in in_layout
            owners = (either,) if is_kept else (given, present)
            keys.append(_find("unique_key", name, owners, nested=layout_columns is None))
        increment = replace(
            increment,
            unique_key=tuple(dict.fromkeys(".".join(path) for path in keys)),
            quoted_key=tuple(dict.fromkeys(".".join(map(quoted, path)) for path in keys)),
        )
    if increment.strategy == MERGE:
        updated = [
            _find("merge_update_columns", name, (given, present))
            for name in increment.update_columns
        ]
        excluded = [
            _find("merge_exclude_columns", name, (either,)) for name in increment.exclude_columns
        ]
        increment = replace(
            increment,
            update_columns=tuple(dict.fromkeys(name for (name,) in updated)),
            exclude_columns=tuple(dict.fromkeys(name for (name,) in excluded)),
        )
    return increment


def check_columns_of_query(option: str, names: Sequence[str], query: StructType) -> None:
    """Raises DbtRuntimeError if a list names something that is not a column of the query."""
    for name in names:
        _find(option, name, (Columns(query, "the query"),))


def unknown_column(option: str, name: str, columns: Sequence[str], owner: str) -> str:
    """The message about a column that does not exist.

    >>> unknown_column("unique_key", "idd", ["id", "day"], "the model's query")
    "unique_key names 'idd', which is not a column of the model's query (did you mean 'id'?). The \
columns are id, day"
    """
    return (
        f"{option} names {name!r}, which is not a column of {owner}"
        f"{suggestion(unquoted(name), columns)}. The columns are {', '.join(columns)}"
    )


def _layout_columns(session: SparkSession, table: str) -> Sequence[str]:
    """The columns that a table's index places rows by; empty without an index."""
    if not QbeastTable.is_qbeast(session, table):
        return ()
    return QbeastTable.for_name(session, table).latest_revision.layout_columns


def _find(option: str, name: str, owners: Sequence[Columns], nested: bool = False) -> Path:
    """The column that a list names; every owner must have it."""
    found: Path = ()
    for columns in owners:
        path = columns.find(name, nested=nested)
        if path is None:
            known = columns.schema.fieldNames()
            raise DbtRuntimeError(unknown_column(option, name, known, columns.owner))
        found = path
    return found


def _both(one: StructType, other: StructType) -> StructType:
    """The columns of both schemas; where both have a column, that of the first."""
    known = set(map(str.lower, one.fieldNames()))
    return StructType([*one.fields, *(f for f in other.fields if f.name.lower() not in known)])
