"""A write of more rows for an indexed table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.delta.transaction import Operation, Transaction
from qbeast_core.index import TableIndex
from qbeast_core.model.block import Block
from qbeast_core.model.revision import Revision
from qbeast_core.model.transformer import Transformer
from qbeast_core.operations.indexing import IndexedFiles, write_indexed
from qbeast_core.operations.one_file import suits, write_one_file
from qbeast_core.operations.placing import TreePlan, plan_tree
from qbeast_core.operations.revisions import (
    CUBE_SIZE,
    chosen_automatically,
    continued_revision,
    stored_keys,
)
from qbeast_core.operations.sizing import outgrown_cube_size
from qbeast_core.operations.table_write import TableWrite, WriteResult
from qbeast_core.options import WriteMode
from qbeast_core.spark.alignment import aligned, is_filled_by_delta
from qbeast_core.spark.statistics import InputStatistics


@dataclass(frozen=True)
class Append:
    """One attempt to add rows, in a transaction."""

    write: TableWrite
    transaction: Transaction
    current: Revision
    """The table's latest revision, which the rows belong to if they fit it."""
    transformers: tuple[Transformer, ...]
    """How each column is indexed from now on."""

    @staticmethod
    def of(write: TableWrite, transaction: Transaction) -> Append:
        """Raises NotAQbeastTable or IndexMismatch where the table has no such index."""
        return Append(write, transaction, *write.continued(transaction.snapshot))

    def after_measuring(self, given: DataFrame) -> WriteResult:
        """Add rows that are looked at once before they are written."""
        rows = self._aligned(given)
        statistics = self.write.measure(
            rows, self.transformers, self.current.weight_columns, self._cube_size
        )
        if not statistics.rows:
            return self._nothing()
        plan, kept = self._plan(rows.schema, statistics)
        written = write_indexed(
            self.transaction, rows, plan, counted_rows=statistics.rows, kept_blocks=kept
        )
        return self._committed(plan, written)

    def in_one_file(self, given: DataFrame) -> WriteResult | None:
        """Add rows that are few enough for one file and are measured in it; None if they are not.

        Raises:
            Outgrown: they were expected to be few, and are not.
        """
        rows = self._aligned(given)
        if is_filled_by_delta(rows, self.transaction.snapshot.schema):
            # Delta changes the metadata then, which a new revision cannot do once more.
            return None
        if not suits(rows, self.current, self.transformers, self._cube_size):
            return None
        with self.transaction.pinned_reads():
            written = write_one_file(self.transaction, rows, self.current)
            if written is None:
                return self._nothing()
            given_stats = self.write.options.stats_of(self.transformers)
            plan, kept = self._plan(rows.schema, written.statistics.with_given(given_stats))
            return self._committed(plan, written.indexed(self.transaction, plan, kept))

    @property
    def _cube_size(self) -> int:
        return self.write.options.cube_size or self.current.desired_cube_size

    def _aligned(self, given: DataFrame) -> DataFrame:
        return aligned(given, self.transaction.snapshot.schema, self.write.destination.label)

    def _plan(
        self, schema: StructType, statistics: InputStatistics
    ) -> tuple[TreePlan, Sequence[Block]]:
        """Where measured rows go, and the live blocks of the revision that they belong to.

        That is the current one, or one that the transaction gives the table.
        """
        snapshot, options = self.transaction.snapshot, self.write.options
        index = TableIndex.of(snapshot)
        revision = continued_revision(
            index.configuration,
            self.current,
            self.transformers,
            statistics,
            cube_size=options.cube_size
            or _outgrown_cube_size(snapshot, self.current, statistics.rows),
        )
        if revision is self.current:
            tree, kept_blocks = index.tree(revision), index.blocks_of(revision)
        else:
            tree, kept_blocks = None, []
            self.transaction.update_configuration(
                {
                    **options.kept_by_append(snapshot.configuration),
                    "cubeSize": str(revision.desired_cube_size),
                    **options.given_stats(self.transformers),
                    **stored_keys(index.configuration, revision),
                }
            )
        return plan_tree(revision, statistics.sample, statistics.rows, schema, tree), kept_blocks

    def _committed(self, plan: TreePlan, written: IndexedFiles) -> WriteResult:
        return self.write.result(
            self.write.commit(self.transaction, Operation.APPEND, written),
            plan.revision.revision_id,
            WriteMode.APPEND,
            written.rows,
            written,
            new_revision=plan.revision is not self.current,
        )

    def _nothing(self) -> WriteResult:
        """The result of adding no rows."""
        version = self.transaction.snapshot.version
        return self.write.result(version, self.current.revision_id, WriteMode.APPEND)


def _outgrown_cube_size(snapshot: TableSnapshot, current: Revision, more_rows: int) -> int | None:
    """The cube size of a table that chose its own and has outgrown it, with the new rows."""
    known = [file.rows for file in snapshot.files]
    if None in known or not chosen_automatically(snapshot.configuration, CUBE_SIZE):
        return None
    rows = sum(rows for rows in known if rows is not None) + more_rows
    return outgrown_cube_size(current.desired_cube_size, rows, snapshot.schema)
