"""Optimize: rewrite only the files whose layout improves.

A file is rewritten if its rows are not divided by weight and enough other rows are not either, if
it is one of several small files with the same weights, if it shares crowded or many pieces of cubes
with other files (`tree.fragments`), if it belongs to a small older revision, or if the index does
not describe it. Its rows are removed from the tree and added again, or join the latest revision;
their values and weights do not change. Rarely, they overcrowd a cube of another file, or open a
revision that others join; the next round then rewrites that. After the last round no file improves
any more, so a second optimize writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from qbeast_core.counts import counted
from qbeast_core.delta.operations import Operation
from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.locate.address import TableAddress
from qbeast_core.locate.compatibility import check_writable
from qbeast_core.locate.open_table import OpenTable, WritableTable
from qbeast_core.locate.retry import until_committed
from qbeast_core.maintain.scope import Scope
from qbeast_core.model.revision import STAGING_REVISION_ID, Revision
from qbeast_core.tree.fragments import BlockHolder, compaction_candidates
from qbeast_core.write.existing_index import ExistingIndex
from qbeast_core.write.files import WrittenFiles, check_none_lost
from qbeast_core.write.index_metadata import IndexMetadata
from qbeast_core.write.writer import IndexWriter

_ROUNDS = 5
"""More than was ever needed; a limit, because concurrent appends could require ever more rounds."""


@dataclass(frozen=True)
class OptimizeResult:
    """The result of an optimize or of its dry run, in files, bytes and rows."""

    version: int
    """The version of its last commit; without a change, the table's version."""
    files_removed: int = 0
    files_added: int = 0
    """An estimate in a dry run."""
    bytes_removed: int = 0
    bytes_added: int = 0
    """0 in a dry run."""
    rows: int = 0
    """Rows in the rewritten files."""
    bytes_written_since: int = 0
    """The bytes added to the table since the previous optimize. If `bytes_removed` is several times
    as much, the optimize rewrote more than the appends justified."""
    dry_run: bool = False

    @property
    def changed(self) -> bool:
        """Whether any file was rewritten, or would be."""
        return self.files_removed > 0

    def __str__(self) -> str:
        if not self.changed:
            return "no file needs rewriting"
        verb = "would rewrite" if self.dry_run else "rewrote"
        about = "about " if self.dry_run else ""
        return (
            f"{verb} {counted(self.rows, 'row')}: {self.files_removed:,} -> "
            f"{about}{counted(self.files_added, 'file')}, {self.bytes_removed:,} bytes "
            f"({self.bytes_written_since:,} written since the last optimize)"
        )


def optimize_table(
    spark: SparkSession, address: TableAddress, scope: Scope, dry_run: bool
) -> OptimizeResult:
    """Optimize the newest version of a table; the arguments are those of `QbeastTable.optimize`."""
    newest = OpenTable.newest(spark, address)
    newest.check_indexed()
    result = OptimizeResult(newest.snapshot.version, dry_run=dry_run)
    written_since = cache(partial(_bytes_written_since, newest.snapshot))
    pending = scope.revisions(newest)
    while pending:
        wanted, *pending = pending

        def attempt(wanted: int = wanted) -> tuple[OptimizeResult, bool]:
            table = WritableTable.begin(spark, address)
            check_writable(table)
            return _optimize_revision(table, wanted, scope, written_since, dry_run=dry_run)

        for _ in range(_ROUNDS):
            done, again = until_committed(address.label, attempt, wrote_before=result.changed)
            result = _sum(result, done)
            if not again:
                break
            if wanted == STAGING_REVISION_ID:
                # The revision that was the latest may be a small older one now.
                pending = scope.revisions(OpenTable.newest(spark, address))[1:]
    return result


def _optimize_revision(
    table: WritableTable,
    revision_id: int,
    scope: Scope,
    written_since: Callable[[], int],
    *,
    dry_run: bool,
) -> tuple[OptimizeResult, bool]:
    """Optimize one revision once.

    Args:
        written_since: reads the table's history, which can fail, so it is called before the commit.

    Returns:
        The result, and whether further files of the revision can be improved now. For number 0,
        whether the rows opened a revision, which those of the previous one may join.
    """
    snapshot = table.snapshot
    found = scope.files_of(table, revision_id)
    if revision_id == STAGING_REVISION_ID:
        revision = table.index.writable_revision
    elif revision_id not in table.configuration.revisions:
        # Another writer has replaced the table.
        return OptimizeResult(snapshot.version, dry_run=dry_run), False
    else:
        revision = table.configuration.revisions[revision_id]
        candidates = {i: table.index.files[i] for i in found}
        outside = set(table.index.files_of(revision_id).tolist()).difference(found)
        others = [table.index.files[i] for i in sorted(outside)]
        found = compaction_candidates(candidates, revision.desired_cube_size, others)
    chosen = np.array(found, dtype=np.int64)
    if not len(chosen):
        return OptimizeResult(snapshot.version, dry_run=dry_run), False
    result = OptimizeResult(
        version=snapshot.version,
        files_removed=len(chosen),
        bytes_removed=snapshot.size_bytes(chosen),
        rows=snapshot.row_count_in_log(chosen),
        bytes_written_since=written_since(),
        dry_run=dry_run,
    )
    if dry_run:
        files_added = -(-result.rows // revision.desired_cube_size) or 1
        return replace(result, files_added=files_added), False
    table.transaction.track_reads(chosen)
    writer, written = _rewrite(table, revision, chosen)
    result = replace(
        result,
        version=writer.commit(Operation.OPTIMIZE, written, chosen),
        files_added=len(written.staged),
        bytes_added=written.bytes,
        rows=written.rows,
    )
    if revision_id == STAGING_REVISION_ID:
        is_new = written.revision.revision_id != revision.revision_id
        return result, is_new and scope.is_whole
    return result, _can_improve_more(table, written, chosen)


def _rewrite(
    table: WritableTable, revision: Revision, chosen: NDArray[np.int64]
) -> tuple[IndexWriter[ExistingIndex], WrittenFiles]:
    """Write the rows of the chosen files to new files; the commit removes the old ones.

    Rows that do not fit their older revision, because its writer placed dates otherwise, join the
    latest one.
    """
    rows = table.snapshot.dataframe(chosen)
    metadata = IndexMetadata.of(table)
    if revision.is_staging:
        metadata = IndexMetadata.for_rows(table, None)
        revision = metadata.configuration.latest
    index = ExistingIndex.of(metadata, revision, removed=chosen, keeps_weights=False)
    writer = IndexWriter(table, index)
    statistics = writer.measure(rows)
    is_older = revision.revision_id < metadata.configuration.latest.revision_id
    if is_older and index.revision_for(statistics) is not revision:
        index = ExistingIndex.of(metadata, removed=chosen, keeps_weights=False)
        writer = IndexWriter(table, index)
        statistics = writer.measure(rows)
    written = writer.write_measured(rows, statistics)
    check_none_lost(written.rows, table.snapshot.row_count_in_log(chosen))
    return writer, written


def _can_improve_more(table: OpenTable, written: WrittenFiles, chosen: NDArray[np.int64]) -> bool:
    """Whether another rewrite would improve files of the revision that was written."""
    if not written.staged:
        return False
    remaining = set(table.index.files_of(written.revision.revision_id).tolist()) - set(
        chosen.tolist()
    )
    files: list[BlockHolder] = [
        *(table.index.files[i] for i in sorted(remaining)),
        *written.contents,
    ]
    return bool(compaction_candidates(dict(enumerate(files)), written.revision.desired_cube_size))


def _bytes_written_since(snapshot: TableSnapshot) -> int:
    """The bytes of the live files that are newer than the snapshot's last optimize."""
    last = snapshot.last_commit_millis("OPTIMIZE")
    return sum(file.size_bytes for file in snapshot.files if file.modification_millis > last)


def _sum(first: OptimizeResult, then: OptimizeResult) -> OptimizeResult:
    # Without a change, `then.version` can be the commit of another writer.
    return OptimizeResult(
        version=then.version if then.changed or not first.changed else first.version,
        files_removed=first.files_removed + then.files_removed,
        files_added=first.files_added + then.files_added,
        bytes_removed=first.bytes_removed + then.bytes_removed,
        bytes_added=first.bytes_added + then.bytes_added,
        rows=first.rows + then.rows,
        bytes_written_since=max(first.bytes_written_since, then.bytes_written_since),
        dry_run=first.dry_run,
    )
