"""A write of all rows of a table: a new one, or one whose rows, schema and index it replaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from qbeast_core import failpoints
from qbeast_core.delta.metadata import COLUMN_MAPPING_KEY, checked_properties, maps_columns
from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.delta.transaction import Operation, Transaction
from qbeast_core.model.revision import IndexConfiguration, Revision
from qbeast_core.operations.destination import RELATION_KEY
from qbeast_core.operations.indexing import NO_FILES, IndexedFiles, write_indexed
from qbeast_core.operations.placing import plan_tree
from qbeast_core.operations.rebuild import REBUILD_KEY, may_go_by_tree, plan_by_tree, rebuild_key
from qbeast_core.operations.revisions import (
    COLUMN_STATS_KEY,
    first_revision,
    is_index_key,
    option_keys,
    slices_key,
    stored_keys,
)
from qbeast_core.operations.sample_warning import sample_warnings
from qbeast_core.operations.sizing import automatic_cube_size
from qbeast_core.operations.table_write import TableWrite, WriteResult
from qbeast_core.options import IndexedColumn, WriteMode, resolve_columns
from qbeast_core.spark.alignment import is_filled_by_delta
from qbeast_core.spark.slices import with_slices
from qbeast_core.tree.column_choice import ColumnChoice

# Parquet columns may not have these in their names unless Delta maps them to others.
_NEED_COLUMN_MAPPING = set(" ,;{}()\n\t=")


def create(
    write: TableWrite, transaction: Transaction, rows: DataFrame, schema: StructType
) -> WriteResult:
    """Write a new table, or all of an existing one anew, with the schema of its rows."""
    snapshot = transaction.snapshot
    columns, choice = write.options.new_columns(snapshot, rows, schema)
    transformers = resolve_columns(columns, schema)
    indexed = tuple(transformer.column for transformer in transformers)
    key = write.options.new_sample_key(snapshot, schema)
    statistics = write.measure(rows, transformers, key or indexed, write.options.cube_size)
    told = () if key else sample_warnings(rows, schema, statistics, indexed)
    revision = first_revision(
        transformers,
        statistics,
        table_id=write.destination.location,
        cube_size=write.options.cube_size or automatic_cube_size(statistics.rows, schema),
        sample_key=key,
    )
    plan, again = None, {}
    if statistics.rows:
        plan = plan_tree(revision, statistics.sample, statistics.rows, schema)
        # What is told of its samples is to be told by the next rebuild too.
        again = {} if told else rebuild_key(snapshot, plan)
    _describe(write, transaction, schema, columns, revision, again, choice)
    written = NO_FILES
    if plan is not None:
        written = write_indexed(transaction, rows, plan, counted_rows=statistics.rows)
    return replace(
        _created(write, transaction, revision, written), column_choice=choice, warnings=told
    )


def rebuild_by_tree(
    write: TableWrite, transaction: Transaction, rows: DataFrame
) -> WriteResult | None:
    """Write all of an existing table anew where the one before has its rows.

    None where that may not be tried.

    Raises:
        Outgrown: it was tried, and is not for these rows.
    """
    snapshot = transaction.snapshot
    schema = write.stored_schema(snapshot, rows)
    # Files that do not suit the tree are read again as rows, which may not give identity values.
    if not may_go_by_tree(snapshot) or is_filled_by_delta(rows, schema):
        return None
    columns = write.options.columns_of_tree(snapshot, schema)
    if columns is None:
        return None
    transformers = resolve_columns(columns, schema)
    plan = plan_by_tree(
        snapshot,
        transformers,
        write.options.new_sample_key(snapshot, schema),
        write.options.cube_size,
        schema,
    )
    stored = snapshot.configuration
    given = write.options.given_stats(transformers).get(COLUMN_STATS_KEY, "")
    if plan is None or given != stored.get(COLUMN_STATS_KEY, ""):
        return None
    again = {REBUILD_KEY: stored[REBUILD_KEY]}
    with transaction.pinned_reads():
        _describe(write, transaction, schema, columns, plan.revision, again)
        written = write_indexed(transaction, rows, plan, counted_rows=None)
        return _created(write, transaction, plan.revision, written)


def own_properties(
    write: TableWrite, snapshot: TableSnapshot, schema: StructType
) -> dict[str, str]:
    """The properties of a new or replaced table, but for those of its index.

    Raises InvalidOptions where Delta does not take those that are given.
    """
    given = write.properties
    if given is not None:
        given = checked_properties(snapshot.spark, given)
    kept = _kept_properties(given, snapshot.configuration)
    special = any(_NEED_COLUMN_MAPPING & set(name) for name in schema.fieldNames())
    return {**kept, COLUMN_MAPPING_KEY: "name"} if special and not maps_columns(kept) else kept


def _describe(
    write: TableWrite,
    transaction: Transaction,
    schema: StructType,
    columns: Sequence[IndexedColumn],
    revision: Revision,
    again: Mapping[str, str],
    choice: ColumnChoice | None = None,
) -> None:
    """Say what the table is from this transaction on; `again` is for the next rebuild."""
    snapshot = transaction.snapshot
    slices = write.options.new_slices(snapshot)
    configuration = {
        **own_properties(write, snapshot, schema),
        **option_keys(columns, revision),
        **write.options.given_stats(revision.transformers),
        **write.options.left_open(snapshot, choice),
        **stored_keys(IndexConfiguration.read({}), revision),
        **slices_key(slices),
        **again,
    }
    if write.destination.name:
        configuration[RELATION_KEY] = write.destination.name
    comment = write.destination.comment
    stored = with_slices(schema, revision.weight_columns) if slices else schema
    if snapshot.exists:
        transaction.replace_table(stored, configuration, comment)
    else:
        transaction.create_table(stored, configuration, comment)


def _created(
    write: TableWrite, transaction: Transaction, revision: Revision, written: IndexedFiles
) -> WriteResult:
    """Commit a table's first files, or those that replace all that it has."""
    snapshot = transaction.snapshot
    version = write.commit(
        transaction,
        Operation.OVERWRITE if snapshot.exists else Operation.CREATE,
        written,
        removes=np.arange(len(snapshot.files)) if snapshot.exists else None,
    )
    failpoints.reach(failpoints.BEFORE_REGISTRATION)
    write.destination.register()
    return write.result(
        version, revision.revision_id, WriteMode.OVERWRITE, written.rows, written, True
    )


def _kept_properties(given: Mapping[str, str] | None, present: Mapping[str, str]) -> dict[str, str]:
    """The table's own properties, which a rebuild keeps unless it is given others."""
    own = {key: value for key, value in present.items() if not is_index_key(key)}
    if given is None:
        return own
    # Delta does not let a table go back to unmapped column names.
    mapping = {k: v for k, v in own.items() if k.startswith("delta.columnMapping.")}
    return {**mapping, **given}
