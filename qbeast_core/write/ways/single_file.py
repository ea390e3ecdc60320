"""Append a few rows in one pass: write them to one file, then measure them from it.

The cubes of rows depend on all rows, so an append normally measures them before it writes them. If
all rows go to one file anyway, the cubes only appear in the file's tags. These can be computed
afterwards, so the query is evaluated once.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from qbeast_core import phases
from qbeast_core.delta.staged import StagedFile
from qbeast_core.errors import SourceChanged
from qbeast_core.jvm.background import in_background
from qbeast_core.jvm.catalyst import ONE_TASK_BYTES, Catalyst, estimated_bytes, with_fresh_plan
from qbeast_core.jvm.gateway import Jvm
from qbeast_core.locate.open_table import WritableTable
from qbeast_core.model.revision import Revision
from qbeast_core.model.transformation import UnusableTransformation
from qbeast_core.spark import columns
from qbeast_core.spark.alignment import is_filled_by_delta
from qbeast_core.spark.paths import cells
from qbeast_core.spark.statistics import EveryRow, InputStatistics
from qbeast_core.tree.curve import RowOrder
from qbeast_core.tree.path import PathLayout
from qbeast_core.write.existing_index import ExistingIndex
from qbeast_core.write.files import DoesNotFit, WrittenFiles, tagged
from qbeast_core.write.layout import RowLayout, in_order
from qbeast_core.write.plan import TreePlan
from qbeast_core.write.read_back import Counting, FileContents, contents_of, contents_of_all
from qbeast_core.write.sizing import MAX_SAMPLE_ROWS, row_bytes
from qbeast_core.write.writer import IndexWriter

_LEVELS_BELOW = 4
"""The tree levels below the table's deepest cube by which the rows of a file are sorted. A small
append has few of the rows of such a cube."""


def write_single_file(
    writer: IndexWriter[ExistingIndex], rows: DataFrame
) -> WrittenFiles | DoesNotFit:
    """Write rows that fit in one file, in one pass. Commits nothing.

    Raises:
        SourceChanged: the number of rows in the file differs from the number written.
    """
    table, index = writer.table, writer.index
    if is_filled_by_delta(rows, table.schema):
        # Delta then changes the metadata itself, so a new revision could not change it again.
        return DoesNotFit()
    if table.transaction.metadata.changes_schema:
        # The metadata then changes before the file is written, with the same effect.
        return DoesNotFit()
    if not fits_single_file(rows, index):
        return DoesNotFit()
    written = _write_one_file(table, rows, index.revision)
    if written is None:
        return WrittenFiles(index.revision)
    if isinstance(written, DoesNotFit):
        return written
    planned = writer.plan_write(rows.schema, writer.with_given_statistics(written.statistics))
    if planned.tree.cuts.files > 1:
        return DoesNotFit(written.rows)
    contents = [_contents(written, planned.tree)]
    return tagged(table.transaction, [written.file], contents, planned.tree, planned.kept_blocks)


@dataclass(frozen=True, eq=False)
class _WrittenFile:
    """A file of rows that is written but not committed yet."""

    file: StagedFile
    rows: DataFrame
    """The rows, read from the file."""
    statistics: InputStatistics
    """The statistics of the rows; the sample has all of them."""


def fits_single_file(rows: DataFrame, index: ExistingIndex) -> bool:
    """Whether the rows probably fit in one file, in or near the space of the current revision.

    Decided by the optimizer's estimate of the bytes to read, which tends to be too high.
    """
    revision = index.revision
    if index.transformers != revision.transformers:
        return False
    if len(revision.transformations) != len(index.transformers):
        return False
    if any(isinstance(each, UnusableTransformation) for each in revision.transformations):
        return False
    expected_bytes = estimated_bytes(with_fresh_plan(rows))
    most_rows = min(index.expected_cube_size, MAX_SAMPLE_ROWS)
    return expected_bytes <= min(ONE_TASK_BYTES, most_rows * row_bytes(rows.schema))


def _write_one_file(
    table: WritableTable, rows: DataFrame, revision: Revision
) -> _WrittenFile | DoesNotFit | None:
    """Write the rows along the curve through the revision's space; None if there are no rows.

    Values beyond the revision's bounds are sorted as if they were the bounds.

    Raises:
        SourceChanged: the number of rows in the file differs from the number written. Nothing is
            committed.
    """
    phases.enter(phases.WRITING)
    transaction = table.transaction
    catalyst = Catalyst(Jvm(rows.sparkSession))
    layout = PathLayout(revision.dimensions)
    cells_of_row = cells(catalyst, revision)
    levels = min(_deepest(table, revision) + _LEVELS_BELOW, layout.first_levels)
    order = RowOrder(layout, levels)
    place = columns.place(catalyst, cells_of_row, order)
    in_file = in_order(rows.coalesce(1), revision, order, place, transaction.metadata.stores_slices)
    # Concurrently with Spark's write.
    every_row = in_background(rows.sparkSession, EveryRow.of, catalyst, revision, cells_of_row)
    staged = transaction.write_files(in_file, expected_rows=0)
    if not staged.files:
        return None
    written_rows = transaction.read_staged(staged.files)
    row_count = staged.files[0].file.rows
    if len(staged.files) > 1 or row_count is None or row_count > MAX_SAMPLE_ROWS:
        return DoesNotFit(written_rows)
    statistics = every_row.result().collect(written_rows)
    if statistics.rows != row_count:
        raise SourceChanged(
            f"{row_count} rows were written to a file, but {statistics.rows} were read from it. "
            "Nothing was committed; run the write again"
        )
    return _WrittenFile(staged.with_statistics()[0], written_rows, statistics)


def _contents(written: _WrittenFile, plan: TreePlan) -> FileContents:
    """The contents of the file under a plan that was made for its rows."""
    sample = written.statistics.sample
    if sample.located and sample.located[0] is plan.revision:
        return contents_of_all(plan, sample)
    # Only Spark computes the exact position of rows in the space of another revision.
    row_layout = RowLayout.of(Catalyst(Jvm(written.rows.sparkSession)), plan)
    file, rows = written.file.file, written.statistics.rows
    counting = Counting.of(plan, row_layout, written.rows.columns, rows)
    return contents_of(counting, written.rows, {file.name: file.size_bytes}, rows)[file.name]


def _deepest(table: WritableTable, revision: Revision) -> int:
    """The depth of the deepest cube of the revision."""
    return max((block.cube.depth for block in table.index.blocks_of(revision)), default=0)
