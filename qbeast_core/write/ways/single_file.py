"""A small append in one pass: its rows are written to a file first, and measured in it.

Which cubes rows belong to depends on all of them, so that an append measures its rows before it
writes them. Where they go to one file anyway, the cubes are nothing but what the log says of it: so
it can be said afterwards, and the query is evaluated once.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame

from qbeast_core import phases
from qbeast_core.delta.transaction import StagedFile
from qbeast_core.errors import SourceChanged
from qbeast_core.jvm.catalyst import ONE_TASK_BYTES, Catalyst, about_bytes
from qbeast_core.jvm.gateway import Jvm
from qbeast_core.locate.table import WritableTable
from qbeast_core.model.revision import Revision
from qbeast_core.spark import columns
from qbeast_core.spark.alignment import is_filled_by_delta
from qbeast_core.spark.location import cells
from qbeast_core.spark.statistics import EveryRow, InputStatistics
from qbeast_core.tree.path import PathLayout
from qbeast_core.write.files import DoesNotFit, WrittenFiles, tagged
from qbeast_core.write.joined_index import JoinedIndex
from qbeast_core.write.plan import RowLayout, TreePlan, in_order
from qbeast_core.write.read_back import Counting, FileContents, contents_of, contents_of_all
from qbeast_core.write.sizing import MOST_SAMPLE_ROWS, row_bytes
from qbeast_core.write.writer import IndexWriter

_LEVELS_BELOW = 4
"""By which the rows of a file are ordered, below the deepest cube of the table: a small append has
few of the rows of such a cube."""


class SingleFile:
    """Reads the rows once. It fits rows that are few enough for one file."""

    def __init__(self, index: JoinedIndex) -> None:
        self._index = index

    def write(self, writer: IndexWriter, rows: DataFrame) -> WrittenFiles | DoesNotFit:
        table, index = writer.table, self._index
        if is_filled_by_delta(rows, table.snapshot.schema):
            # Delta changes the metadata then, which a new revision cannot do once more.
            return DoesNotFit()
        if not fits_single_file(rows, index):
            return DoesNotFit()
        written = _write_one_file(table, rows, index.current)
        if written is None:
            return WrittenFiles(index.current)
        if isinstance(written, DoesNotFit):
            return written
        planned = writer.plan_write(rows.schema, writer.completed(written.statistics))
        if planned.tree.files > 1:
            return DoesNotFit(written.rows)
        contents = [_contents(written, planned.tree)]
        return tagged(
            table.transaction, [written.file], contents, planned.tree, planned.kept_blocks
        )


@dataclass(frozen=True, eq=False)
class _WrittenFile:
    """Rows in a file of their own, written and not committed yet."""

    file: StagedFile
    rows: DataFrame
    """They, read from the file."""
    statistics: InputStatistics
    """Of all the rows, each of which is in the sample."""


def fits_single_file(rows: DataFrame, index: JoinedIndex) -> bool:
    """Whether rows are expected to be few enough for a file, in the space of a revision or near it.

    By what the optimizer expects to be read for them, rather too much.
    """
    revision = index.current
    if index.transformers != revision.transformers:
        return False
    if len(revision.transformations) != len(index.transformers):
        return False
    expected_bytes = about_bytes(rows)
    most_rows = min(index.expected_cube_size, MOST_SAMPLE_ROWS)
    return expected_bytes <= min(ONE_TASK_BYTES, most_rows * row_bytes(rows.schema))


def _write_one_file(
    table: WritableTable, rows: DataFrame, revision: Revision
) -> _WrittenFile | DoesNotFit | None:
    """Write the rows in the order of the revision's space; None where there are no rows.

    Values beyond the revision's bounds count as the bounds.

    Raises:
        SourceChanged: others are in the file. Nothing is committed.
    """
    phases.enter(phases.WRITING)
    transaction = table.transaction
    catalyst = Catalyst(Jvm(rows.sparkSession))
    layout = PathLayout(revision.dimensions)
    cells_of_row = cells(catalyst, revision)
    levels = min(_deepest(table, revision) + _LEVELS_BELOW, layout.first_levels)
    order = columns.order(catalyst, cells_of_row, layout, levels)
    in_file = in_order(rows.coalesce(1), revision, order, transaction.stores_slices)
    with ThreadPoolExecutor(1) as pool:
        # While Spark writes.
        in_session = inheritable_thread_target(rows.sparkSession)(EveryRow.of)
        every_row = pool.submit(in_session, catalyst, revision, cells_of_row)
        staged = transaction.write_files(in_file, expected_rows=0)
    if not staged.files:
        return None
    stored = transaction.read_staged(staged.files)
    stored_rows = staged.files[0].file.rows
    if len(staged.files) > 1 or stored_rows is None or stored_rows > MOST_SAMPLE_ROWS:
        return DoesNotFit(stored)
    statistics = every_row.result().collect(stored)
    if statistics.rows != stored_rows:
        raise SourceChanged(
            f"{statistics.rows} rows were read from a file that {stored_rows} were written to. "
            "Nothing was committed; run the write again"
        )
    return _WrittenFile(staged.with_statistics()[0], stored, statistics)


def _contents(written: _WrittenFile, plan: TreePlan) -> FileContents:
    """What the file holds by a plan that was made for its rows."""
    sample = written.statistics.sample
    if sample.located and sample.located[0] is plan.revision:
        return contents_of_all(plan, sample)
    # Only Spark knows exactly where the rows lie in the space of another revision.
    row_layout = RowLayout.of(Catalyst(Jvm(written.rows.sparkSession)), plan)
    counting = Counting.of(plan, row_layout, written.rows.columns)
    name = written.file.name
    return contents_of(counting, written.rows, {name: written.file.file.size_bytes})[name]


def _deepest(table: WritableTable, revision: Revision) -> int:
    """The depth of the deepest cubes that a table has."""
    return max((block.cube.depth for block in table.index.blocks_of(revision)), default=0)
