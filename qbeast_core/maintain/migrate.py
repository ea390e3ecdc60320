"""Migrate tables of qbeast-spark 0.2 to 0.5 to the current tags (docs/format.md 10).

If no cube was ever replicated or announced, the tags of a file become its single block, and no data
file is rewritten. Otherwise the table has files that contain only copies of rows, and the files
with original rows lack the upper levels of the tree. Then one commit rewrites the original rows and
removes all files of the revision. Before that, every row of a copied file is verified to be a copy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from qbeast_core.counts import counted
from qbeast_core.delta.operations import Operation
from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.delta.staged import StagedFile
from qbeast_core.errors import IncompatibleTable, NotAQbeastTable
from qbeast_core.jvm.failures import typed_errors
from qbeast_core.locate.address import DELTA, address_of_text
from qbeast_core.locate.compatibility import check_own_files, check_removable, check_supported
from qbeast_core.locate.open_table import OpenTable, WritableTable
from qbeast_core.locate.retry import until_committed
from qbeast_core.model.block import Block, file_tags
from qbeast_core.model.legacy import (
    CUBE_TAG,
    current_blocks,
    has_legacy_tags,
    parse_legacy_tags,
    parse_revision_id,
    parse_state,
    replicated_revisions,
    without_replicated_sets,
)
from qbeast_core.model.revision import IndexConfiguration, Revision
from qbeast_core.spark.columns import column, file_metadata
from qbeast_core.spark.grouping import grouped
from qbeast_core.tree.anchors import missing_anchors
from qbeast_core.tree.otree import OTree
from qbeast_core.write.existing_index import ExistingIndex
from qbeast_core.write.files import check_none_lost, write_planned
from qbeast_core.write.index_metadata import IndexMetadata
from qbeast_core.write.writer import IndexWriter


@dataclass(frozen=True)
class MigrateResult:
    """The result of a migration or of its dry run, in files and rows."""

    version: int
    """The table's version afterwards."""
    changed: bool = False
    """Whether there was anything to migrate."""
    files_retagged: int = 0
    """Files that only got new tags."""
    files_unindexed: int = 0
    """Those of the retagged files whose old tags were invalid; they now count as not indexed."""
    files_removed: int = 0
    files_added: int = 0
    """0 in a dry run."""
    rows_rewritten: int = 0
    copies_dropped: int = 0
    """Copies of rows that plain readers of the table returned as additional rows before."""
    dry_run: bool = False

    def __str__(self) -> str:
        if not self.changed:
            return "nothing in the old format"
        would = "would be " if self.dry_run else ""
        parts = [f"{counted(self.files_retagged, 'file')} {would}retagged"]
        if self.files_unindexed:
            parts.append(
                f"{self.files_unindexed:,} of them without an index because of invalid tags"
            )
        if self.files_removed:
            parts.append(
                f"{counted(self.rows_rewritten, 'row')} of {counted(self.files_removed, 'file')} "
                f"{would}rewritten, {self.copies_dropped:,} copies of rows {would}dropped"
            )
        return "; ".join(parts)


@typed_errors
def migrate_format(spark: SparkSession, table: str, dry_run: bool = False) -> MigrateResult:
    """Migrate a table of qbeast-spark 0.2 to 0.5 to the current format, in one commit.

    A table without files in the old format is not changed, so a second call does nothing. Unless
    the commit's state is unknown, an error leaves the table unchanged.

    Args:
        spark: a Spark session with Delta Lake.
        table: a name as `schema.table`, or a path as `/path` or ``delta.`/path` ``.
        dry_run: report what would be done, or raise the error that would be raised, without
            writing. If cubes were replicated, a dry run reads the rows too.

    Returns:
        The files and rows that were migrated, or would be.

    Raises:
        NotAQbeastTable: there is no such table, or it has no index.
        IncompatibleTable: the table's copies of rows cannot be told from its original rows, or it
            has features that an indexed write cannot maintain, or files outside its directory.
        CorruptMetadata: the index metadata in the table's configuration cannot be parsed.
        CommitVetoed: a commit hook refused the commit.
        CommitConflict: other writers changed the table during every attempt.
        CommitStateUnknown: the commit may have been written; the message says how to find out.
    """
    address = address_of_text(spark, table)
    if address.format != DELTA:
        raise NotAQbeastTable(
            f"{address.label} is not a Delta table; name a Delta table that qbeast-spark wrote"
        )

    return until_committed(
        address.label, lambda: _migrate(WritableTable.begin(spark, address), dry_run)
    )


@dataclass(frozen=True)
class _Survey:
    """The files in the old format, by revision."""

    counting: Mapping[int, Mapping[int, Block | None]]
    """The block of each file with original rows; None if its tags are not valid."""
    copies: Mapping[int, Mapping[int, str]]
    """The cube of each file that contains only copies, according to its tags."""
    lost: Sequence[int]
    """Files with original rows of a revision that the table does not have."""

    @property
    def files(self) -> list[int]:
        groups = [*self.counting.values(), *self.copies.values()]
        return sorted([*self.lost, *(i for group in groups for i in group)])


def _migrate(table: WritableTable, dry_run: bool) -> MigrateResult:
    snapshot = table.snapshot
    if not snapshot.exists:
        raise table.not_found_error
    # Also raises for a table without a readable index.
    table.index.check_columns_exist(table.label)
    survey = _survey(table)
    properties = without_replicated_sets(snapshot.configuration)
    if not survey.files and properties == snapshot.configuration:
        return MigrateResult(snapshot.version, dry_run=dry_run)
    check_supported(table)
    check_own_files(table)
    if survey.copies:
        check_removable(table)
    replicated = replicated_revisions(snapshot.configuration) | survey.copies.keys()
    for revision_id in sorted(replicated):
        _prove_copies(table, survey, revision_id)

    removed = [
        i for id_ in survey.copies for i in (*survey.copies[id_], *survey.counting.get(id_, ()))
    ]
    retags = _retags(table, survey)
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
    written = _rewrite(table, survey, properties)
    version = table.transaction.commit(
        Operation.MIGRATE, written, np.array(removed, dtype=np.int64), retags=retags
    )
    return replace(result, version=version, files_added=len(written))


def _survey(table: OpenTable) -> _Survey:
    """Sort the files in the old format. Raises IncompatibleTable if the state of one is unclear."""
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
                f"{table.label} cannot be migrated: it is unknown whether the rows of {file.path} "
                f"are copies of other rows, because {problem}. Repair or remove that file, or "
                "write the correct rows to a new table"
            ) from None
        revision = _revision_of(table.configuration, file.tags)
        if state.is_copy:
            if revision is None:
                raise IncompatibleTable(
                    f"{table.label} cannot be migrated: {file.path} is tagged as copies of rows of "
                    f"revision {file.tags.get('revision')!r}, which the table does not have. "
                    "Restore a version that has this revision, or write the correct rows to a new "
                    "table"
                )
            copies[revision.revision_id][i] = file.tags.get(CUBE_TAG, "")
        elif revision is None:
            lost.append(i)
        else:
            block = _block_of(file.tags, file.stored_row_count, revision)
            counting[revision.revision_id][i] = block
    return _Survey(counting, copies, lost)


def _revision_of(configuration: IndexConfiguration, tags: Mapping[str, str]) -> Revision | None:
    """The revision of a file; None if the table does not have it."""
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
    """Raise IncompatibleTable unless dropping the copies of a revision loses no row.

    The old optimize copied each row of a cube once for each level below it. So a row cannot occur
    more often in the copied files of one cube than in the files with original rows. Files that lost
    their tags to another writer can have original rows or copies; a row is only known to be
    original if it occurs nowhere else.
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
            f"revision {revision_id} that should contain nothing but copies, and would be lost. "
            "Restore a version in which no row is missing, or write the correct rows to a new table"
        )
    if verdict["unclear"]:
        raise IncompatibleTable(
            f"{table.label} cannot be migrated: cubes of revision {revision_id} were replicated, "
            f"and another writer removed the old tags of files with {verdict['unclear']} rows that "
            "have duplicates; it cannot be determined whether they are copies. Restore the version "
            "before that write and migrate it, or write the correct rows to a new table"
        )


def _verdict(snapshot: TableSnapshot, parts: Sequence[tuple[int, str, str]]) -> Mapping[str, int]:
    """Count the rows that would be lost, and those that may or may not be copies.

    Args:
        parts: the index, the part (`copy`, `counts` or `other`) and the cube of each file.

    Returns:
        The counts `lost` and `unclear`.
    """
    files = np.array([i for i, _, _ in parts], dtype=np.int64)
    listed = snapshot.spark.createDataFrame(
        [(snapshot.files[i].name, part, cube) for i, part, cube in parts],
        "file string, part string, cube string",
    )
    read = snapshot.dataframe(files)
    rows = read.select(
        F.struct(*(column(name) for name in snapshot.schema.fieldNames())).alias("row"),
        file_metadata(read).getField("file_name").alias("file"),
    )
    each = grouped(
        rows.join(F.broadcast(listed), "file"),
        [F.col("row"), F.col("part"), F.col("cube")],
        F.count(F.lit(1)).alias("times"),
    )

    def times(part: str) -> Column:
        # Only copies occur in more than one cube: in one on each level above the row's own.
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


def _retags(table: OpenTable, survey: _Survey) -> dict[int, dict[str, str]]:
    """The new tags of the files that are not rewritten."""
    index, files_in_log = table.index, table.snapshot.files
    retags: dict[int, dict[str, str]] = {i: {} for i in survey.lost}
    for revision_id, files in survey.counting.items():
        if revision_id in survey.copies:
            continue
        # The old compaction, unlike a write, left no statistics.
        blocks = {
            i: current_blocks(block, is_written_whole=bool(files_in_log[i].stats))
            for i, block in files.items()
            if block is not None
        }
        revision = index.configuration.revisions[revision_id]
        live = [*index.blocks_of(revision), *(block for held in blocks.values() for block in held)]
        if blocks:
            # A table that was only appended to needs no anchors: its tree has all levels, and
            # weights rise with depth.
            weights = OTree.of(live, revision.dimensions).weights
            next(iter(blocks.values())).extend(missing_anchors(live, weights))
        retags |= {i: file_tags(revision_id, blocks[i]) if i in blocks else {} for i in files}
    return retags


def _rewrite(
    table: WritableTable, survey: _Survey, properties: Mapping[str, str]
) -> list[StagedFile]:
    """Rewrite the original rows of the revisions with copies, and store the configuration."""
    metadata = replace(IndexMetadata.of(table), properties=properties)
    planned_writes = []
    for revision_id in sorted(survey.copies):
        files = np.array(list(survey.counting.get(revision_id, ())), dtype=np.int64)
        rows = table.snapshot.dataframe(files)
        revision = metadata.configuration.revisions[revision_id]
        index = _RecordedLater.of(metadata, revision, removed=files, keeps_weights=False)
        writer = IndexWriter(table, index)
        statistics = writer.measure(rows)
        check_none_lost(statistics.rows, table.snapshot.row_count_in_log(files))
        if not statistics.rows:
            continue
        planned = writer.plan_write(rows.schema, statistics)
        planned_writes.append((rows, planned))
        # A new revision is needed if the old writer's time zone shifted the bounds of dates.
        if planned.tree.revision is not revision:
            metadata = metadata.with_revision(planned.tree.revision, {})
    if metadata.properties != table.snapshot.configuration:
        metadata.store(table.transaction)
    return [
        staged
        for rows, planned in planned_writes
        for staged in write_planned(table.transaction, rows, planned).staged
    ]


class _RecordedLater(ExistingIndex):
    """One of several indexes whose revisions are stored together.

    Delta allows one change of metadata per transaction, before files are written.
    """

    def record(self, *_: object) -> None:
        pass
