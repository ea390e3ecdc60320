"""A write of more rows for an indexed table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from qbeast_core.delta.transaction import Operation, Transaction
from qbeast_core.errors import IncompatibleTable
from qbeast_core.index import TableIndex
from qbeast_core.model.block import Block
from qbeast_core.model.revision import Revision
from qbeast_core.model.transformer import Transformer
from qbeast_core.operations.indexing import IndexedFiles, write_indexed
from qbeast_core.operations.known_index import KnownIndex, fitting_cube_size
from qbeast_core.operations.one_file import suits, write_one_file
from qbeast_core.operations.placing import TreePlan, plan_tree
from qbeast_core.operations.revisions import continued_revision
from qbeast_core.operations.table_write import TableWrite, WriteResult
from qbeast_core.options import WriteMode
from qbeast_core.spark.alignment import aligned, is_filled_by_delta
from qbeast_core.spark.statistics import InputStatistics


@dataclass(frozen=True)
class Append:
    """One attempt to add rows, in a transaction."""

    write: TableWrite
    transaction: Transaction
    rows: DataFrame
    """In the table's schema."""
    known: KnownIndex
    transformers: tuple[Transformer, ...]
    """How each column is indexed from now on."""

    @staticmethod
    def of(write: TableWrite, transaction: Transaction, given: DataFrame) -> Append:
        """The attempt to add the given rows.

        Raises:
            NotAQbeastTable, IndexMismatch: the table has no such index.
            IncompatibleTable: Delta is to fill a column that rows are placed by.
        """
        snapshot, label = transaction.snapshot, write.destination.label
        rows = aligned(given, snapshot.schema, label)
        known, transformers = write.continued(snapshot, rows)
        late = [name for name in known.current.placing_columns if name not in rows.columns]
        if late:
            raise IncompatibleTable(
                f"{label} is indexed or sampled by {', '.join(map(repr, late))}, an identity "
                "column whose values Delta generates after rows are placed; append by plain Delta "
                "and optimize afterwards, or write the table anew by write_table(..., "
                "mode='overwrite') with other columns_to_index or another sample_key"
            )
        return Append(write, transaction, rows, known, transformers)

    @property
    def current(self) -> Revision:
        """The table's latest revision, which the rows belong to if they fit it."""
        return self.known.current

    def after_measuring(self) -> WriteResult:
        """Add rows that are looked at once before they are written."""
        rows = self.rows
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

    def in_one_file(self) -> WriteResult | None:
        """Add rows that are few enough for one file and are measured in it; None if they are not.

        Raises:
            Outgrown: they were expected to be few, and are not.
        """
        rows = self.rows
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

    def _plan(
        self, schema: StructType, statistics: InputStatistics
    ) -> tuple[TreePlan, Sequence[Block]]:
        """Where measured rows go, and the live blocks of the revision that they belong to.

        That is the current one, or one that the transaction gives the table.
        """
        snapshot, options = self.transaction.snapshot, self.write.options
        index = TableIndex.of(snapshot)
        revision = continued_revision(
            self.known.configuration,
            self.current,
            self.transformers,
            statistics,
            cube_size=options.cube_size
            or fitting_cube_size(snapshot, self.current, statistics.rows),
        )
        if revision is self.current:
            tree, kept_blocks = index.tree(revision), index.blocks_of(revision)
        else:
            tree, kept_blocks = None, []
            known = replace(self.known, stored=options.kept_by_append(self.known.stored))
            known.add(self.transaction, revision, options.given_stats(self.transformers))
        return plan_tree(revision, statistics.sample, statistics.rows, schema, tree), kept_blocks

    def _committed(self, plan: TreePlan, written: IndexedFiles) -> WriteResult:
        result = self.write.result(
            self.write.commit(self.transaction, Operation.APPEND, written),
            plan.revision.revision_id,
            WriteMode.APPEND,
            written.rows,
            written,
            new_revision=plan.revision is not self.current,
        )
        return replace(result, column_choice=self.known.column_choice)

    def _nothing(self) -> WriteResult:
        """The result of adding no rows."""
        version = self.transaction.snapshot.version
        return self.write.result(version, self.current.revision_id, WriteMode.APPEND)
