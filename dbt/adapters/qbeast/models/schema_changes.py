"""dbt's `on_schema_change`: what to do about columns and nested fields that differ."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from dbt.adapters.qbeast.models.advice import full_refresh
from dbt.adapters.qbeast.models.increment import APPEND_NEW, FAIL, SYNC_ALL
from dbt_common.exceptions import CompilationError, DbtRuntimeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from qbeast_core import (
    Catalog,
    QbeastTable,
    TableSnapshot,
    generation_expression,
    is_identity,
    known_part,
    maps_columns,
    quoted,
    same_type,
)


class Change(Enum):
    """How a column or field of a query differs from the table's."""

    NEW = "new"
    GONE = "gone"
    RETYPED = "of another type"


@dataclass(frozen=True)
class Difference:
    """A column of a table, or a field inside of one, that a query has in another way."""

    change: Change
    path: tuple[str, ...]
    """The column, and the way from there to the field, as ALTER TABLE names it."""
    data_type: DataType
    """The query's type; the table's where the query has none."""

    @property
    def quoted(self) -> str:
        return ".".join(map(quoted, self.path))

    def __str__(self) -> str:
        return ".".join(self.path)


def fit_to_table(
    query: Callable[[], DataFrame],
    table: str,
    on_schema_change: str,
    model: str,
    *,
    updates: Callable[[str], bool] = lambda _: False,
    keeps_others: bool = False,
) -> DataFrame:
    """The rows of a query with the columns and fields that its table has, or gets from it.

    Args:
        query, table, on_schema_change, model: as for `bring_up_to_date`.
        updates: whether rows that the table has get a column of the query. A field of a struct that
            the query lacks is an error there, for the update would lose it; elsewhere it is null.
        keeps_others: whether columns that the table lacks follow, as they are.
    """
    rows = bring_up_to_date(query, table, on_schema_change, model)
    schema = table_schema(rows.sparkSession, table)
    return known_part(rows, schema, model, updates=updates, keep_others=keeps_others)


def bring_up_to_date(
    query: Callable[[], DataFrame], table: str, on_schema_change: str, model: str
) -> DataFrame:
    """Gives a table the columns and fields that its model's query asks for.

    Returns the rows of the query, with all of its columns.

    Args:
        query: makes the frame of the model's query, once more where the table has been given other
            columns, for the query may read it.
        table: the quoted name of its table.
        on_schema_change: `ignore` leaves out what is new, `fail` refuses any difference,
            `append_new_columns` adds what is new, `sync_all_columns` also drops and retypes.
        model: the model's name, for messages.
    """
    frame = query()
    session = frame.sparkSession
    present = table_schema(session, table)
    found = list(differences(frame.schema, present))
    if on_schema_change == FAIL and found:
        raise CompilationError(
            f"The columns of {model} have changed (new: {_list(found, Change.NEW)}; gone: "
            f"{_list(found, Change.GONE)}; of another type: {_list(found, Change.RETYPED)}) and "
            "on_schema_change is 'fail'. Set on_schema_change to 'append_new_columns' or "
            "'sync_all_columns', or run with --full-refresh, which keeps only rows that the query "
            "gives then."
        )
    if on_schema_change == SYNC_ALL:
        _synchronise(session, table, found, model)
    if on_schema_change in (APPEND_NEW, SYNC_ALL):
        add_columns(session, table, found)
    if on_schema_change == SYNC_ALL:
        _drop(session, table, [each for each in found if each.change is Change.GONE])
    return frame if table_schema(session, table) == present else query()


def table_schema(session: SparkSession, table: str) -> StructType:
    """The columns of a table, without that of slices."""
    entry = Catalog(session).find(table)
    if entry.provider == "delta":
        # Spark does not show which columns are generated, are identity columns or are NOT NULL.
        return TableSnapshot.load(session, entry.location).schema
    return session.table(table).schema


def add_columns(session: SparkSession, table: str, found: Iterable[Difference]) -> None:
    """Adds the columns and fields that are new."""
    definitions = ", ".join(
        f"{each.quoted} {sql_type(each.data_type)}" for each in found if each.change is Change.NEW
    )
    if definitions:
        session.sql(f"alter table {table} add columns ({definitions})")


def drop_columns(session: SparkSession, table: str, columns: Sequence[str]) -> None:
    """Drops columns of a Delta table as `QbeastTable.drop_columns` does, without an index too."""
    if QbeastTable.is_qbeast(session, table):
        QbeastTable.for_name(session, table).drop_columns(columns)
        return
    if _is_mapped(session, table):
        names = ", ".join(quoted(name) for name in columns)
        session.sql(f"alter table {table} drop columns ({names})")
        return
    _require_rewritable(session, table, columns)
    kept = session.table(table).drop(*[F.col(quoted(name)) for name in columns])
    (detail,) = session.sql(f"describe detail {table}").collect()
    writer = kept.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.partitionBy(*detail.partitionColumns).save(detail.location)


def _require_rewritable(session: SparkSession, table: str, dropped: Sequence[str]) -> None:
    """Raises DbtRuntimeError where a rewrite without some columns would make plain columns of
    others."""
    gone = {name.lower() for name in dropped}
    special = [
        field.name
        for field in table_schema(session, table)
        if field.name.lower() not in gone
        and (generation_expression(field) or is_identity(field) or not field.nullable)
    ]
    if gone and special:
        raise DbtRuntimeError(
            f"{', '.join(dropped)} cannot be dropped by rewriting {table}: its generated, identity "
            f"or NOT NULL columns ({', '.join(special)}) would become plain ones. Map its columns, "
            f"and Delta drops columns itself: alter table {table} set tblproperties "
            "('delta.columnMapping.mode' = 'name'). Or keep the columns in the query"
        )


def differences(
    wanted: DataType, present: DataType, path: tuple[str, ...] = ()
) -> Iterator[Difference]:
    """How a query (`wanted`) differs from a table (`present`), at any depth; case is ignored."""
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
    """A type as SQL, with its fields' names quoted.

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


def _synchronise(
    session: SparkSession, table: str, found: Sequence[Difference], model: str
) -> None:
    """Retypes what has another type, once it is clear that all that is gone may be dropped."""
    changed = [each for each in found if each.change is not Change.NEW]
    _require_unindexed(session, table, changed, model)
    fields = [each for each in changed if each.change is Change.GONE and len(each.path) > 1]
    if fields and not _is_mapped(session, table):
        raise DbtRuntimeError(
            f"the query of {model} no longer has {', '.join(map(str, fields))}, and Delta drops a "
            "field inside of a column only where columns are mapped: keep it in the query, or "
            f"alter table {table} set tblproperties ('delta.columnMapping.mode' = 'name'). "
            f"{full_refresh(model)}"
        )
    if not (_is_mapped(session, table) or QbeastTable.is_qbeast(session, table)):
        _require_rewritable(session, table, _columns_gone(changed))
    for each in changed:
        if each.change is Change.RETYPED:
            _retype(session, table, each, model)


def _drop(session: SparkSession, table: str, gone: Sequence[Difference]) -> None:
    fields = ", ".join(each.quoted for each in gone if len(each.path) > 1)
    if fields:
        session.sql(f"alter table {table} drop columns ({fields})")
    columns = _columns_gone(gone)
    if columns:
        drop_columns(session, table, columns)


def _columns_gone(found: Sequence[Difference]) -> list[str]:
    return [d.path[0] for d in found if d.change is Change.GONE and len(d.path) == 1]


def _require_unindexed(
    session: SparkSession, table: str, changed: Sequence[Difference], model: str
) -> None:
    if not changed or not QbeastTable.is_qbeast(session, table):
        return
    placing = QbeastTable.for_name(session, table).latest_revision.layout_columns
    lower = {name.lower() for name in placing}
    for each in changed:
        if each.path[0].lower() in lower:
            raise DbtRuntimeError(
                f"{model} is indexed by {each.path[0]!r} or has it in its sample_key, and its "
                "query no longer has the column with the type that the table has: keep the "
                "column, or take it out of columns_to_index and sample_key. The next run then "
                "names the call of write_table that keeps all rows. "
                f"{full_refresh(model)}"
            )


def _is_mapped(session: SparkSession, table: str) -> bool:
    return maps_columns(Catalog(session).properties(table))


def _retype(session: SparkSession, table: str, retyped: Difference, model: str) -> None:
    data_type = sql_type(retyped.data_type)
    try:
        session.sql(f"alter table {table} alter column {retyped.quoted} type {data_type}")
    except Exception as error:
        raise DbtRuntimeError(
            f"the column '{retyped}' of {table} cannot become {data_type} in place: cast it in the "
            "model's query to the type that the table has, or let the table widen it, by alter "
            f"table {table} set tblproperties ('delta.enableTypeWidening' = 'true'). "
            f"{full_refresh(model)}"
        ) from error


def _list(found: Sequence[Difference], change: Change) -> str:
    return ", ".join(sorted(str(each) for each in found if each.change is change)) or "none"
