"""The index that rows are added to: a table's own, without the files that the commit removes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from qbeast_core.delta.snapshot import known_rows
from qbeast_core.delta.transaction import Transaction
from qbeast_core.locate.open_table import OpenTable
from qbeast_core.model.column_stats import ColumnStats, resolve_column_stats
from qbeast_core.model.revision import Revision
from qbeast_core.model.transformer import Transformer
from qbeast_core.spark.statistics import InputStatistics
from qbeast_core.tree.bands import ends_around
from qbeast_core.tree.otree import OTree
from qbeast_core.write.index_metadata import IndexMetadata
from qbeast_core.write.index_properties import AutomaticOption, is_automatic, stored_column_stats
from qbeast_core.write.plan import TreePlan
from qbeast_core.write.revision import continued_revision, continued_transformers
from qbeast_core.write.sizing import automatic_cube_size, outgrown_cube_size
from qbeast_core.write.writer import RemainingTree

NO_FILES = np.array([], dtype=np.int64)


@dataclass(frozen=True)
class ExistingIndex:
    """The index of a table at the start of a transaction, and the files that the commit removes."""

    metadata: IndexMetadata
    revision: Revision
    """The revision that the rows belong to, if they fit it."""
    transformers: tuple[Transformer, ...]
    """How each column is indexed from now on."""
    removed: NDArray[np.int64] = field(default_factory=NO_FILES.copy)
    """Indices of the files that the commit removes and whose rows it rewrites."""
    keeps_weights: bool = True
    """Whether cubes keep the weights that the removed files gave them."""
    cube_size: int | None = None
    """The option; None if it is not set."""
    may_outgrow: bool = False
    """Whether a table that has outgrown its automatic cube size gets a larger one."""
    given_stats: tuple[ColumnStats, ...] | None = None
    """The option `column_stats`; None if it is not set."""
    new_keys: Mapping[str, str] = field(default_factory=dict)
    """Further keys for the table's configuration if it gets a new revision."""

    @classmethod
    def of(
        cls,
        metadata: IndexMetadata,
        revision: Revision | None = None,
        *,
        removed: NDArray[np.int64],
        keeps_weights: bool = True,
    ) -> ExistingIndex:
        """The index for rewritten rows, at a revision or at the latest one."""
        if revision is None:
            revision = metadata.writable_revision
        schema, label = metadata.table.schema, metadata.table.label
        transformers = continued_transformers(revision, None, schema, label)
        return cls(metadata, revision, transformers, removed, keeps_weights)

    @property
    def table(self) -> OpenTable:
        return self.metadata.table

    @property
    def column_stats(self) -> tuple[ColumnStats, ...] | None:
        """Those of the write; for the first rows of a table, those that it was created with."""
        if self.given_stats is not None or not self.revision.is_staging:
            return self.given_stats
        stored = stored_column_stats(self.table.snapshot.configuration, self.transformers)
        return resolve_column_stats(stored, self.transformers)

    @property
    def weight_columns(self) -> tuple[str, ...]:
        return self.revision.weight_columns

    @property
    def expected_cube_size(self) -> int:
        return self.cube_size or self.revision.desired_cube_size

    def warnings(self, rows: DataFrame, statistics: InputStatistics) -> tuple[str, ...]:
        return ()

    def revision_for(self, statistics: InputStatistics) -> Revision:
        if not statistics.rows:
            return self.revision
        return continued_revision(
            self.revision,
            self.transformers,
            statistics,
            revision_id=self.table.index.unused_revision_id,
            cube_size=self.cube_size or self._fitting_cube_size(statistics.rows),
        )

    def remaining_tree(self, revision: Revision) -> RemainingTree:
        if revision is not self.revision:
            return RemainingTree()
        index, all_removed = self.table.index, set(self.removed.tolist())
        files = index.files_of(revision.revision_id).tolist()
        removed = [index.files[i] for i in files if i in all_removed]
        remaining = [
            block for i in files if i not in all_removed for block in index.files[i].blocks
        ]
        tree: OTree | None = None
        if self.keeps_weights:
            tree = index.tree(revision).without(b for file in removed for b in file.blocks)
        elif remaining:
            tree = OTree.of(remaining, revision.dimensions)
        ends = {
            end
            for file in removed
            if file.highest_weight is not None
            for end in ends_around(file.lowest_weight, file.highest_weight)
        }
        receives_other_rows = len(removed) < len(all_removed)
        return RemainingTree(tree, remaining, ends, receives_other_rows)

    def record(
        self,
        transaction: Transaction,
        revision: Revision,
        plan: TreePlan | None,
        statistics: InputStatistics,
    ) -> None:
        if revision is not self.revision:
            self.metadata.with_revision(revision, self.new_keys).store(transaction)

    def _fitting_cube_size(self, rows: int) -> int | None:
        """The new automatic cube size after a write of `rows` rows; None if it does not change.

        While nothing is indexed, the table gets the cube size of a new table.
        """
        snapshot = self.table.snapshot
        removed = set(self.removed.tolist())
        remaining = known_rows(file for i, file in enumerate(snapshot.files) if i not in removed)
        if remaining is None or not is_automatic(snapshot.configuration, AutomaticOption.CUBE_SIZE):
            return None
        total = rows + remaining
        if self.revision.is_staging:
            return automatic_cube_size(total, self.table.schema)
        if not self.may_outgrow:
            return None
        return outgrown_cube_size(self.revision.desired_cube_size, total, self.table.schema)
