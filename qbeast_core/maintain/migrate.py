"""Migrate: tables of qbeast 0.5 and older get today's tags (docs/format.md 10).

Where no cube was ever replicated or announced, a file's tags become its one block, and no data file
is touched. Otherwise the table has files with nothing but copies of rows, and the files that count
lack the upper levels of the tree: the rows that count are written anew, and all files of the
revision leave, in the same commit. That copies are copies is not taken for granted; it is checked
row by row before anything is dropped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from qbeast_core import failpoints
from qbeast_core.delta.index import TableIndex
from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.delta.transaction import Operation, StagedFile
from qbeast_core.errors import IncompatibleTable, NotAQbeastTable
from qbeast_core.locate.address import DELTA, address_of_text
from qbeast_core.locate.compatibility import check_own_files, check_supported
from qbeast_core.locate.retry import until_committed
from qbeast_core.locate.table import OpenTable, WritableTable
from qbeast_core.model.block import Block, file_tags
from qbeast_core.model.legacy import (
    CUBE_TAG,
    has_legacy_tags,
    parse_legacy_tags,
    parse_revision_id,
    parse_state,
    replicated_revisions,
    without_replicated_sets,
)
from qbeast_core.model.revision import IndexConfiguration, Revision
from qbeast_core.spark.columns import column, file_metadata
from qbeast_core.tree.anchors import missing_anchors
from qbeast_core.tree.otree import OTree
from qbeast_core.write.joined_index import JoinedIndex
from qbeast_core.write.known_index import KnownIndex
from qbeast_core.write.writer import IndexWriter


@dataclass(frozen=True)
class MigrateResult:
    """What a migration did, or would do if it was a dry run."""

    version: int
    """The table's version afterwards."""
    changed: bool = False
    """Whether there was anything to migrate."""
    files_retagged: int = 0
    """Files that stay as they are, with new tags."""
    files_unindexed: int = 0
    """Of these, the ones whose old tags made no sense: they count as not indexed now."""
    files_removed: int = 0
    files_added: int = 0
    """0 in a dry run."""
    rows_rewritten: int = 0
    copies_dropped: int = 0
    """Rows that a plain reader of the table met besides, and does no more."""
    dry_run: bool = False

    def __str__(self) -> str:
        if not self.changed:
            return "has nothing in the old format"
        would = "would be " if self.dry_run else ""
        parts = [f"{self.files_retagged:,} files {would}tagged anew"]
        if self.files_unindexed:
            parts.append(f"{self.files_unindexed:,} of them without an index for their tags")
        if self.files_removed:
            parts.append(
                f"{self.rows_rewritten:,} rows of {self.files_removed:,} files {would}"
                f"rewritten, {self.copies_dropped:,} copies of rows {would}dropped"
            )
        return "; ".join(parts)


def migrate_format(spark: SparkSession, table: str, dry_run: bool = False) -> MigrateResult:
    """Bring a table of qbeast 0.5 or older to today's format, in one commit.

    A table that has nothing in the old format is left as it is, so that a second call does nothing.

    Args:
        table: a name as `schema.table`, or a path as `/path` or ``delta.`/path` ``.
        dry_run: only tell what would be done, or raise what would be raised. Where cubes were
            replicated this reads the rows too.

    Raises:
        NotAQbeastTable: there is no such table, or it has no index.
        IncompatibleTable: it cannot be proved which rows are copies, or the table has features,
            or files outside of its directory, that a write would not keep right.
        CorruptMetadata: the index that the table's configuration describes cannot be read.
        CommitConflict: other writers came first on every attempt.
        CommitStateUnknown: the commit may have been written; the message says how to find out.
        In every other case the table is as it was.
    """
    address = address_of_text(spark, table)
    if address.format != DELTA:
        raise NotAQbeastTable(f"{address.label} is not a Delta table")

    return until_committed(
        address.label, lambda: _migrate(WritableTable.begin(spark, address), dry_run)
    )


@dataclass(frozen=True)
class _Survey:
    """The files of the old format, by their revision."""

    counting: Mapping[int, Mapping[int, Block | None]]
    """The block of each file with rows that count; None where the tags make no sense of it."""
    copies: Mapping[int, Mapping[int, str]]
    """The cube of each file that is said to have copies only."""
    lost: Sequence[int]
    """Files with rows that count, of a revision that the table does not have."""

    @property
    def files(self) -> list[int]:
        groups = [*self.counting.values(), *self.copies.values()]
        return sorted([*self.lost, *(i for group in groups for i in group)])


def _migrate(table: WritableTable, dry_run: bool) -> MigrateResult:
    snapshot = table.snapshot
    if not snapshot.exists:
        raise NotAQbeastTable(f"there is no Delta table at {table.label}")
    _ = table.configuration.latest  # raises for a table without a readable index
    survey = _survey(table)
    stored = without_replicated_sets(snapshot.configuration)
    if not survey.files and stored == snapshot.configuration:
        return MigrateResult(snapshot.version, dry_run=dry_run)
    check_supported(table)
    check_own_files(table)
    replicated = replicated_revisions(snapshot.configuration) | survey.copies.keys()
    for revision_id in sorted(replicated):
        _prove_copies(table, survey, revision_id)

    removed = [
        i for id_ in survey.copies for i in (*survey.copies[id_], *survey.counting.get(id_, ()))
    ]
    retags = _retags(table.index, survey)
    result = MigrateResult(
        version=snapshot.version,
        changed=True,
        files_retagged=len(retags),
        files_unindexed=sum(not tags for tags in retags.values()),
        files_removed=len(removed),
        rows_rewritten=sum(
            snapshot.files[i].rows or 0
            for id_ in survey.copies
            for i in survey.counting.get(id_, ())
        ),
        copies_dropped=sum(
            snapshot.files[i].rows or 0 for files in survey.copies.values() for i in files
        ),
        dry_run=dry_run,
    )
    if dry_run:
        return result
    table.transaction.track_reads(np.array(survey.files, dtype=np.int64))
    written = _rewrite(table, survey, stored)
    failpoints.reach(failpoints.BEFORE_COMMIT)
    version = table.transaction.commit(
        Operation.MIGRATE, written, np.array(removed, dtype=np.int64), retags=retags
    )
    return replace(result, version=version, files_added=len(written))


def _survey(table: OpenTable) -> _Survey:
    """Sort the files of the old format. Raises IncompatibleTable where a state is not clear."""
    counting: dict[int, dict[int, Block | None]] = defaultdict(dict)
    copies: dict[int, dict[int, str]] = defaultdict(dict)
    lost = []
    for i, file in enumerate(table.snapshot.files):
        if not has_legacy_tags(file.tags):
            continue
        try:
            state = parse_state(file.tags)
        except ValueError as problem:
            raise IncompatibleTable(
                f"{table.label} cannot be migrated: whether the rows of {file.path} are copies of "
                f"other rows is not known, since {problem}. Mend or remove that file, or write "
                "the rows that are right into a new table"
            ) from None
        revision = _revision_of(table.configuration, file.tags)
        if state.is_copy:
            if revision is None:
                raise IncompatibleTable(
                    f"{table.label} cannot be migrated: {file.path} is said to have copies of rows "
                    f"of revision {file.tags.get('revision')!r}, which the table does not have"
                )
            copies[revision.revision_id][i] = file.tags.get(CUBE_TAG, "")
        elif revision is None:
            lost.append(i)
        else:
            block = _block_of(file.tags, file.stored_rows, revision)
            counting[revision.revision_id][i] = block
    return _Survey(counting, copies, lost)


def _revision_of(configuration: IndexConfiguration, tags: Mapping[str, str]) -> Revision | None:
    """The revision of a file; None if the table has no such index."""
    try:
        revision = configuration.revisions.get(parse_revision_id(tags))
    except ValueError:
        return None
    return None if revision is None or revision.is_staging else revision


def _block_of(tags: Mapping[str, str], rows: int | None, revision: Revision) -> Block | None:
    try:
        block = parse_legacy_tags(tags, revision.dimensions).block
    except ValueError:
        return None
    return block if rows in (None, block.element_count) else None


def _prove_copies(table: OpenTable, survey: _Survey, revision_id: int) -> None:
    """Raise IncompatibleTable unless dropping the copies of a revision drops no row.

    An optimize of old copied each row of a cube once for each level below. So a row may stand in
    the copied files of one cube no more often than in the files that count. Files that lost their
    tags to another writer may have rows that count or copies; only a row that stands nowhere else
    is known to count.
    """
    copies = survey.copies.get(revision_id, {})
    counting = survey.counting.get(revision_id, {})
    legacy = set(survey.files)
    others = [
        i
        for i, indexed in enumerate(table.index.files)
        if i not in legacy and indexed.revision_id in (0, revision_id)
    ]
    parts = [
        *((i, "copy", cube) for i, cube in copies.items()),
        *((i, "counts", "") for i in counting),
        *((i, "other", "") for i in others),
    ]
    if not parts:
        return
    verdict = _verdict(table.snapshot, parts)
    if verdict["lost"]:
        raise IncompatibleTable(
            f"{table.label} cannot be migrated: {verdict['lost']} rows are only in files of "
            f"revision {revision_id} that should have nothing but copies, and would be lost. "
            "Restore a version in which no row is missing, or write the rows that are right into "
            "a new table"
        )
    if verdict["unclear"]:
        raise IncompatibleTable(
            f"{table.label} cannot be migrated: cubes of revision {revision_id} were replicated, "
            f"and another writer took the old tags from files with {verdict['unclear']} rows of "
            "which there are equal ones; whether they are copies cannot be told. Restore the "
            "version before that write and migrate it, or write the rows that are right into a "
            "new table"
        )


def _verdict(snapshot: TableSnapshot, parts: Sequence[tuple[int, str, str]]) -> Mapping[str, int]:
    """How many rows would be lost, and of how many it is unclear whether they are copies."""
    files = np.array([i for i, _, _ in parts], dtype=np.int64)
    listed = snapshot.spark.createDataFrame(
        [(snapshot.files[i].path.rsplit("/", 1)[-1], part, cube) for i, part, cube in parts],
        "file string, part string, cube string",
    )
    read = snapshot.dataframe(files)
    rows = read.select(
        F.struct(*(column(name) for name in snapshot.schema.fieldNames())).alias("row"),
        file_metadata(read).getField("file_name").alias("file"),
    )
    each = (
        rows.join(F.broadcast(listed), "file")
        .groupBy("row", "part", "cube")
        .agg(F.count(F.lit(1)).alias("times"))
    )

    def times(part: str) -> Column:
        # More than one cube for copies only: a row stands in one on each level above its own.
        return F.coalesce(F.max(F.when(F.col("part") == part, F.col("times"))), F.lit(0)).alias(
            part
        )

    missing = F.when(F.col("other") == 0, F.col("copy") - F.col("counts")).otherwise(0)
    doubtful = (F.col("other") > 1) | (F.col("counts") > 0) | (F.col("copy") > 0)
    found = (
        each.groupBy("row")
        .agg(times("copy"), times("counts"), times("other"))
        .agg(
            F.sum(F.greatest(missing, F.lit(0))).alias("lost"),
            F.sum(F.when(doubtful, F.col("other")).otherwise(0)).alias("unclear"),
        )
        .head()
    )
    assert found is not None  # an aggregate without groups has one row
    return {name: found[name] or 0 for name in ("lost", "unclear")}


def _retags(index: TableIndex, survey: _Survey) -> dict[int, dict[str, str]]:
    """The new tags of the files that stay as they are."""
    retags: dict[int, dict[str, str]] = {i: {} for i in survey.lost}
    for revision_id, files in survey.counting.items():
        if revision_id in survey.copies:
            continue
        blocks = {i: [block] for i, block in files.items() if block is not None}
        revision = index.configuration.revisions[revision_id]
        live = [*index.blocks_of(revision), *(block for held in blocks.values() for block in held)]
        if blocks:
            # None in a table that was only written to: its tree has all levels, weights rising.
            weights = OTree.of(live, revision.dimensions).weights
            next(iter(blocks.values())).extend(missing_anchors(live, weights))
        retags |= {i: file_tags(revision_id, blocks[i]) if i in blocks else {} for i in files}
    return retags


def _rewrite(table: WritableTable, survey: _Survey, stored: Mapping[str, str]) -> list[StagedFile]:
    """Write the rows that count, of the revisions with copies, and store the configuration."""
    known = replace(KnownIndex.of(table), stored=stored)
    planned_writes = []
    for revision_id in sorted(survey.copies):
        files = np.array(list(survey.counting.get(revision_id, ())), dtype=np.int64)
        rows = table.snapshot.dataframe(files)
        revision = known.configuration.revisions[revision_id]
        index = _RecordedLater.of(known, revision, removed=files)
        writer = IndexWriter(table, replace(index, keeps_weights=False))
        statistics = writer.measure(rows)
        if not statistics.rows:
            continue
        planned = writer.plan_write(rows.schema, statistics)
        planned_writes.append((writer, rows, planned))
        # Another revision where the bounds of dates are off by the old writer's time zone.
        if planned.tree.revision is not revision:
            known = known.with_revision(planned.tree.revision, {})
    if known.stored != table.snapshot.configuration:
        known.store(table.transaction)
    return [
        staged
        for writer, rows, planned in planned_writes
        for staged in writer.write(rows, planned).staged
    ]


class _RecordedLater(JoinedIndex):
    """One of several indexes whose revisions the table gets together.

    Delta changes a table's metadata once in a transaction, and not after files are written.
    """

    def record(self, *_: object) -> None:
        pass
