"""The write pipeline that every operation which writes rows uses.

    writer = IndexWriter(table, index)
    files = writer.measure_and_write(rows)
    version = writer.commit(Operation.APPEND, files)

Operations differ only in the index: a new one (`new_index`) or the table's own
(`existing_index`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from qbeast_core import failpoints
from qbeast_core.delta.operations import Operation
from qbeast_core.delta.transaction import Transaction
from qbeast_core.locate.open_table import WritableTable
from qbeast_core.model.block import Block
from qbeast_core.model.column_stats import ColumnStats
from qbeast_core.model.revision import Revision
from qbeast_core.model.transformer import Transformer
from qbeast_core.spark.statistics import InputStatistics
from qbeast_core.tree.otree import OTree
from qbeast_core.write.anchors import anchor_tags
from qbeast_core.write.files import WritePlan, WrittenFiles, write_planned
from qbeast_core.write.measure import measure
from qbeast_core.write.plan import TreePlan, plan_tree


@dataclass(frozen=True)
class RemainingTree:
    """The part of a revision's tree that remains while rows are written to the revision."""

    tree: OTree | None = None
    """The tree to which the rows are added; None for a revision without remaining files."""
    blocks: Sequence[Block] = ()
    """Live blocks of the revision that the commit does not touch."""
    kept_ends: Collection[int] = ()
    """The weights where files must end, so that rewritten rows stay in their bands."""
    receives_other_rows: bool = False
    """Whether rewritten rows move into this tree from other revisions or unindexed files."""


class TargetIndex(Protocol):
    """The index that rows are written to."""

    @property
    def transformers(self) -> tuple[Transformer, ...]:
        """How each column is indexed."""

    @property
    def weight_columns(self) -> tuple[str, ...]:
        """The columns whose hash is a row's weight."""

    @property
    def expected_cube_size(self) -> int | None:
        """The cube size, in rows, that determines the sample's size; None for the automatic one."""

    @property
    def column_stats(self) -> tuple[ColumnStats, ...] | None:
        """The user-supplied statistics of each column; None if there are none."""

    def warnings(self, rows: DataFrame, statistics: InputStatistics) -> tuple[str, ...]:
        """Warnings for the user about samples of these rows."""

    def revision_for(self, statistics: InputStatistics) -> Revision:
        """The revision that the measured rows belong to."""

    def remaining_tree(self, revision: Revision) -> RemainingTree:
        """The part of the revision's tree that remains."""

    def record(
        self,
        transaction: Transaction,
        revision: Revision,
        plan: TreePlan | None,
        statistics: InputStatistics,
    ) -> None:
        """Store the revision in the table if it is new; `plan` is None if there are no rows."""


Index = TypeVar("Index", bound=TargetIndex)


@dataclass(frozen=True)
class IndexWriter(Generic[Index]):
    """Measures rows, chooses their revision, plans their tree, writes, reads back and commits."""

    table: WritableTable
    index: Index

    def measure_and_write(self, rows: DataFrame) -> WrittenFiles:
        """Measure the rows, then write them: two passes.

        Raises:
            SourceChanged: the written rows differ from the measured ones. Nothing is committed.
        """
        return self.write_measured(rows, self.measure(rows))

    def measure(self, rows: DataFrame) -> InputStatistics:
        """Measure the rows, in one pass."""
        index = self.index
        statistics = measure(
            rows, index.transformers, index.weight_columns, index.expected_cube_size
        )
        failpoints.reach(failpoints.BETWEEN_PASSES)
        statistics = self.with_given_statistics(statistics)
        return replace(statistics, warnings=index.warnings(rows, statistics))

    def with_given_statistics(self, statistics: InputStatistics) -> InputStatistics:
        """Complete measured statistics with the user's statistics of the columns."""
        given = self.index.column_stats
        return statistics if given is None else statistics.with_given(given)

    def plan_write(
        self, schema: StructType, statistics: InputStatistics, *, grows: bool = True
    ) -> WritePlan:
        """Choose the revision of measured rows, store it in the table, and plan their tree.

        Args:
            schema: the table's.
            statistics: of the rows, of which there is at least one.
            grows: whether rows are new to the tree or move within it.
        """
        revision = self.index.revision_for(statistics)
        remaining = self.index.remaining_tree(revision)
        plan = plan_tree(
            revision,
            statistics.sample,
            statistics.rows,
            schema,
            remaining.tree,
            grows=grows or remaining.receives_other_rows,
            kept_ends=remaining.kept_ends,
        )
        self.index.record(self.table.transaction, revision, plan, statistics)
        return WritePlan(plan, remaining.blocks, statistics.rows)

    def write_measured(
        self, rows: DataFrame, statistics: InputStatistics, *, grows: bool = True
    ) -> WrittenFiles:
        """Write rows as their statistics place them; the arguments are those of `plan_write`.

        Without rows, a table that has no index still gets one.

        Raises:
            SourceChanged: the written rows differ from the measured ones. Nothing is committed.
        """
        if not statistics.rows:
            return self._without_rows(statistics)
        plan = self.plan_write(rows.schema, statistics, grows=grows)
        written = write_planned(self.table.transaction, rows, plan)
        return replace(written, warnings=statistics.warnings)

    def commit(
        self,
        operation: Operation,
        written: WrittenFiles,
        removes: NDArray[np.int64] | None = None,
        user_metadata: str | None = None,
        *,
        predicate: str | None = None,
        metrics: Mapping[str, int] | None = None,
    ) -> int:
        """Commit the files in place of the removed ones, and keep all trees walkable.

        The arguments are those of `Transaction.commit`.

        Returns:
            The version of the commit.
        """
        retags: Mapping[int, Mapping[str, str]] = {}
        snapshot = self.table.snapshot
        if removes is not None and len(removes) < len(snapshot.files):
            # The revision of the new files needs no anchors: these files carry its weights.
            own = written.revision.revision_id if written.staged else None
            retags = anchor_tags(self.table.index, snapshot.files, removes, skipped=own)
        return self.table.transaction.commit(
            operation,
            written.staged,
            removes,
            user_metadata,
            retags=retags,
            predicate=predicate,
            metrics=metrics,
        )

    def _without_rows(self, statistics: InputStatistics) -> WrittenFiles:
        revision = self.index.revision_for(statistics)
        self.index.record(self.table.transaction, revision, None, statistics)
        return WrittenFiles(revision)
