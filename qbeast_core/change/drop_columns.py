"""Drop columns that the index of a table does not need."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from qbeast_core import failpoints
from qbeast_core.change.columns import table_spelling
from qbeast_core.delta.metadata import maps_columns
from qbeast_core.errors import InvalidOptions
from qbeast_core.hooks import PendingCommit, run_commit_hooks
from qbeast_core.jvm.settings import run_statement
from qbeast_core.locate.address import RELATION_KEY
from qbeast_core.locate.compatibility import check_planned, check_removable, check_writable
from qbeast_core.locate.open_table import OpenTable, WritableTable
from qbeast_core.locate.retry import until_committed
from qbeast_core.names import quoted
from qbeast_core.options import AUTO, WriteMode, parse_texts
from qbeast_core.spark.columns import column
from qbeast_core.write.create import create
from qbeast_core.write.index_options import IndexOptions
from qbeast_core.write.index_properties import AutomaticOption, is_automatic, stored_column_stats
from qbeast_core.write.request import WriteRequest

_CONSTRAINT_PREFIX = "delta.constraints."
_PATHS_ARE_TABLES = {"spark.sql.runSQLOnFiles": "true"}


def drop_columns(table: OpenTable, columns: str | Iterable[str]) -> None:
    """Drop columns; the arguments are those of `QbeastTable.drop_columns`."""
    names = parse_texts("columns", columns, "the name of a column")
    if not names:
        raise InvalidOptions("columns names no column; name the columns to drop")
    started = time.monotonic()
    until_committed(table.label, lambda: _attempt(table, names, started))


def _attempt(table: OpenTable, names: Sequence[str], started: float) -> None:
    begun = WritableTable.begin(table.spark, table.address)
    begun.check_indexed()
    snapshot = begun.snapshot
    spelled = (table_spelling(snapshot.schema, name, "columns", table.label) for name in names)
    dropped = list(dict.fromkeys(spelled))
    _check_unneeded(begun, dropped)
    begun.index.check_columns_exist(table.label)
    if maps_columns(snapshot.configuration):
        _drop_mapped(begun, dropped)
        return
    check_writable(begun)
    check_removable(begun)
    schema = StructType([field for field in snapshot.schema if field.name not in dropped])
    whole = snapshot.dataframe(begun.index.with_rows)
    with begun.transaction.pinned_reads():
        # Otherwise rows or columns that another writer adds meanwhile would be lost.
        begun.transaction.read_whole_table()
        rows = whole.select(*(column(field.name) for field in schema))
        _check_constraints(begun, rows, dropped)
        check_planned(begun, schema, snapshot.configuration)
        kept = snapshot.row_count_in_log(begun.index.with_rows)
        create(_request_with_present_options(begun, started), begun, rows, schema, rows_kept=kept)


def _drop_mapped(table: OpenTable, dropped: Sequence[str]) -> None:
    """Drop columns in the metadata only."""
    name, listed = quoted(table.snapshot.location), ", ".join(map(quoted, dropped))
    run_commit_hooks(PendingCommit("drop columns", table.snapshot.location, table.snapshot.version))
    failpoints.reach(failpoints.BEFORE_COMMIT)
    statement = f"alter table delta.{name} drop columns ({listed})"
    try:
        run_statement(table.spark, statement, _PATHS_ARE_TABLES)
    except Exception:
        # If only the reply to the commit was lost, the columns are gone.
        newest = OpenTable.newest(table.spark, table.address)
        if not set(dropped).isdisjoint(newest.snapshot.schema.fieldNames()):
            raise
    failpoints.reach(failpoints.AFTER_COMMIT)


def _check_unneeded(table: OpenTable, dropped: Sequence[str]) -> None:
    layout_columns = table.configuration.latest.layout_columns
    needed = [name for name in dropped if name in layout_columns]
    if needed:
        raise InvalidOptions(
            f"{table.label} is indexed or sampled by {', '.join(map(repr, needed))}, which cannot "
            "be dropped; first rewrite the table with write_table(..., mode='overwrite', "
            "overwrite_schema=False) and other columns_to_index or another sample_key"
        )


def _check_constraints(table: OpenTable, rows: DataFrame, dropped: Sequence[str]) -> None:
    """Raise InvalidOptions if a CHECK constraint needs a column to drop."""
    for key, condition in table.snapshot.configuration.items():
        if not key.startswith(_CONSTRAINT_PREFIX):
            continue
        try:
            # Unlike a selection, a filter also finds columns that were selected before.
            rows.select(F.expr(condition))
        except AnalysisException:
            name = key.removeprefix(_CONSTRAINT_PREFIX)
            raise InvalidOptions(
                f"{table.label} has the constraint {name!r} ({condition}), which needs "
                f"{', '.join(map(repr, dropped))}; first run ALTER TABLE ... DROP CONSTRAINT {name}"
            ) from None


def _request_with_present_options(table: OpenTable, started: float) -> WriteRequest:
    """A request to rewrite all rows of a table with its present options."""
    properties = table.snapshot.configuration
    chosen = is_automatic(properties, AutomaticOption.CUBE_SIZE)
    cube_size = AUTO if chosen else table.configuration.latest.desired_cube_size
    options = IndexOptions.parse(
        columns_to_index=None,
        cube_size=cube_size,
        column_stats=stored_column_stats(properties, table.configuration.latest.transformers),
    )
    return WriteRequest(
        address=replace(table.address, name=properties.get(RELATION_KEY)),
        mode=WriteMode.OVERWRITE,
        options=replace(options, keeps_choices=True),
        properties=None,
        comment=None,
        user_metadata=None,
        started=started,
    )
