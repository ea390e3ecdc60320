"""Append rows to an indexed table."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from qbeast_core.delta.operations import Operation
from qbeast_core.errors import IncompatibleTable
from qbeast_core.locate.open_table import WritableTable
from qbeast_core.options import WriteMode
from qbeast_core.write.existing_index import ExistingIndex
from qbeast_core.write.files import DoesNotFit, WrittenFiles
from qbeast_core.write.request import WriteRequest
from qbeast_core.write.result import WriteResult, result_of, unchanged_result
from qbeast_core.write.ways.single_file import write_single_file
from qbeast_core.write.writer import IndexWriter


def append(request: WriteRequest, table: WritableTable, rows: DataFrame) -> WriteResult:
    """Append rows in the table's schema, which are measured before they are written."""
    writer = IndexWriter(table, _index(request, table, rows))
    return _commit(request, writer, writer.measure_and_write(rows))


def append_single_file(
    request: WriteRequest, table: WritableTable, rows: DataFrame
) -> WriteResult | DoesNotFit:
    """Append rows in the table's schema that fit in one file; they are measured from this file."""
    writer = IndexWriter(table, _index(request, table, rows))
    with table.transaction.pinned_reads():
        written = write_single_file(writer, rows)
        if isinstance(written, DoesNotFit):
            return written
        return _commit(request, writer, written)


def _index(request: WriteRequest, table: WritableTable, rows: DataFrame) -> ExistingIndex:
    """The table's index, to which the rows are added.

    Raises:
        NotAQbeastTable: the table has no index.
        IndexMismatch: the table's index differs from the options.
        IncompatibleTable: Delta generates a column that rows are placed by.
    """
    metadata, transformers = request.continued(table, rows)
    late = [name for name in metadata.writable_revision.layout_columns if name not in rows.columns]
    if late:
        raise IncompatibleTable(
            f"{table.label} is indexed or sampled by {', '.join(map(repr, late))}, an identity "
            "column whose values Delta generates only after rows are placed in the index; append "
            "with plain Delta and then run optimize, or rewrite the table with write_table(..., "
            "mode='overwrite', overwrite_schema=False) and other columns_to_index or another "
            "sample_key"
        )
    return ExistingIndex(
        replace(metadata, properties=request.options.kept_by_append(metadata.properties)),
        metadata.writable_revision,
        transformers,
        cube_size=request.options.cube_size,
        may_outgrow=True,
        given_stats=request.options.stats_of(transformers)
        if request.options.column_stats
        else None,
        new_keys=request.options.column_stats_key(transformers),
    )


def _commit(
    request: WriteRequest, writer: IndexWriter[ExistingIndex], written: WrittenFiles
) -> WriteResult:
    """Commit the files, if there is anything to commit."""
    if not written.rows and not writer.table.transaction.changes_more_than_rows:
        return unchanged_result(writer.table, request.started)
    result = result_of(
        written,
        writer.commit(Operation.APPEND, written, user_metadata=request.user_metadata),
        WriteMode.APPEND,
        request.started,
        new_revision=written.revision.revision_id != writer.index.revision.revision_id,
    )
    return replace(result, column_choice=writer.index.metadata.column_choice)
