"""Checks and changes the table of a snapshot."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.exceptions import SnapshotTargetNotSnapshotTableError
from dbt.adapters.qbeast.models.column_lists import check_columns_of_query
from dbt.adapters.qbeast.models.increment import (
    APPEND,
    APPEND_NEW,
    MERGE_SOURCE,
    MERGE_TARGET,
    Increment,
)
from dbt.adapters.qbeast.models.response import QbeastAdapterResponse, response_of_rewrite
from dbt.adapters.qbeast.models.schema_changes import fit_increment, table_schema
from dbt.adapters.qbeast.relation import QbeastRelation
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import DataFrame
from pyspark.sql.types import DateType, StringType, StructType, TimestampNTZType, TimestampType

from qbeast_core import QbeastTable, aligned, quoted

_CLOSES = ("invalidate", "new_record")
_HARD_DELETES = ("ignore", *_CLOSES)
_TIMES = (DateType, TimestampType, TimestampNTZType, StringType)


def check_known_hard_deletes(config: Mapping[str, Any]) -> None:
    """Raises DbtRuntimeError for a wrong `hard_deletes`; dbt's own message does not name it."""
    given = config.get("hard_deletes")
    if given not in (None, *_HARD_DELETES):
        raise DbtRuntimeError(
            f"hard_deletes={given!r} is not known. Use one of {', '.join(map(repr, _HARD_DELETES))}"
        )


def check_table_of_snapshot(
    snapshot: str, file_format: str, existing: QbeastRelation | None
) -> None:
    """Raises DbtRuntimeError if the table of a snapshot is not, or would not be, a Delta table.

    Args:
        existing: what has the snapshot's name now; None for nothing.
    """
    if file_format != "delta":
        raise DbtRuntimeError(
            f"file_format={file_format!r} cannot be used for the snapshot {snapshot}, because each "
            "run merges into its table, which must be a Delta table: remove file_format"
        )
    if existing is not None and not (existing.is_table and existing.is_delta):
        raise DbtRuntimeError(
            f"the snapshot {snapshot} needs a Delta table, but {snapshot} is a view or a table in "
            "another format: rename it, or give the snapshot another alias"
        )


def check_listed_columns(config: Any, query: Callable[[], DataFrame]) -> None:
    """Raises DbtRuntimeError if `check_cols` names a column that the snapshot's query lacks.

    dbt itself reads `check_cols` only from the second run on.
    """
    names = config.get("check_cols")
    if config.get("strategy") == "check" and names and names != "all":
        check_columns_of_query("check_cols", list(map(str, names)), query().schema)


def check_updated_at(
    strategy: Mapping[str, Any], query: str, frame_of: Callable[[str], DataFrame]
) -> None:
    """Raises DbtRuntimeError if a run would store its own time beside an `updated_at` of numbers.

    A record that a run closes ends at the time of the run. As a number it would be seconds since
    1970, whatever the numbers of the column mean.

    Args:
        strategy: what the strategy's macro returns; one of the project may leave out keys.
        frame_of: creates the frame of a query.
    """
    hard_deletes, updated_at = strategy.get("hard_deletes"), strategy.get("updated_at")
    if hard_deletes not in _CLOSES or not updated_at:
        return
    found = frame_of(f"select {updated_at} from (\n{query}\n) as source_data").schema[0].dataType
    if not isinstance(found, _TIMES):
        raise DbtRuntimeError(
            f"updated_at={updated_at!r} is of type {found.simpleString()}, but with "
            f"hard_deletes={hard_deletes!r}, a deleted row's record ends at the time of a run: "
            "convert the column to a timestamp in the snapshot's query, for example with "
            "timestamp_seconds() or timestamp_millis()"
        )


def check_complete_source(
    snapshot: str, hard_deletes: str, inputs: Sequence[BaseRelation], *, is_limited_above: bool
) -> None:
    """Raises DbtRuntimeError if records would be closed only because a run leaves out their rows.

    Args:
        inputs: the refs and sources of the snapshot, as its query reads them.
        is_limited_above: whether the run limits the inputs of a model that the snapshot reads.
    """
    is_empty = any(each.limit is not None for each in inputs)
    is_limited = is_empty or is_limited_above or any(each.event_time_filter for each in inputs)
    if is_limited and hard_deletes in _CLOSES:
        option = "--empty" if is_empty else "--sample"
        raise DbtRuntimeError(
            f"{snapshot} has hard_deletes={hard_deletes!r}, and with {option} its query lacks rows "
            f"that are not deleted, so their records would be closed: run it without {option}, or "
            "leave it out with --exclude resource_type:snapshot"
        )


def check_columns_of_snapshot(
    snapshot: str,
    present: Collection[str],
    names: Mapping[str, str],
    strategy: Mapping[str, Any],
    source_columns: Collection[str],
) -> None:
    """Checks what dbt itself does not check of the columns of a snapshot's table.

    Args:
        snapshot: its relation, for messages.
        present: the columns of the table.
        names: the snapshot's names for dbt's columns.
        strategy: what the strategy's macro returns.
        source_columns: the columns of the snapshot's query.

    Raises:
        SnapshotTargetNotSnapshotTableError: the table has no `dbt_updated_at`.
        DbtRuntimeError: the table has a `dbt_is_deleted` that the strategy would leave empty.
    """
    lowered = {name.lower() for name in present}
    if names["dbt_updated_at"].lower() not in lowered:
        raise SnapshotTargetNotSnapshotTableError([names["dbt_updated_at"]])
    # A strategy of the project may leave it out.
    behavior = strategy.get("hard_deletes") or "ignore"
    deleted = names["dbt_is_deleted"]
    left_out = lowered - {name.lower() for name in source_columns}
    if behavior != "new_record" and deleted.lower() in left_out:
        raise DbtRuntimeError(
            f"{snapshot} has the column {deleted!r}, which only hard_deletes: new_record fills, "
            f"but hard_deletes is {behavior!r}. Set it back to 'new_record', or rename the "
            f"table's column (alter table {snapshot} set tblproperties "
            f"('delta.columnMapping.mode' = 'name'), then alter table {snapshot} rename "
            f"column {deleted} to was_deleted)"
        )


def create_snapshot_view(
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
    rows = fit_increment(query, table, snapshot, Increment(APPEND, on_schema_change=APPEND_NEW))
    own = {name.lower() for name in own_columns}
    fields = table_schema(rows.sparkSession, table).fields
    schema = StructType([field for field in fields if field.name.lower() not in own])
    aligned(rows, schema, snapshot).createOrReplaceTempView(view)


def merge_snapshot(
    changes: DataFrame, table: str, columns: Mapping[str, str], valid_to_current: str | None
) -> QbeastAdapterResponse:
    """Closes and inserts records of a snapshot.

    Args:
        changes: the records, each with its action in `dbt_change_type`.
        table: the quoted name of the snapshot.
        columns: the snapshot's names for dbt's columns.
        valid_to_current: the SQL value that an open record has instead of NULL.
    """
    valid_to = quoted(columns["dbt_valid_to"])
    is_open = f"{MERGE_TARGET}.{valid_to} is null"
    if valid_to_current:
        is_open = f"({is_open} or {MERGE_TARGET}.{valid_to} = {valid_to_current})"
    result = QbeastTable.for_name(changes.sparkSession, table).merge(
        changes,
        on=columns["dbt_scd_id"],
        update=[columns["dbt_valid_to"]],
        insert=True,
        update_where=f"{is_open} and {MERGE_SOURCE}.dbt_change_type in ('update', 'delete')",
        insert_where=f"{MERGE_SOURCE}.dbt_change_type = 'insert'",
        source_alias=MERGE_SOURCE,
        target_alias=MERGE_TARGET,
        merge_schema=False,
    )
    return response_of_rewrite("snapshotted", result)
