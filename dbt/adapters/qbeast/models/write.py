"""Writes the rows of a model's query to an indexed table."""

from collections.abc import Callable

from dbt.adapters.events.types import AdapterEventInfo
from dbt.adapters.qbeast.models.advice import advising
from dbt.adapters.qbeast.models.comments import with_comments
from dbt.adapters.qbeast.models.configuration import ModelSpec
from dbt.adapters.qbeast.models.increment import (
    APPEND,
    DELETE_INSERT,
    INSERT_OVERWRITE,
    MERGE,
    MERGE_SOURCE,
    MERGE_TARGET,
    MICROBATCH,
    REPLACE_WHERE,
    Increment,
)
from dbt.adapters.qbeast.models.increment_warnings import warnings_of_kept_index
from dbt.adapters.qbeast.models.response import QbeastAdapterResponse as Response
from dbt.adapters.qbeast.models.response import response_of_rewrite, response_of_write
from dbt.adapters.qbeast.models.same_index import check_known_columns, check_same_index
from dbt.adapters.qbeast.models.schema_changes import fit_increment, table_schema
from dbt.adapters.qbeast.sampling import marks, run_sample
from dbt.adapters.qbeast.warning import warn, warn_after_commit
from dbt_common.events.functions import fire_event
from dbt_common.exceptions import DbtRuntimeError
from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from qbeast_core import (
    ColumnChoice,
    IndexMismatch,
    QbeastTable,
    RewriteResult,
    WriteResult,
    one_line,
    parse_automatic,
    qualified,
    write_table,
)


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
    with advising(session, table, spec):
        _check_same_index(session, query, table, spec)
        present = QbeastTable.for_name(session, table).latest_revision
        kinds = {each.column: each.kind for each in present.transformers}
        size = present.desired_cube_size
        for message in warnings_of_kept_index(spec, increment, size, kinds):
            warn(message)
        rows = fit_increment(query, table, spec.selector, increment)
        return _STRATEGIES[increment.strategy](rows, table, spec, increment)


def _check_same_index(
    session: SparkSession, query: Callable[[], DataFrame], table: str, spec: ModelSpec
) -> None:
    try:
        check_same_index(session, table, spec)
    except IndexMismatch:
        # Report a misspelt column as such, not as another index.
        columns = {**_fields(session.table(table)), **_fields(query())}
        check_known_columns(spec, StructType([*columns.values()]))
        raise


def _fields(frame: DataFrame) -> dict[str, StructField]:
    return {field.name.lower(): field for field in frame.schema.fields}


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
        warn_after_commit(f"{spec.name}: {warning}")
    return response_of_write(done, result)


def _respond_to_rewrite(spec: ModelSpec, done: str, result: RewriteResult) -> Response:
    """The response to a change of rows; first logs the chosen columns."""
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
    if increment.appends:
        return _append(frame, table, spec, increment)
    known = set(map(str.lower, table_schema(frame.sparkSession, table).fieldNames()))
    own = [name for name in frame.columns if name.lower() in known]
    result = QbeastTable.for_name(frame.sparkSession, table).merge(
        frame,
        on=list(increment.unique_key),
        update=[name for name in own if increment.updates(name)],
        insert=True,
        where=list(increment.predicates) or None,
        source_alias=MERGE_SOURCE,
        target_alias=MERGE_TARGET,
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
        source_alias=MERGE_SOURCE,
        target_alias=MERGE_TARGET,
    )
    return _respond_to_rewrite(spec, "replaced", result)


def _of_table(session: SparkSession, table: str, predicate: str) -> str:
    """A predicate whose unqualified columns are those of the table."""
    try:
        return qualified(session, predicate, session.table(table).columns, MERGE_TARGET)
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
