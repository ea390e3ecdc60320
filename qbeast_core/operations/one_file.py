"""A small append in one pass: its rows are written to a file first, and measured in it.

Which cubes rows belong to depends on all of them, so that an append measures its rows before it
writes them. Where they go to one file anyway, the cubes are nothing but what the log says of it: so
it can be said afterwards, and the query is evaluated once.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame

from qbeast_core import phases
from qbeast_core.delta.jvm import Jvm
from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.delta.transaction import StagedFile, Transaction
from qbeast_core.errors import SourceChanged
from qbeast_core.index import TableIndex
from qbeast_core.model.block import Block
from qbeast_core.model.revision import Revision
from qbeast_core.model.transformer import Transformer
from qbeast_core.operations.contents import Counting, FileContents, contents_of, contents_of_all
from qbeast_core.operations.indexing import IndexedFiles, Outgrown, tagged
from qbeast_core.operations.placing import Placing, TreePlan, in_order
from qbeast_core.operations.sizing import MOST_SAMPLE_ROWS, row_bytes
from qbeast_core.spark import columns
from qbeast_core.spark.catalyst import ONE_TASK_BYTES, Catalyst, about_bytes
from qbeast_core.spark.location import cells
from qbeast_core.spark.statistics import EveryRow, InputStatistics
from qbeast_core.tree.path import PathLayout

_LEVELS_BELOW = 4
"""By which the rows of a file are ordered, below the deepest cube of the table: a small append has
few of the rows of such a cube."""


@dataclass(frozen=True, eq=False)
class OneFile:
    """Rows in a file of their own, written and not committed yet."""

    file: StagedFile
    rows: DataFrame
    """They, read from the file."""
    columns: Sequence[str]
    statistics: InputStatistics
    """Of all the rows, each of which is in the sample."""

    def indexed(
        self, transaction: Transaction, plan: TreePlan, kept_blocks: Sequence[Block]
    ) -> IndexedFiles:
        """The file with the cubes that its rows belong to by a plan that was made for them.

        The other arguments are those of `write_indexed`.

        Raises:
            Outgrown: by the plan its rows go to several files.
        """
        if plan.files > 1:
            raise Outgrown(self.rows)
        return tagged(transaction, [self.file], [self._contents(plan)], plan, kept_blocks)

    def _contents(self, plan: TreePlan) -> FileContents:
        sample = self.statistics.sample
        if sample.located and sample.located[0] is plan.revision:
            return contents_of_all(plan, sample)
        # Only Spark knows exactly where the rows lie in the space of another revision.
        placing = Placing.of(Catalyst(Jvm(self.rows.sparkSession)), plan)
        counting = Counting.of(plan, placing, self.columns)
        name = self.file.name
        return contents_of(counting, self.rows, {name: self.file.file.size_bytes})[name]


def suits(
    rows: DataFrame, revision: Revision, transformers: Sequence[Transformer], cube_size: int
) -> bool:
    """Whether rows are expected to be few enough for a file, in the space of a revision or near it.

    By what the optimizer expects to be read for them, rather too much.
    """
    if tuple(transformers) != revision.transformers:
        return False
    if len(revision.transformations) != len(transformers):
        return False
    expected_bytes = about_bytes(rows)
    most_rows = min(cube_size, MOST_SAMPLE_ROWS)
    return expected_bytes <= min(ONE_TASK_BYTES, most_rows * row_bytes(rows.schema))


def write_one_file(transaction: Transaction, rows: DataFrame, revision: Revision) -> OneFile | None:
    """Write the rows, which `suits` is true of, in the order of the revision's space.

    None where there are no rows. Values beyond the revision's bounds count as the bounds.

    Raises:
        Outgrown: there are too many for one file.
        SourceChanged: others are in the file. Nothing is committed.
    """
    phases.enter(phases.WRITING)
    catalyst = Catalyst(Jvm(rows.sparkSession))
    layout = PathLayout(revision.dimensions)
    cells_of_row = cells(catalyst, revision)
    levels = min(_deepest(transaction.snapshot, revision) + _LEVELS_BELOW, layout.first_levels)
    order = columns.order(catalyst, cells_of_row, layout, levels)
    in_file = in_order(rows.coalesce(1), revision, order, transaction.stores_slices)
    late = transaction.late_statistics(rows=0)
    with ThreadPoolExecutor(1) as pool:
        # While Spark writes.
        in_session = inheritable_thread_target(rows.sparkSession)(EveryRow.of)
        every_row = pool.submit(in_session, catalyst, revision, cells_of_row)
        staged = transaction.write_files(in_file, late)
    if not staged:
        return None
    stored = transaction.read_staged(staged)
    stored_rows = staged[0].file.rows
    if len(staged) > 1 or stored_rows is None or stored_rows > MOST_SAMPLE_ROWS:
        raise Outgrown(stored)
    with transaction.completed(staged, late) as completed:
        statistics = every_row.result().collect(stored)
    if statistics.rows != stored_rows:
        raise SourceChanged(
            f"{statistics.rows} rows were read from a file that {stored_rows} were written to. "
            "Nothing was committed; run the write again"
        )
    return OneFile(completed.result()[0], stored, rows.columns, statistics)


def _deepest(snapshot: TableSnapshot, revision: Revision) -> int:
    """The depth of the deepest cubes that a table has."""
    return max(
        (block.cube.depth for block in TableIndex.of(snapshot).blocks_of(revision)), default=0
    )
