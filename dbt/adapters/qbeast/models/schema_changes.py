"""dbt's `on_schema_change`: what to do when columns or nested fields differ."""

from collections.abc import Callable, Iterable, Sequence

from dbt.adapters.qbeast.models.advice import full_refresh
from dbt.adapters.qbeast.models.differences import Change, Difference, differences, sql_type
from dbt.adapters.qbeast.models.increment import APPEND_NEW, FAIL, SYNC_ALL, Increment
from dbt_common.exceptions import CompilationError, DbtRuntimeError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from qbeast_core import (
    Catalog,
    InvalidOptions,
    QbeastTable,
    TableSnapshot,
    generation_expression,
    is_identity,
    known_part,
    maps_columns,
    one_line,
    quoted,
    run_statement,
)

_WIDENING = "delta.enableTypeWidening"
_CONSTRAINT = "delta.constraints."


def fit_increment(
    query: Callable[[], DataFrame], table: str, model: str, increment: Increment
) -> DataFrame:
    """Changes a table as `apply_schema_change` does, and fits the rows of the query to it.

    The rows have the columns and fields of the table. Those of a merge keep their other columns,
    because predicates may use them. A struct field that the query lacks is null; in a column that
    the increment updates, it is an error, because the update would lose it.
    """
    rows = apply_schema_change(query, table, model, increment.on_schema_change)
    return known_part(
        rows,
        table_schema(rows.sparkSession, table),
        model,
        updates=increment.updates,
        keeps_others=increment.matches_rows,
    )


def apply_schema_change(
    query: Callable[[], DataFrame], table: str, model: str, on_schema_change: str
) -> DataFrame:
    """Changes the columns and fields of a table to match its model's query.

    Returns the rows of the query, with all of its columns.

    Args:
        query: creates the frame of the model's query. It is called again after the table's columns
            have changed, because the query may read the table.
        table: the quoted name of the model's table.
        model: the model's name, for messages.
        on_schema_change: `ignore` leaves out new columns, `fail` rejects any difference,
            `append_new_columns` adds new columns, `sync_all_columns` also drops and retypes.
    """
    frame = query()
    session = frame.sparkSession
    present = table_schema(session, table)
    found = list(differences(frame.schema, present))
    if on_schema_change == FAIL and found:
        raise CompilationError(
            f"The columns of {model} have changed (new: {_list(found, Change.NEW)}; removed: "
            f"{_list(found, Change.GONE)}; of another type: {_list(found, Change.RETYPED)}), but "
            "on_schema_change is 'fail'. Set on_schema_change to 'append_new_columns' or "
            "'sync_all_columns', or run with --full-refresh, which keeps only the rows that the "
            "query returns."
        )
    if on_schema_change == SYNC_ALL:
        _synchronize(frame, table, model, found)
    if on_schema_change in (APPEND_NEW, SYNC_ALL):
        add_columns(session, table, found)
    if on_schema_change == SYNC_ALL:
        _drop(session, table, [each for each in found if each.change is Change.GONE])
    return frame if table_schema(session, table) == present else query()


def table_schema(session: SparkSession, table: str) -> StructType:
    """The columns of a table, without `_qbeast_slice`."""
    provider, location = _provider_and_location(session, table)
    if provider == "delta":
        # Spark does not show which columns are generated, identity or NOT NULL columns.
        return TableSnapshot.load(session, location).schema
    return session.table(table).schema


def add_columns(session: SparkSession, table: str, found: Iterable[Difference]) -> None:
    """Adds the new columns and fields to a table."""
    definitions = ", ".join(
        f"{each.quoted} {sql_type(each.data_type)}" for each in found if each.change is Change.NEW
    )
    if definitions:
        run_statement(session, f"alter table {table} add columns ({definitions})")


def drop_columns(session: SparkSession, table: str, columns: Sequence[str]) -> None:
    """Drops columns like `QbeastTable.drop_columns`, also from a Delta table without an index.

    Raises DbtRuntimeError if the table is not stored as Delta.
    """
    _check_delta(session, table, columns)
    if QbeastTable.is_qbeast(session, table):
        QbeastTable.for_name(session, table).drop_columns(columns)
        return
    if _is_mapped(session, table):
        names = ", ".join(quoted(name) for name in columns)
        run_statement(session, f"alter table {table} drop columns ({names})")
        return
    _check_rewritable(session, table, columns)
    kept = session.table(table).drop(*[F.col(quoted(name)) for name in columns])
    (detail,) = session.sql(f"describe detail {table}").collect()
    writer = kept.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    # Delta accepts another schema only if all partitions are replaced, whatever the session says.
    writer = writer.option("partitionOverwriteMode", "static")
    writer.partitionBy(*detail.partitionColumns).save(detail.location)


def _check_delta(session: SparkSession, table: str, dropped: Sequence[str]) -> None:
    """Raises DbtRuntimeError if a change would drop columns or fields from another format."""
    provider = _provider_and_location(session, table)[0] if dropped else "delta"
    if provider != "delta":
        reason, remedy = "it is in another catalog than Spark's own", ""
        if provider:
            reason = f"it is stored as {provider}"
            remedy = (
                ". To store the table as Delta, remove file_format and run with --full-refresh, "
                "which keeps only the rows that the query returns"
            )
        raise DbtRuntimeError(
            f"{', '.join(dropped)} cannot be dropped from {table}, because {reason}, and columns "
            "can be dropped only from a Delta table: keep the columns in the query, or set "
            "on_schema_change to 'append_new_columns', which leaves them empty in new rows"
            f"{remedy}"
        )


def _check_rewritable(session: SparkSession, table: str, dropped: Sequence[str]) -> None:
    """Raises DbtRuntimeError if a rewrite would lose more of the table than these columns."""
    if not dropped:
        return
    gone = {name.lower() for name in dropped}
    instead = (
        "Turn on column mapping, so that Delta can drop them itself: alter table "
        f"{table} set tblproperties ('delta.columnMapping.mode' = 'name'). Or keep the columns in "
        "the query"
    )
    clustering = _clustering_columns(session, table)
    if clustering:
        raise DbtRuntimeError(
            f"{', '.join(dropped)} cannot be dropped by rewriting {table}: it would no longer be "
            f"clustered by {', '.join(clustering)}. {instead}"
        )
    special = [
        field.name
        for field in table_schema(session, table)
        if field.name.lower() not in gone
        and (generation_expression(field) or is_identity(field) or not field.nullable)
    ]
    if special:
        raise DbtRuntimeError(
            f"{', '.join(dropped)} cannot be dropped by rewriting {table}: its generated, identity "
            f"or NOT NULL columns ({', '.join(special)}) would become plain ones. {instead}"
        )


def _clustering_columns(session: SparkSession, table: str) -> list[str]:
    """The columns of a Delta table's liquid clustering."""
    (detail,) = session.sql(f"describe detail {table}").collect()
    return list(detail.clusteringColumns or ())


def _synchronize(frame: DataFrame, table: str, model: str, found: Sequence[Difference]) -> None:
    """Retypes columns and fields, after checking that those that are gone can be dropped.

    Args:
        frame: the rows of the query.
    """
    session = frame.sparkSession
    changed = [each for each in found if each.change is not Change.NEW]
    gone = [str(each) for each in changed if each.change is Change.GONE]
    _check_delta(session, table, gone)
    _check_unindexed(session, table, model, changed)
    _check_no_layout(session, table, model, changed)
    _check_unneeded(frame, table, model, changed)
    fields = [each for each in changed if each.change is Change.GONE and len(each.path) > 1]
    if fields and not _is_mapped(session, table):
        raise DbtRuntimeError(
            f"the query of {model} no longer has {', '.join(map(str, fields))}, but Delta can drop "
            "a nested field only with column mapping: keep it in the query, or run "
            f"alter table {table} set tblproperties ('delta.columnMapping.mode' = 'name'). "
            f"{full_refresh(model)}"
        )
    if not (_is_mapped(session, table) or QbeastTable.is_qbeast(session, table)):
        _check_rewritable(session, table, _columns_gone(changed))
    for each in changed:
        if each.change is Change.RETYPED:
            _retype(session, table, model, each)


def _drop(session: SparkSession, table: str, gone: Sequence[Difference]) -> None:
    fields = ", ".join(each.quoted for each in gone if len(each.path) > 1)
    if fields:
        run_statement(session, f"alter table {table} drop columns ({fields})")
    columns = _columns_gone(gone)
    if columns:
        drop_columns(session, table, columns)


def _columns_gone(found: Sequence[Difference]) -> list[str]:
    return [d.path[0] for d in found if d.change is Change.GONE and len(d.path) == 1]


def _check_unindexed(
    session: SparkSession, table: str, model: str, changed: Sequence[Difference]
) -> None:
    if not changed or not QbeastTable.is_qbeast(session, table):
        return
    layout_columns = QbeastTable.for_name(session, table).latest_revision.layout_columns
    lower = {name.lower() for name in layout_columns}
    for each in changed:
        if each.path[0].lower() in lower:
            raise DbtRuntimeError(
                f"{model} is indexed by {each.path[0]!r} or has it in its sample_key, but its "
                "query no longer returns that column with the type it has in the table: keep the "
                "column, or set columns_to_index and sample_key to other columns. The next run "
                "then shows the write_table call that keeps all rows. "
                f"{full_refresh(model)}"
            )


def _check_no_layout(
    session: SparkSession, table: str, model: str, changed: Sequence[Difference]
) -> None:
    if not changed:
        return
    listed = session.catalog.listColumns(table)
    layout = {each.name.lower(): "is partitioned by" for each in listed if each.isPartition}
    if _provider_and_location(session, table)[0] == "delta":
        names = _clustering_columns(session, table)
        layout |= {name.lower(): "is clustered by" for name in names}
    for each in changed:
        if each.path[0].lower() in layout:
            raise DbtRuntimeError(
                f"the table of {model} {layout[each.path[0].lower()]} {each.path[0]!r}, but "
                "its query no longer returns that column with the type it has in the table: keep "
                f"the column. {full_refresh(model)}"
            )


def _check_unneeded(
    frame: DataFrame, table: str, model: str, changed: Sequence[Difference]
) -> None:
    """Raises DbtRuntimeError if a constraint or generated column needs what is gone or retyped.

    Delta would refuse the change, but only after others have been made.
    """
    session = frame.sparkSession
    provider, location = _provider_and_location(session, table)
    if not changed or provider != "delta":
        return
    retyped = [each.path[0] for each in changed if each.change is Change.RETYPED]
    left = frame.drop(*[F.col(quoted(name)) for name in retyped])
    snapshot = TableSnapshot.load(session, location)
    names = ", ".join(repr(str(each)) for each in changed)
    for key, condition in snapshot.configuration.items():
        name = key.removeprefix(_CONSTRAINT)
        if name != key and not _is_known(left, condition):
            raise DbtRuntimeError(
                f"{table} has the constraint {name!r} ({condition}), which needs {names}, but the "
                f"query of {model} no longer returns that with the type it has in the table; first "
                f"run ALTER TABLE {table} DROP CONSTRAINT {name}, or keep the column. "
                f"{full_refresh(model)}"
            )
    gone = {each.path[0].lower() for each in changed}
    for field in snapshot.schema:
        expression = generation_expression(field)
        if expression and field.name.lower() not in gone and not _is_known(left, expression):
            raise DbtRuntimeError(
                f"{table} has the generated column {field.name!r} ({expression}), which needs "
                f"{names}, but the query of {model} no longer returns that with the type it has in "
                f"the table: keep the column. {full_refresh(model)}"
            )


def _is_known(frame: DataFrame, expression: str) -> bool:
    """Whether the frame has all columns and fields of an expression."""
    try:
        frame.select(F.expr(expression))
    except AnalysisException:
        return False
    return True


def _provider_and_location(session: SparkSession, table: str) -> tuple[str, str]:
    """How and where a table is stored; empty texts if it is in another catalog than Spark's own."""
    try:
        entry = Catalog(session).find(table)
    except InvalidOptions:
        return "", ""
    return entry.provider, entry.location


def _is_mapped(session: SparkSession, table: str) -> bool:
    return maps_columns(Catalog(session).properties(table))


def _retype(session: SparkSession, table: str, model: str, retyped: Difference) -> None:
    data_type = sql_type(retyped.data_type)
    try:
        run_statement(
            session, f"alter table {table} alter column {retyped.quoted} type {data_type}"
        )
    except Exception as error:
        widening, (provider, _) = "", _provider_and_location(session, table)
        properties = Catalog(session).properties(table)
        if provider == "delta" and properties.get(_WIDENING) != "true":
            widening = (
                ", or, if that type is wider, turn on type widening: alter table "
                f"{table} set tblproperties ('{_WIDENING}' = 'true')"
            )
        raise DbtRuntimeError(
            f"the column '{retyped}' of {table} cannot be changed to {data_type} in place "
            f"({one_line(error).rstrip('.')}): cast it to the table's type in the model's query"
            f"{widening}. {full_refresh(model)}"
        ) from error


def _list(found: Sequence[Difference], change: Change) -> str:
    return ", ".join(sorted(str(each) for each in found if each.change is change)) or "none"
