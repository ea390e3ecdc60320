"""Writes the rows of a model's query to an indexed table."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from dbt.adapters.events.types import AdapterEventInfo, AdapterEventWarning
from dbt.adapters.qbeast import after_commit
from dbt.adapters.qbeast.models import advice
from dbt.adapters.qbeast.models.configuration import ModelSpec
from dbt.adapters.qbeast.models.descriptions import with_comments
from dbt.adapters.qbeast.models.increment import (
    APPEND,
    APPEND_NEW,
    DELETE_INSERT,
    INSERT_OVERWRITE,
    MERGE,
    MICROBATCH,
    REPLACE_WHERE,
    Increment,
)
from dbt.adapters.qbeast.models.increment_warnings import warning_of_cube_size
from dbt.adapters.qbeast.models.response import QbeastAdapterResponse as Response
from dbt.adapters.qbeast.models.response import response_of_rewrite, response_of_write
from dbt.adapters.qbeast.models.same_index import require_known_columns, require_same_index
from dbt.adapters.qbeast.models.schema_changes import bring_up_to_date, fit_to_table, table_schema
from dbt.adapters.qbeast.sampling import marks, run_sample
from dbt_common.events.functions import fire_event, warn_or_error
from dbt_common.exceptions import DbtRuntimeError
from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from qbeast_core import (
    ColumnChoice,
    IndexMismatch,
    NotAQbeastTable,
    QbeastTable,
    RewriteResult,
    WriteResult,
    aligned,
    is_always_generated,
    is_identity,
    one_line,
    parse_automatic,
    qualified,
    quoted,
    write_table,
)

# dbt's names for the two sides of a merge, which predicates use.
_SOURCE, _TARGET = "DBT_INTERNAL_SOURCE", "DBT_INTERNAL_DEST"
_WITHOUT_COLUMN_LIST = (REPLACE_WHERE, MICROBATCH)
"""Spark's INSERT ... REPLACE WHERE takes all columns, in the table's order."""


def write_model(
    session: SparkSession,
    query: Callable[[], DataFrame],
    table: str,
    spec: ModelSpec,
    increment: Increment | None,
) -> Response:
    """Commits the rows of a model's query.

    Args:
        query: creates the frame of the model's query; its rows are computed once.
        table: the quoted name, `schema`.`table`.
        increment: what to do with the table's rows; None to rebuild it.

    Raises:
        DbtRuntimeError: the table's index or schema differs from the model's.
        QbeastError: any other error of qbeast_core.
    """
    if increment is None:
        return _rebuild(session, query(), table, spec)
    with _advising(session, table, spec):
        _require_same_index(session, query, table, spec)
        present = QbeastTable.for_name(session, table).cube_size
        warning = warning_of_cube_size(spec, increment, present)
        if warning is not None:
            warn_or_error(AdapterEventWarning(name="Qbeast", base_msg=warning, args=[]))
        rows = _fitting(query, table, spec.selector, increment)
        return _STRATEGIES[increment.strategy](rows, table, spec, increment)


def view_of_increment(
    session: SparkSession,
    query: Callable[[], DataFrame],
    increment: Increment,
    spec: ModelSpec | None,
    *,
    view: str,
    table: str,
    model: str,
) -> None:
    """Creates the temporary view of the rows that a SQL statement adds to a table.

    The table gains and loses columns as `on_schema_change` says. The view has the columns of the
    table, as the table stores them; for a merge also those that only the query has, because
    predicates may use them. A project's own strategy gets the query's rows unchanged.

    Args:
        spec: the specification of a model with an index, which its table must then have.
        view: the name of the view.
        table: the quoted name, `schema`.`table`.
        model: what dbt calls the model, for messages.

    Raises:
        DbtRuntimeError: the table's index or schema differs from the model's.
    """
    if spec is not None:
        with _advising(session, table, spec):
            require_same_index(session, table, spec)
    if increment.strategy == INSERT_OVERWRITE:
        _require_its_partitions(session, table, model, increment)
    if increment.is_own:
        rows = bring_up_to_date(query, table, increment.on_schema_change, model)
    elif increment.strategy in _WITHOUT_COLUMN_LIST:
        _require_no_identity(session, query, table, model, increment)
        rows = _fitting(query, table, model, increment)
        rows = aligned(rows, table_schema(session, table), model)
    else:
        rows = _fitting(query, table, model, increment)
    rows.createOrReplaceTempView(view)


def view_of_snapshot(
    query: Callable[[], DataFrame],
    view: str,
    table: str,
    snapshot: str,
    own_columns: Sequence[str],
) -> None:
    """Creates the temporary view of a snapshot's source, after adding its new columns to the table.

    The view has the columns of the table, as the table stores them. Columns that the source lacks
    are null.

    Args:
        view: the name of the view.
        table: the quoted name of the snapshot, `schema`.`table`.
        own_columns: the columns that dbt adds to a snapshot; the view leaves them out.
    """
    rows = fit_to_table(query, table, APPEND_NEW, snapshot)
    own = {name.lower() for name in own_columns}
    fields = table_schema(rows.sparkSession, table).fields
    schema = StructType([field for field in fields if field.name.lower() not in own])
    aligned(rows, schema, snapshot).createOrReplaceTempView(view)


def _fitting(
    query: Callable[[], DataFrame], table: str, model: str, increment: Increment
) -> DataFrame:
    return fit_to_table(
        query,
        table,
        increment.on_schema_change,
        model,
        updates=increment.updates,
        # The predicates of a merge may use the other columns.
        keeps_others=increment.matches_rows,
    )


def _require_its_partitions(
    session: SparkSession, table: str, model: str, increment: Increment
) -> None:
    """Raises DbtRuntimeError if `partition_by` names other columns than the table's partitions."""
    wanted = list(increment.partition_by)
    present = [each.name for each in session.catalog.listColumns(table) if each.isPartition]
    if not wanted or set(map(str.lower, wanted)) == set(map(str.lower, present)):
        return
    is_now = "is not partitioned"
    remedy = (
        "To replace the values that the query has, use incremental_strategy='delete+insert' with "
        f"unique_key={wanted!r} instead. Without partition_by, each run would replace all rows"
    )
    if present:
        is_now = f"is partitioned by {', '.join(present)}"
        remedy = f"Set partition_by={present!r}"
    raise DbtRuntimeError(
        f"{model} has partition_by={wanted!r}, but its table {is_now}: insert_overwrite would "
        f"delete rows outside the query's partitions. {remedy}. To repartition the table: "
        f"{advice.full_refresh(model)}."
    )


def _require_no_identity(
    session: SparkSession,
    query: Callable[[], DataFrame],
    table: str,
    model: str,
    increment: Increment,
) -> None:
    """Raises DbtRuntimeError for identity columns that INSERT ... REPLACE WHERE cannot fill."""
    identities = [field for field in table_schema(session, table) if is_identity(field)]
    given = set(map(str.lower, query().columns)) if identities else set()
    open_ones = [
        field.name
        for field in identities
        if is_always_generated(field) or field.name.lower() not in given
    ]
    if open_ones:
        raise DbtRuntimeError(
            f"the table of {model} has the identity column {', '.join(map(repr, open_ones))}, "
            f"which incremental_strategy={increment.strategy!r} cannot fill: Spark's INSERT ... "
            "REPLACE WHERE needs a value for each column. Use 'delete+insert' or 'merge' instead"
        )


def merge_snapshot(
    changes: DataFrame, table: str, columns: Mapping[str, str], valid_to_current: str | None
) -> Response:
    """Closes and inserts records of a snapshot.

    Args:
        changes: the records, each with its action in `dbt_change_type`.
        table: the quoted name of the snapshot.
        columns: the snapshot's names for dbt's columns.
        valid_to_current: the SQL value that an open record has instead of NULL.
    """
    valid_to = quoted(columns["dbt_valid_to"])
    is_open = f"{_TARGET}.{valid_to} is null"
    if valid_to_current:
        is_open = f"({is_open} or {_TARGET}.{valid_to} = {valid_to_current})"
    result = QbeastTable.for_name(changes.sparkSession, table).merge(
        changes,
        on=columns["dbt_scd_id"],
        update=[columns["dbt_valid_to"]],
        insert=True,
        update_where=f"{is_open} and {_SOURCE}.dbt_change_type in ('update', 'delete')",
        insert_where=f"{_SOURCE}.dbt_change_type = 'insert'",
        source_alias=_SOURCE,
        target_alias=_TARGET,
        merge_schema=False,
    )
    return response_of_rewrite("snapshotted", result)


def _require_same_index(
    session: SparkSession, query: Callable[[], DataFrame], table: str, spec: ModelSpec
) -> None:
    try:
        require_same_index(session, table, spec)
    except IndexMismatch:
        # Report a misspelt column as such, not as another index.
        columns = {**_fields(session.table(table)), **_fields(query())}
        require_known_columns(spec, StructType([*columns.values()]))
        raise


def _fields(frame: DataFrame) -> dict[str, StructField]:
    return {field.name.lower(): field for field in frame.schema.fields}


@contextmanager
def _advising(session: SparkSession, table: str, spec: ModelSpec) -> Iterator[None]:
    """Adds to errors how the table can get its model's index; first the way that keeps all rows."""
    try:
        yield
    except NotAQbeastTable as error:
        raise DbtRuntimeError(
            f"{advice.without_index(session, table, spec, 'model')}. "
            f"{advice.full_refresh(spec.selector)}."
        ) from error
    except IndexMismatch as error:
        raise DbtRuntimeError(
            f"{error}. Or rewrite the table with all its rows in Python: "
            f"{advice.keeping_all_rows(table, spec)}. {advice.full_refresh(spec.selector)}."
        ) from error


def _rebuild(session: SparkSession, frame: DataFrame, table: str, spec: ModelSpec) -> Response:
    result = write_table(
        with_comments(frame, spec.descriptions.columns),
        table=table,
        mode="overwrite",
        **spec.index_options,
        properties=spec.properties,
        comment=spec.descriptions.table or "",
        location=spec.location,
        rechoose=spec.rechoose or _chose_from_other_rows(session, table, spec),
        overwrite_schema=True,
        issue_warnings=False,
    )
    return _respond(spec, "rebuilt", result)


def _chose_from_other_rows(session: SparkSession, table: str, spec: ModelSpec) -> bool:
    """Whether the table chose its columns from a sample and now gets all rows, or vice versa.

    A sample may have few of a column's values, which can lead to another choice.
    """
    if parse_automatic(spec.columns_to_index) is None:
        return False
    present = run_sample.built_from(session, table)
    return marks.fractions(present) != marks.fractions(spec.built_from)


def _respond(spec: ModelSpec, done: str, result: WriteResult) -> Response:
    """The response to a write; first logs the chosen columns and any warnings through dbt."""
    _report_choice(spec, result.column_choice)
    for warning in result.warnings:
        after_commit.warn(f"{spec.name}: {warning}")
    return response_of_write(done, result)


def _respond_to_rewrite(spec: ModelSpec, done: str, result: RewriteResult) -> Response:
    """The same for a change to an existing table."""
    _report_choice(spec, result.column_choice)
    return response_of_rewrite(done, result)


def _report_choice(spec: ModelSpec, choice: ColumnChoice | None) -> None:
    if choice is not None:
        fire_event(AdapterEventInfo(name="Qbeast", base_msg=f"{spec.name}: {choice}", args=[]))


def _append(frame: DataFrame, table: str, spec: ModelSpec, increment: Increment) -> Response:
    result = write_table(
        frame,
        table=table,
        mode="append",
        **spec.index_options,
    )
    return _respond(spec, "appended", result)


def _merge(frame: DataFrame, table: str, spec: ModelSpec, increment: Increment) -> Response:
    if not increment.unique_key:
        return _append(frame, table, spec, increment)
    known = set(map(str.lower, table_schema(frame.sparkSession, table).fieldNames()))
    own = [name for name in frame.columns if name.lower() in known]
    result = QbeastTable.for_name(frame.sparkSession, table).merge(
        frame,
        on=list(increment.unique_key),
        update=[name for name in own if increment.updates(name)],
        insert=True,
        where=list(increment.predicates) or None,
        source_alias=_SOURCE,
        target_alias=_TARGET,
        # `on_schema_change` has added columns; predicates may use others.
        merge_schema=False,
    )
    return _respond_to_rewrite(spec, "merged", result)


def _delete_insert(frame: DataFrame, table: str, spec: ModelSpec, increment: Increment) -> Response:
    session = frame.sparkSession
    result = QbeastTable.for_name(session, table).replace_matching(
        frame,
        on=list(increment.unique_key),
        where=[_of_table(session, table, each) for each in increment.predicates] or None,
        source_alias=_SOURCE,
        target_alias=_TARGET,
    )
    return _respond_to_rewrite(spec, "replaced", result)


def _of_table(session: SparkSession, table: str, predicate: str) -> str:
    """A predicate whose unqualified columns are those of the table."""
    try:
        return qualified(session, predicate, session.table(table).columns, _TARGET)
    except ParseException as error:
        raise DbtRuntimeError(
            f"incremental_predicates has {predicate!r}, which Spark cannot read as a condition "
            f"({one_line(error).rstrip('.')}): correct it"
        ) from error


def _insert_overwrite(
    frame: DataFrame, table: str, spec: ModelSpec, increment: Increment
) -> Response:
    """Replaces all rows, as indexed tables have no partitions; keeps schema and properties."""
    result = write_table(
        frame,
        table=table,
        mode="overwrite",
        **spec.index_options,
        comment=spec.descriptions.table,
        overwrite_schema=False,
        issue_warnings=False,
    )
    return _respond(spec, "overwritten", result)


def _replace_where(frame: DataFrame, table: str, spec: ModelSpec, increment: Increment) -> Response:
    target = QbeastTable.for_name(frame.sparkSession, table)
    result = target.replace_where(frame, increment.replaced_rows())
    return _respond_to_rewrite(spec, "replaced", result)


_STRATEGIES: dict[str, Callable[[DataFrame, str, ModelSpec, Increment], Response]] = {
    APPEND: _append,
    MERGE: _merge,
    DELETE_INSERT: _delete_insert,
    INSERT_OVERWRITE: _insert_overwrite,
    REPLACE_WHERE: _replace_where,
    MICROBATCH: _replace_where,
}
