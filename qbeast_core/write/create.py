"""Write all rows of a table: create it, or replace its rows, schema and index."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from qbeast_core.delta.operations import Operation
from qbeast_core.errors import CommitStateUnknown
from qbeast_core.locate.open_table import WritableTable
from qbeast_core.options import WriteMode
from qbeast_core.write.files import DoesNotFit, WrittenFiles, check_none_lost
from qbeast_core.write.new_index import NewIndex
from qbeast_core.write.rebuild_key import may_reuse_tree
from qbeast_core.write.request import WriteRequest
from qbeast_core.write.result import WriteResult, result_of
from qbeast_core.write.ways.reuse_tree import write_with_previous_tree
from qbeast_core.write.writer import IndexWriter


def create(
    request: WriteRequest,
    table: WritableTable,
    rows: DataFrame,
    schema: StructType,
    *,
    rows_kept: int = 0,
) -> WriteResult:
    """Create a table, or replace all rows and the schema of an existing one.

    Args:
        rows_kept: the number of rows of the table that are among `rows`.
    """
    index = NewIndex.for_rows(request, table, rows, schema)
    writer = IndexWriter(table, index)
    written = writer.measure_and_write(rows)
    check_none_lost(written.rows, rows_kept)
    return _commit(request, writer, written)


def rebuild_with_previous_tree(
    request: WriteRequest, table: WritableTable, rows: DataFrame
) -> WriteResult | DoesNotFit:
    """Rebuild a table with the tree that it has, if the tree suits the new rows."""
    if not may_reuse_tree(table):
        return DoesNotFit()
    schema = request.stored_schema(table, rows)
    # A guess is kept too, because the tree only suits about as many rows as the table has.
    columns = request.options.known_columns(table, schema, keeps_guess=True)
    if columns is None:
        return DoesNotFit()
    index = NewIndex.of(request, table, schema, columns)
    writer = IndexWriter(table, index)
    with table.transaction.pinned_reads():
        written = write_with_previous_tree(writer, rows)
        if isinstance(written, DoesNotFit):
            return written
        return _commit(request, writer, written)


def _commit(
    request: WriteRequest, writer: IndexWriter[NewIndex], written: WrittenFiles
) -> WriteResult:
    """Commit the files of a new or replaced table, and register it in the catalog."""
    table = writer.table
    exists = table.snapshot.exists
    if exists:
        # Delta would take the replacement of an empty table for an append.
        table.transaction.read_whole_table()
    try:
        version = writer.commit(
            Operation.OVERWRITE if exists else Operation.CREATE,
            written,
            removes=np.arange(len(table.snapshot.files)) if exists else None,
            user_metadata=request.user_metadata,
        )
    except CommitStateUnknown as problem:
        raise table.address.with_registration(problem) from problem.__cause__
    table.address.register(table.spark, request.comment)
    result = result_of(written, version, WriteMode.OVERWRITE, request.started, new_revision=True)
    return replace(result, column_choice=writer.index.column_choice, warnings=written.warnings)
