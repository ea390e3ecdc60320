"""Rewrite: some files leave a table, their rows come back changed or not, and new rows join them.

Delete, update, merge and replace differ only in which rows those are. Everything happens in one
commit. The rows go to the table's latest revision, or to a new one if they do not fit it; those
that were in it already go back to their cubes. Revisions that only lose files stay walkable
(invariant I11): what a lost block said of its cube's weight moves to a file that stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from qbeast_core import failpoints
from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.delta.transaction import Operation, Transaction
from qbeast_core.index import TableIndex
from qbeast_core.model.block import file_tags
from qbeast_core.model.revision import Revision
from qbeast_core.operations.indexing import NO_FILES, IndexedFiles, write_indexed
from qbeast_core.operations.known_index import KnownIndex, fitting_cube_size, is_open
from qbeast_core.operations.measuring import measure
from qbeast_core.operations.placing import plan_tree
from qbeast_core.operations.revisions import (
    continued_revision,
    continued_transformers,
)
from qbeast_core.operations.touched import Candidates
from qbeast_core.spark.changes import data_rows, feed_rows, without_insertions
from qbeast_core.spark.evaluation import evaluated_once, is_repeatable
from qbeast_core.spark.statistics import InputStatistics
from qbeast_core.tree.anchors import missing_anchors
from qbeast_core.tree.column_choice import ColumnChoice


@dataclass(frozen=True)
class RewriteResult:
    """What a delete, update, merge or replacement did."""

    version: int
    """The table's version after it; what it was before if there was nothing to do."""
    revision_id: int
    """The revision of the files that were written."""
    new_revision: bool = False
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    rows_copied: int = 0
    """Rows that only changed their file."""
    files_removed: int = 0
    files_added: int = 0
    bytes_removed: int = 0
    bytes_added: int = 0
    files_total: int = 0
    """The files that the table had before."""
    files_read: int = 0
    """The files in which rows were looked for."""
    bytes_read: int = 0
    """Their size; of most of them, only the columns of the condition were read."""
    seconds: float = 0.0
    column_choice: ColumnChoice | None = None
    """Which columns were chosen from these rows, and why; None where they chose none."""

    @property
    def changed(self) -> bool:
        """Whether there was anything to do."""
        return bool(self.files_removed or self.files_added)

    def __str__(self) -> str:
        counts = {
            "inserted": self.rows_inserted,
            "updated": self.rows_updated,
            "deleted": self.rows_deleted,
        }
        told = [f"{rows:,} {what}" for what, rows in counts.items() if rows]
        if not told:
            return "no row changed"
        return (
            f"rows: {', '.join(told)}; {self.files_removed:,} of {self.files_total:,} files "
            f"rewritten, revision {self.revision_id}"
        )


@dataclass(frozen=True, eq=False)
class Rewrite:
    """A rewrite of a table's files that is decided on and not done yet."""

    operation: Operation
    candidates: Candidates
    changes: DataFrame | None
    """The rows to write and to tell of, as `spark.changes` has them; None for none."""
    removed: NDArray[np.int64]
    """Indices into the snapshot's files: those that leave."""
    moves_rows: bool
    """Whether rows of the table come to places of the index where they were not before."""
    placed_alike: DataFrame | None = None
    """As many rows in the same places as those to write, where some cost less to read."""
    rows_updated: int = 0
    rows_deleted: int = 0
    given: DataFrame | None = None
    """A part of `changes` that is known to give the same rows at each reading."""
    predicate: str | None = None
    """For the table's history."""

    def rows_kept(self, snapshot: TableSnapshot) -> int:
        """How many rows of the removed files come back."""
        return snapshot.rows(self.removed) - self.rows_deleted


def commit_rewrite(
    transaction: Transaction,
    rewrite: Rewrite,
    label: str,
    user_metadata: str | None = None,
) -> RewriteResult:
    """Do it, in one commit; nothing is committed if nothing changes.

    Raises:
        SourceChanged: the rows were other ones while they were written.
    """
    index = TableIndex.of(transaction.snapshot)
    changes = rewrite.changes
    if changes is None:
        if not len(rewrite.removed):
            return _unchanged(transaction, rewrite, index)
        return _commit(transaction, rewrite, index, _Written(), 0, user_metadata)
    if is_open(transaction.snapshot):
        # Rows in the same places by the guess may be in others by the columns chosen now.
        rewrite = replace(rewrite, placed_alike=None)
    with _changes(transaction, rewrite, changes) as (changes, measured):
        schema = transaction.snapshot.schema
        known = KnownIndex.for_rows(transaction.snapshot, measured)
        current = known.current
        transformers = continued_transformers(current, None, schema, label)
        statistics = measure(
            measured, transformers, current.weight_columns, current.desired_cube_size
        )
        failpoints.reach(failpoints.BETWEEN_PASSES)
        if not statistics.rows and not len(rewrite.removed):
            return _unchanged(transaction, rewrite, index)
        rows_kept = rewrite.rows_kept(transaction.snapshot)
        inserts = statistics.rows > rows_kept
        if not inserts:
            # Spark does not look for them again.
            changes = without_insertions(changes)
        written = _Written()
        if statistics.rows:
            cube_size = None
            if current.is_staging:
                more_rows = statistics.rows - transaction.snapshot.rows(rewrite.removed)
                cube_size = fitting_cube_size(transaction.snapshot, current, more_rows)
            target = continued_revision(
                known.configuration, current, transformers, statistics, cube_size=cube_size
            )
            grows = inserts or rewrite.moves_rows
            data = data_rows(changes)
            written = _write(transaction, rewrite, index, known, data, target, statistics, grows)
        if len(rewrite.removed) and transaction.snapshot.has_change_feed:
            told = statistics.rows + rewrite.rows_updated + rewrite.rows_deleted
            files = told // current.desired_cube_size + 1
            transaction.write_change_feed(feed_rows(changes).coalesce(files))
        result = _commit(transaction, rewrite, index, written, rows_kept, user_metadata)
        return replace(result, column_choice=known.column_choice)


@contextmanager
def _changes(
    transaction: Transaction, rewrite: Rewrite, changes: DataFrame
) -> Iterator[tuple[DataFrame, DataFrame]]:
    """The changes, as of one evaluation, and rows by which to measure where theirs go."""
    alike = rewrite.placed_alike
    if alike is not None and not is_repeatable(alike, rewrite.given):
        alike = None
    if alike is not None and not transaction.snapshot.has_change_feed:
        # They are read once, to be written.
        yield changes, alike
        return
    with evaluated_once(changes, rewrite.given) as settled:
        # What was stored costs least to read.
        stored = settled is not changes
        yield settled, data_rows(settled) if alike is None or stored else alike


@dataclass(frozen=True)
class _Written:
    """The files of a rewrite and the revision that they belong to, if it has any."""

    files: IndexedFiles = NO_FILES
    revision: Revision | None = None


def _write(
    transaction: Transaction,
    rewrite: Rewrite,
    index: TableIndex,
    known: KnownIndex,
    data: DataFrame,
    target: Revision,
    statistics: InputStatistics,
    grows: bool,
) -> _Written:
    if target is not known.configuration.latest:
        known.add(transaction, target)
        plan = plan_tree(target, statistics.sample, statistics.rows, data.schema)
        files = write_indexed(transaction, data, plan, counted_rows=statistics.rows)
        return _Written(files, target)
    leaving, staying = _parted(index, target, rewrite.removed)
    existing = index.tree(target).without(block for i in leaving for block in index.files[i].blocks)
    plan = plan_tree(
        target,
        statistics.sample,
        statistics.rows,
        data.schema,
        existing,
        grows=grows or len(leaving) < len(rewrite.removed),
    )
    files = write_indexed(
        transaction,
        data,
        plan,
        counted_rows=statistics.rows,
        kept_blocks=[block for i in staying for block in index.files[i].blocks],
    )
    return _Written(files, target)


def _commit(
    transaction: Transaction,
    rewrite: Rewrite,
    index: TableIndex,
    written: _Written,
    rows_kept: int,
    user_metadata: str | None,
) -> RewriteResult:
    snapshot = transaction.snapshot
    removed = [snapshot.files[i] for i in rewrite.removed.tolist()]
    revision = written.revision or index.configuration.latest
    result = RewriteResult(
        version=snapshot.version,
        revision_id=revision.revision_id,
        new_revision=revision.revision_id != index.configuration.latest.revision_id,
        rows_inserted=written.files.rows - rows_kept,
        rows_updated=rewrite.rows_updated,
        rows_deleted=rewrite.rows_deleted,
        rows_copied=rows_kept - rewrite.rows_updated,
        files_removed=len(removed),
        files_added=len(written.files.staged),
        bytes_removed=sum(file.size_bytes for file in removed),
        bytes_added=written.files.bytes,
        files_total=len(snapshot.files),
        files_read=len(rewrite.candidates.files),
        bytes_read=rewrite.candidates.bytes,
    )
    failpoints.reach(failpoints.BEFORE_COMMIT)
    version = transaction.commit(
        rewrite.operation,
        written.files.staged,
        rewrite.removed,
        user_metadata,
        # The revision of new files needs none: these files say what the removed ones did.
        retags=retags(index, rewrite.removed, but=written.revision),
        predicate=rewrite.predicate,
        metrics=_metrics(rewrite.operation, result),
    )
    return replace(result, version=version)


def _unchanged(transaction: Transaction, rewrite: Rewrite, index: TableIndex) -> RewriteResult:
    return RewriteResult(
        version=transaction.snapshot.version,
        revision_id=index.configuration.latest.revision_id,
        files_total=len(transaction.snapshot.files),
        files_read=len(rewrite.candidates.files),
        bytes_read=rewrite.candidates.bytes,
    )


def _parted(
    index: TableIndex, revision: Revision, removed: NDArray[np.int64]
) -> tuple[list[int], list[int]]:
    """The files of a revision that leave, and those that stay."""
    gone = set(removed.tolist())
    files = index.files_of(revision.revision_id).tolist()
    return [i for i in files if i in gone], [i for i in files if i not in gone]


def retags(
    index: TableIndex, removed: NDArray[np.int64], but: Revision | None = None
) -> dict[int, dict[str, str]]:
    """The tags of files that stay and take over what lost blocks said of their cubes' weights.

    Args:
        removed: indices of the files that are lost.
        but: a revision that is left out.
    """
    mended = {index.files[i].revision_id for i in removed.tolist() if index.files[i].is_indexed}
    if but is not None:
        mended.discard(but.revision_id)
    tags = {}
    for revision_id in sorted(mended):
        revision = index.configuration.revisions[revision_id]
        _, staying = _parted(index, revision, removed)
        kept = [block for i in staying for block in index.files[i].blocks]
        if anchors := missing_anchors(kept, index.tree(revision).weights):
            file = index.files[staying[0]]
            tags[staying[0]] = file_tags(
                revision_id,
                [*file.blocks, *anchors],
                revision.weight_key,
                file.highest_weight,
                index.identity.recorded,
            )
    return tags


def _metrics(operation: Operation, result: RewriteResult) -> Mapping[str, int]:
    """What the table's history tells of the commit, under the names that Delta has for it."""
    if operation is Operation.MERGE:
        return {
            "operationNumSourceRows": result.rows_inserted + result.rows_updated,
            "numTargetRowsCopied": result.rows_copied,
            "numTargetRowsInserted": result.rows_inserted,
            "numTargetRowsUpdated": result.rows_updated,
            "numTargetRowsDeleted": result.rows_deleted,
            "numTargetFilesAdded": result.files_added,
            "numTargetFilesRemoved": result.files_removed,
            "numTargetBytesAdded": result.bytes_added,
            "numTargetBytesRemoved": result.bytes_removed,
        }
    return {
        "numOutputRows": result.rows_inserted + result.rows_copied + result.rows_updated,
        "numFiles": result.files_added,
        "numOutputBytes": result.bytes_added,
        "numAddedFiles": result.files_added,
        "numRemovedFiles": result.files_removed,
        "numAddedBytes": result.bytes_added,
        "numRemovedBytes": result.bytes_removed,
        "numDeletedRows": result.rows_deleted,
        "numUpdatedRows": result.rows_updated,
        "numCopiedRows": result.rows_copied,
    }
