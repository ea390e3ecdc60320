"""A model's query written as an indexed table."""

from collections.abc import Mapping
from typing import Any

from dbt.adapters.events.types import AdapterEventWarning
from dbt.adapters.qbeast.column import quote
from dbt.adapters.qbeast.model_config import ModelSpec
from dbt.adapters.qbeast.response import QbeastAdapterResponse, response_of
from dbt_common.events.functions import warn_or_error
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from qbeast_core import write_table
from qbeast_core.errors import IndexMismatch, NotAQbeastTable


def write_model(
    frame: DataFrame, table: str, spec: ModelSpec, *, append: bool
) -> QbeastAdapterResponse:
    """Commits the rows of a model's query, rebuilding the table or adding to it.

    Args:
        frame: the model's query; its rows are computed once.
        table: the quoted name, `schema`.`table`.
        append: whether the table exists and is added to.

    Raises:
        DbtRuntimeError: the table's index or schema is another one than the model's.
        QbeastError: anything else that qbeast_core refuses.
    """
    session = frame.sparkSession
    if append:
        frame = _fit_to_table(frame, session.table(table).schema, spec)
        _warn_of_blind_append(spec)
    else:
        frame = _with_comments(frame, spec.column_comments)
    try:
        result = write_table(
            frame,
            table=table,
            mode="append" if append else "overwrite",
            columns_to_index=spec.columns_to_index,
            cube_size=spec.cube_size,
            properties=None if append else spec.properties,
            comment=None if append else spec.comment,
            location=spec.location,
        )
    except (IndexMismatch, NotAQbeastTable) as error:
        raise DbtRuntimeError(f"{error}. To rebuild the table, run with --full-refresh.") from error
    _persist_comments(session, table, spec.column_comments)
    return response_of(
        result.mode.value,
        rows=result.rows,
        cubes=result.cubes,
        files=result.files,
        revision=result.revision_id,
        version=result.version,
    )


def _fit_to_table(frame: DataFrame, schema: StructType, spec: ModelSpec) -> DataFrame:
    """dbt's `on_schema_change`: `ignore` leaves new columns out, `fail` refuses any difference."""
    present = {name.lower() for name in schema.names}
    wanted = {name.lower() for name in frame.columns}
    if spec.on_schema_change == "fail" and present != wanted:
        raise DbtRuntimeError(
            f"The columns of {spec.name} have changed (new: {_list(wanted - present)}; gone: "
            f"{_list(present - wanted)}) and on_schema_change is 'fail'. To rebuild the table, run "
            "with --full-refresh."
        )
    if wanted <= present:
        return frame
    return frame.select(*[F.col(quote(n)) for n in frame.columns if n.lower() in present])


def _warn_of_blind_append(spec: ModelSpec) -> None:
    if not spec.tells_increments:
        _warn(
            f"{spec.name} appends the whole of its query on each run, for its code does not ask "
            "is_incremental(): rows that the table already has are added again"
        )


def _with_comments(frame: DataFrame, comments: Mapping[str, str]) -> DataFrame:
    """The frame with the columns' descriptions in its schema, so that one commit has it all."""
    by_name = {name.lower(): text for name, text in comments.items()}
    if not by_name:
        return frame
    return frame.select(
        *[
            F.col(quote(field.name)).alias(
                field.name, metadata={**field.metadata, "comment": by_name[field.name.lower()]}
            )
            if field.name.lower() in by_name
            else F.col(quote(field.name))
            for field in frame.schema.fields
        ]
    )


def _persist_comments(session: SparkSession, table: str, comments: Mapping[str, str]) -> None:
    """Brings the columns' comments to what the model says; a commit only for what differs."""
    if not comments:
        return
    fields = {field.name.lower(): field for field in session.table(table).schema.fields}
    missing = [name for name in comments if name.lower() not in fields]
    if missing:
        _warn(
            f"In relation {table}: The following columns are specified in the schema but are not "
            f"present in the database: {', '.join(missing)}"
        )
    for name, text in comments.items():
        field = fields.get(name.lower())
        if field is not None and field.metadata.get("comment") != text:
            column = quote(field.name)
            session.sql(f"alter table {table} alter column {column} comment {_text(text)}")


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _warn(message: str) -> None:
    warn_or_error(AdapterEventWarning(**_event(message)))


def _event(message: str) -> dict[str, Any]:
    return {"name": "Qbeast", "base_msg": message, "args": []}


def _list(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"
