"""Rewrite files: remove them, write their rows back, changed or not, and add new rows.

Delete, update, merge and replace only differ in which rows these are. Everything happens in one
commit. The rows go to the table's latest revision, or to a new one if they do not fit it; rows that
were in the latest revision return to their cubes. Revisions that only lose files stay walkable
(docs/format.md 8.3): a remaining file takes over the cube weights of the removed blocks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from qbeast_core.change.candidates import Candidates
from qbeast_core.counts import counted
from qbeast_core.delta.application import ApplicationTransaction
from qbeast_core.delta.operations import Operation
from qbeast_core.delta.reads import TableReads
from qbeast_core.jvm.settings import skips_damaged_files
from qbeast_core.locate.compatibility import check_writable
from qbeast_core.locate.open_table import OpenTable, WritableTable
from qbeast_core.locate.retry import until_committed
from qbeast_core.spark.changes import data_rows, feed_rows, insertions_of, without_insertions
from qbeast_core.spark.evaluation import evaluated_once, is_repeatable
from qbeast_core.tree.column_choice import ColumnChoice
from qbeast_core.write.existing_index import ExistingIndex
from qbeast_core.write.files import WrittenFiles, check_none_lost
from qbeast_core.write.index_metadata import IndexMetadata, is_replaceable_guess
from qbeast_core.write.writer import IndexWriter


@dataclass(frozen=True)
class RewriteResult:
    """The result of a delete, update, merge or replacement.

    The fields `rows_*` count rows, `files_*` files and `bytes_*` bytes; `seconds` is the duration.
    """

    version: int
    """The table's version afterwards; unchanged if there was nothing to do."""
    revision_id: int
    """The revision of the written files."""
    new_revision: bool = False
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    rows_copied: int = 0
    """Rows that were rewritten without a change."""
    files_removed: int = 0
    files_added: int = 0
    bytes_removed: int = 0
    bytes_added: int = 0
    files_total: int = 0
    """The number of files in the table before."""
    files_read: int = 0
    """The files that were searched for rows to change."""
    bytes_read: int = 0
    """The size of the files that were searched; in most of them, only the columns of the condition
    were read."""
    seconds: float = 0.0
    column_choice: ColumnChoice | None = None
    """The columns to index that were chosen from these rows, and why; None if none were."""
    repeated: bool = False
    """Whether nothing was done because the table already has this transaction, or a later one, of
    the application in `txn_app_id`."""
    columns_changed: bool = False
    """Whether columns or fields were added to the table, or widened."""

    @property
    def changed(self) -> bool:
        """Whether there was anything to do."""
        return bool(self.files_removed or self.files_added or self.columns_changed)

    def __str__(self) -> str:
        if self.repeated:
            return "nothing done: the table already has this transaction"
        counts = {
            "inserted": self.rows_inserted,
            "updated": self.rows_updated,
            "deleted": self.rows_deleted,
        }
        parts = [f"{rows:,} {what}" for what, rows in counts.items() if rows]
        if not parts:
            return f"no row changed{', but columns were added or widened' * self.columns_changed}"
        return (
            f"rows: {', '.join(parts)}; {self.files_removed:,} of "
            f"{counted(self.files_total, 'file')} rewritten, revision {self.revision_id}"
        )


@dataclass(frozen=True)
class CommitOptions:
    """What a change records with its commit."""

    user_metadata: str | None = None
    application: ApplicationTransaction | None = None


@dataclass(frozen=True, eq=False)
class Rewrite:
    """A planned rewrite of a table's files."""

    operation: Operation
    candidates: Candidates
    changes: DataFrame | None
    """The rows to write, and those for the change data feed (`spark.changes`); None for none."""
    removed: NDArray[np.int64]
    """Indices of the files to remove, in the snapshot's files."""
    moves_rows: bool
    """Whether rows of the table change their position in the index."""
    rows_to_measure: DataFrame | None = None
    """The rows to measure instead of those to write: as many, at the same positions, but cheaper to
    read; None if there are none."""
    rows_updated: int = 0
    rows_deleted: int = 0
    repeatable_part: DataFrame | None = None
    """The part of `changes` that is known to be the same in each evaluation."""
    predicate: str | None = None
    """The condition for the table's history."""

    def rows_kept(self, table: OpenTable) -> int:
        """The number of rows of the removed files that are written back."""
        return table.snapshot.row_count(self.removed) - self.rows_deleted


def begin_change(table: OpenTable, commit: CommitOptions) -> WritableTable | RewriteResult:
    """Start a transaction on the newest version, and check the table before anything is computed.

    If the table already has the change, there is nothing to do, and this is the result.

    Raises:
        NotAQbeastTable: the table was dropped, or replaced by one without an index.
        IncompatibleTable: the table has features that an indexed write cannot maintain.
    """
    begun = WritableTable.begin(table.spark, table.address)
    begun.check_indexed()
    if not begun.transaction.claim(commit.application):
        return RewriteResult(
            version=begun.snapshot.version,
            revision_id=begun.configuration.last_revision_id or 0,
            repeated=True,
        )
    check_writable(begun)
    return begun


def change_rows(
    table: OpenTable,
    decide: Callable[[WritableTable], Rewrite],
    commit: CommitOptions,
    reads: TableReads = TableReads.NONE,
) -> RewriteResult:
    """Plan a rewrite and do it in one commit; retry both after a conflict with another commit.

    Args:
        decide: plans the rewrite for a version of the table.
        reads: how the query of the new rows reads the table.

    Raises:
        IncompatibleTable: the table has features that an indexed write cannot maintain.
        SourceChanged: the rows changed while they were written.
        CommitVetoed: a commit hook refused the commit.
        CommitConflict: other writers changed the table during every attempt.
        CommitStateUnknown: the commit may have been written.
    """
    started = time.monotonic()

    def attempt() -> RewriteResult:
        begun = begin_change(table, commit)
        if isinstance(begun, RewriteResult):
            return begun
        with begun.transaction.pinned_reads():
            begun.transaction.read_whole_table()
            return _write_and_commit(begun, decide(begun), commit.user_metadata)

    retries = reads is not TableReads.FIXED
    result = until_committed(table.label, attempt, retries=retries)
    return replace(result, seconds=time.monotonic() - started)


def _write_and_commit(
    table: WritableTable, rewrite: Rewrite, user_metadata: str | None
) -> RewriteResult:
    """Do the rewrite in one commit, or commit nothing if nothing changes."""
    changes = rewrite.changes
    if changes is None:
        if not len(rewrite.removed) and not table.transaction.changes_more_than_rows:
            return _unchanged(table, rewrite)
        index = ExistingIndex.of(IndexMetadata.of(table), removed=rewrite.removed)
        return _commit(IndexWriter(table, index), rewrite, _no_files(table), 0, user_metadata)
    if is_replaceable_guess(table):
        # The columns chosen now may place rows differently than the guess did.
        rewrite = replace(rewrite, rows_to_measure=None)
    with _evaluated(table, rewrite, changes) as (changes, measured):
        index = ExistingIndex.of(IndexMetadata.for_rows(table, measured), removed=rewrite.removed)
        writer = IndexWriter(table, index)
        statistics = writer.measure(measured)
        changes_no_row = not statistics.rows and not len(rewrite.removed)
        if changes_no_row and not table.transaction.changes_more_than_rows:
            return _unchanged(table, rewrite)
        rows_kept = rewrite.rows_kept(table)
        rows_read = statistics.rows
        if rows_kept and skips_damaged_files(table.spark):
            # New rows would hide how many are missing.
            rows_read -= insertions_of(changes).count()
        check_none_lost(rows_read, rows_kept)
        inserts = statistics.rows > rows_kept
        if not inserts:
            # So that Spark does not search for them again.
            changes = without_insertions(changes)
        written = _no_files(table)
        if statistics.rows:
            grows = inserts or rewrite.moves_rows
            written = writer.write_measured(data_rows(changes), statistics, grows=grows)
        if len(rewrite.removed) and table.snapshot.has_change_feed:
            changed = statistics.rows + rewrite.rows_updated + rewrite.rows_deleted
            files = changed // index.revision.desired_cube_size + 1
            table.transaction.write_change_feed(feed_rows(changes).coalesce(files))
        result = _commit(writer, rewrite, written, rows_kept, user_metadata)
        return replace(result, column_choice=index.metadata.column_choice)


@contextmanager
def _evaluated(
    table: WritableTable, rewrite: Rewrite, changes: DataFrame
) -> Iterator[tuple[DataFrame, DataFrame]]:
    """The changes, as of one evaluation, and the rows to measure for their positions."""
    cheaper = rewrite.rows_to_measure
    if cheaper is not None and not is_repeatable(cheaper, rewrite.repeatable_part):
        cheaper = None
    if cheaper is not None and not table.snapshot.has_change_feed:
        # The changes are only read once, to be written.
        yield changes, cheaper
        return
    with evaluated_once(changes, rewrite.repeatable_part) as evaluated:
        # Checkpointed changes are the cheapest to read.
        was_checkpointed = evaluated is not changes
        yield evaluated, data_rows(evaluated) if cheaper is None or was_checkpointed else cheaper


def _no_files(table: WritableTable) -> WrittenFiles:
    return WrittenFiles(table.configuration.latest)


def _commit(
    writer: IndexWriter[ExistingIndex],
    rewrite: Rewrite,
    written: WrittenFiles,
    rows_kept: int,
    user_metadata: str | None,
) -> RewriteResult:
    snapshot = writer.table.snapshot
    result = RewriteResult(
        version=snapshot.version,
        revision_id=written.revision.revision_id,
        new_revision=written.revision.revision_id != writer.table.configuration.latest.revision_id,
        rows_inserted=written.rows - rows_kept,
        rows_updated=rewrite.rows_updated,
        rows_deleted=rewrite.rows_deleted,
        rows_copied=rows_kept - rewrite.rows_updated,
        files_removed=len(rewrite.removed),
        files_added=len(written.staged),
        bytes_removed=snapshot.size_bytes(rewrite.removed),
        bytes_added=written.bytes,
        files_total=len(snapshot.files),
        files_read=len(rewrite.candidates.files),
        bytes_read=rewrite.candidates.bytes,
        columns_changed=writer.table.transaction.metadata.changes_schema,
    )
    version = writer.commit(
        rewrite.operation,
        written,
        rewrite.removed,
        user_metadata,
        predicate=rewrite.predicate,
        metrics=_metrics(rewrite.operation, result),
    )
    return replace(result, version=version)


def _unchanged(table: WritableTable, rewrite: Rewrite) -> RewriteResult:
    return RewriteResult(
        version=table.snapshot.version,
        revision_id=table.configuration.latest.revision_id,
        files_total=len(table.snapshot.files),
        files_read=len(rewrite.candidates.files),
        bytes_read=rewrite.candidates.bytes,
    )


def _metrics(operation: Operation, result: RewriteResult) -> Mapping[str, int]:
    """The operation metrics for the table's history, under Delta's names."""
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
