"""An optimistic transaction: it writes files first, then commits everything at once."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from qbeast_core import failpoints, hooks, phases
from qbeast_core.delta.application import ApplicationTransaction
from qbeast_core.delta.commit import Commit
from qbeast_core.delta.metadata import fields_of, names_in_files, snapshot_with
from qbeast_core.delta.metadata_change import MetadataChange
from qbeast_core.delta.operations import Operation, delta_operation
from qbeast_core.delta.snapshot import DataFile, FileChanges, TableSnapshot, delta_log_of
from qbeast_core.delta.spark_cache import refresh_cached
from qbeast_core.delta.staged import StagedFile, StagedFiles
from qbeast_core.delta.statistics import (
    MICROSECONDS,
    MILLISECONDS,
    TIMESTAMPS_KEY,
    LateStatistics,
)
from qbeast_core.hooks import CommitFile, CommitNote, PendingCommit
from qbeast_core.jvm.background import in_background
from qbeast_core.jvm.gateway import Jvm, activate
from qbeast_core.jvm.settings import is_set, session_with, setting
from qbeast_core.model.datatypes import now_millis
from qbeast_core.spark.alignment import with_voids

logger = logging.getLogger(__name__)

_DELTA = "org.apache.spark.sql.delta."
_ACTIONS = _DELTA + "actions."
_TRANSACTION = _DELTA + "OptimisticTransaction"
_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_COUNT_ALL_FILES = {"spark.databricks.delta.incremental.commit.enabled": "false"}
"""Without it, Delta's checksum counts a file twice that gets new tags, and checkpoints fail."""
_TIMESTAMPS_IN_V2 = "spark.databricks.delta.table.parquetV2.timestampOutputType"
"""What counts instead of Spark's setting if `delta.parquet.format.version` is 2.12.0 or higher."""
_DICTIONARY = "parquet.enable.dictionary"
_SKIPPED_INSIDE = {
    # Parquet has no statistics for the 96-bit timestamps that Spark writes by default.
    TIMESTAMPS_KEY: MICROSECONDS,
    # Readers skip whole pages, which have 20,000 rows by default.
    "parquet.page.row.count.limit": "5000",
}
"""Settings for writing files with sorted rows, so that range filters skip most of their pages."""


class Transaction:
    """A transaction on the table at one location; nothing is visible until `commit`."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._jvm = Jvm(spark)
        self._delta_log = delta_log_of(spark, location)
        self._txn = self._delta_log.startTransaction()
        self._spark = spark
        self._other_actions: list[Any] = []
        self._application: ApplicationTransaction | None = None
        self._schema_of_files = ""
        self.snapshot = TableSnapshot(spark, self._delta_log, self._txn.snapshot())
        self.metadata = MetadataChange(self._jvm, self._txn, self.snapshot)

    @contextmanager
    def pinned_reads(self) -> Iterator[None]:
        """Inside the block, this thread reads every Delta table at the version that it first saw.

        Delta does this for the source tables of its own commands. Here it makes a query that is
        evaluated twice see the same rows.
        """
        transactions = self._jvm.singleton(_TRANSACTION)
        try:
            transactions.setActive(self._txn)
            yield
        finally:
            transactions.clearActive()

    def claim(self, application: ApplicationTransaction | None) -> bool:
        """Record the application's transaction, if there is one, with the commit.

        The commit then conflicts with every commit that records another transaction of the
        application.

        Returns:
            False, and records nothing, if the table already has it or a later one.
        """
        if application is None:
            return True
        recorded = int(self._txn.txnVersion(application.app_id))
        if recorded < application.version:
            self._application = application
            return True
        logger.info(
            "Transaction %d of the application %r is skipped, because %s already has number %d",
            application.version,
            application.app_id,
            self.snapshot.location,
            recorded,
        )
        application.done_in(self._spark)
        return False

    @property
    def changes_more_than_rows(self) -> bool:
        """Whether there is something to commit even without files."""
        return self._application is not None or self.metadata.changes_schema

    def write_files(
        self, df: DataFrame, expected_rows: int, without_dictionary: Iterable[str] = ()
    ) -> StagedFiles:
        """Write each partition of `df` to one file, or to several if Spark splits it.

        Args:
            expected_rows: the approximate number of rows, which decides how statistics are
                collected.
            without_dictionary: columns whose values rarely repeat within a file.
        """
        self.metadata.store_merged_columns()
        late = LateStatistics(self._jvm, self._delta_log, self._txn, expected_rows)
        prepared = in_background(self._spark, late.prepare) if late.pending else None
        staged = self._written(df, late, without_dictionary)
        described = None
        if prepared is not None:
            described = in_background(self._spark, self._with_footers, staged, late, prepared)
        failpoints.reach(failpoints.FILES_WRITTEN)
        return StagedFiles(tuple(staged), described)

    def _written(
        self, df: DataFrame, late: LateStatistics, without_dictionary: Iterable[str]
    ) -> list[StagedFile]:
        fields = fields_of(self._txn.metadata())
        self._schema_of_files = fields["schemaString"]
        stored = names_in_files(fields)
        wanted = _SKIPPED_INSIDE | {
            f"{_DICTIONARY}#{stored.get(column, column)}": "false" for column in without_dictionary
        }
        chosen = {k: v for k, v in wanted.items() if not is_set(self._spark, k)}
        chosen |= _whole_timestamps(self._spark)
        with late.deferred(), session_with(self._spark, chosen | late.settings) as copy:
            written = self._write_in_session(copy, df)
        self.metadata.follows_files = True
        staged, change_files = self._split_actions(written)
        self._other_actions += change_files
        return staged

    def _write_in_session(self, session: Any, df: DataFrame) -> Any:
        """Delta's actions for the files that it writes from these rows."""
        rows = self._jvm.in_session(session, df)
        # isOptimize prevents Delta from shuffling again and from compacting after the commit.
        return self._txn.writeFiles(rows, self._jvm.none, True, self._jvm.seq([]))

    def _split_actions(self, written: Any) -> tuple[list[StagedFile], list[Any]]:
        """Separate the table's data files from Delta's actions for its change data feed."""
        staged, change_files = [], []
        for position, entry in enumerate(json.loads(self._jvm.json_of(written))):
            # Of the two kinds of action, only `AddFile` has a modification time.
            if "modificationTime" in entry:
                staged.append(StagedFile(entry))
            else:
                change_files.append(written.apply(position))
        return staged, change_files

    def _with_footers(
        self, staged: Sequence[StagedFile], late: LateStatistics, prepared: Future[None]
    ) -> list[StagedFile]:
        prepared.result()
        if not staged:
            return []
        statistics = late.added_to(self._adds(staged), [file.action for file in staged])
        return [file.described(stats) for file, stats in zip(staged, statistics, strict=True)]

    def read_staged(self, files: Sequence[StagedFile]) -> DataFrame:
        """The rows of files that this transaction wrote."""
        as_committed = snapshot_with(self._jvm, self._delta_log, self._txn.metadata())
        rows = self._jvm.dataframe(
            self._delta_log.createDataFrame(as_committed, self._adds(files), False, self._jvm.none)
        )
        schema = StructType.fromJson(json.loads(self._schema_of_files))
        return with_voids(rows, schema, self.snapshot.location)

    def track_reads(self, indices: np.ndarray[Any, Any]) -> None:
        """Declare that the commit depends on these files, so that it fails if one is removed."""
        self._txn.trackFilesRead(self.snapshot.add_actions(indices))

    def read_whole_table(self) -> None:
        """Declare that the commit depends on the table's complete set of rows."""
        self._txn.readWholeTable()

    def write_change_feed(self, df: DataFrame) -> None:
        """Write rows to the change data feed; they have the column `_change_type`."""
        self.metadata.store_merged_columns()
        with session_with(self._spark, _whole_timestamps(self._spark)) as copy:
            written = self._write_in_session(copy, df)
        self._other_actions += self._split_actions(written)[1]

    def commit(
        self,
        operation: Operation,
        adds: Sequence[StagedFile],
        removes: np.ndarray[Any, Any] | None = None,
        user_metadata: str | None = None,
        *,
        retags: Mapping[int, Mapping[str, str]] | None = None,
        predicate: str | None = None,
        metrics: Mapping[str, int] | None = None,
    ) -> int:
        """Commit everything at once and return the new version.

        Args:
            operation: it also determines `dataChange`, which is false only for OPTIMIZE.
            adds: files written by `write_files`, with their tags.
            removes: indices into `snapshot.files` of the files to remove.
            retags: new tags for files that stay, by their index.
            predicate: a SQL condition to show in the table's history.
            metrics: numbers to show in the table's history. Delta's change data feed also relies
                on them when they say that a merge changed nothing.

        Raises:
            CommitVetoed: a commit hook refused it; nothing was written.
            InvalidOptions: commit hooks returned something that cannot be stored.
            CommitStateUnknown: the change may be committed, now or later.
            Any other exception is Delta's own, and nothing was written. Use
            `conflicts.is_commit_conflict` to find out whether another writer committed first.
        """
        phases.enter(phases.COMMITTING)
        failpoints.reach(failpoints.BEFORE_COMMIT)
        self.metadata.store_merged_columns()
        data_change = operation is not Operation.OPTIMIZE
        retagged = self._retagged(retags or {})
        retagged_adds = self._adds(retagged, data_change=False)
        added = self._adds(adds, data_change).appendedAll(retagged_adds)
        removed_files = frozenset([] if removes is None else removes.tolist())
        change = FileChanges(
            removed=removed_files.union(retags or ()),
            files=[staged.file for staged in (*adds, *retagged)],
            adds=added,
        )
        note = CommitNote(user_metadata=user_metadata)
        if hooks.is_awaited():
            only_removed = removed_files.difference(retags or ())
            note = self._consult(operation, adds, only_removed, user_metadata)
        millis = now_millis()
        remember_files = self.snapshot.prepare_next_files(change)
        removals = self._removals(removed_files, data_change, millis)
        if metrics:
            self._register(metrics)
        jvm_operation = delta_operation(
            self._jvm, operation, note.user_metadata, predicate, self.metadata.new_properties
        )
        # Only write operations accept the user metadata; for the others, Delta has a setting.
        settings = {} if note.user_metadata is None else {_USER_METADATA: note.user_metadata}
        if retagged:
            settings |= _COUNT_ALL_FILES
        done = [] if self._application is None else [self._application.action(self._jvm, millis)]
        others = self._jvm.seq([*self.metadata.actions, *self._other_actions, *done])
        actions = added.appendedAll(others).appendedAll(removals)
        commit = Commit(self.snapshot, self._delta_log, self._txn, jvm_operation)
        version = commit.make(
            actions, settings, self._jvm.scala_map(note.tags) if note.tags else None
        )
        failpoints.reach(failpoints.AFTER_COMMIT)
        remember_files(version)
        if self._application is not None:
            self._application.done_in(self._spark)
        if data_change:
            refresh_cached(self._jvm, self.snapshot.location, self._unpinned())
        return version

    def _consult(
        self,
        operation: Operation,
        adds: Sequence[StagedFile],
        removed: frozenset[int],
        user_metadata: str | None,
    ) -> CommitNote:
        """Ask the hooks about the commit. Raises CommitVetoed, InvalidOptions."""
        pending = PendingCommit(
            operation=operation.name.lower(),
            location=self.snapshot.location,
            read_version=self.snapshot.version,
            added=tuple(_as_commit_file(staged.file) for staged in adds),
            removed=tuple(_as_commit_file(self.snapshot.files[i]) for i in sorted(removed)),
            user_metadata=user_metadata,
        )
        # A hook reads the newest version of other tables, and can write to them.
        with self._unpinned():
            return hooks.run_commit_hooks(pending)

    @contextmanager
    def _unpinned(self) -> Iterator[None]:
        """Inside the block, `pinned_reads` has no effect."""
        transactions = self._jvm.singleton(_TRANSACTION)
        is_pinned = transactions.getActive().isDefined()
        if is_pinned:
            transactions.clearActive()
        try:
            yield
        finally:
            activate(self._spark)
            if is_pinned:
                transactions.setActive(self._txn)

    def _retagged(self, retags: Mapping[int, Mapping[str, str]]) -> list[StagedFile]:
        if not retags:
            return []
        kept = self.snapshot.add_actions(np.array(list(retags), dtype=np.int64))
        # Otherwise, Delta does not notice if another writer removes a file that is added again.
        self._txn.trackFilesRead(kept)
        return [
            StagedFile(action).tagged(tags)
            for action, tags in zip(
                json.loads(self._jvm.json_of(kept)), retags.values(), strict=True
            )
        ]

    def _removals(self, indices: frozenset[int], data_change: bool, millis: int) -> Any:
        """The actions, a Scala Seq, that remove the files at these indices."""
        if not indices:
            return self._jvm.seq([])
        files = self.snapshot.add_actions(np.array(sorted(indices), dtype=np.int64))
        java = self._jvm.jvm.java.lang
        arguments = [(java.Long.TYPE, millis), (java.Boolean.TYPE, data_change)]
        return self._jvm.each(files, _ACTIONS + "AddFile", "removeWithTimestamp", arguments)

    def _register(self, metrics: Mapping[str, int]) -> None:
        context = self._jvm.session.sparkContext()
        registered = {}
        for name, value in metrics.items():
            metric = self._jvm.jvm.org.apache.spark.sql.execution.metric.SQLMetrics.createMetric(
                context, name
            )
            metric.set(value)
            registered[name] = metric
        self._txn.registerSQLMetrics(self._jvm.session, self._jvm.scala_map(registered))

    def _adds(self, files: Sequence[StagedFile], data_change: bool = True) -> Any:
        """The files' actions in Delta's own form, a Scala Seq."""
        entries = [{**file.action, "dataChange": data_change} for file in files]
        return self._jvm.seq_of(_ACTIONS + "AddFile", entries)


def _whole_timestamps(spark: SparkSession) -> Mapping[str, str]:
    """The settings that keep files from cutting timestamps off to milliseconds.

    Weights and slices are computed from the rows before they are stored, and samples compute the
    weights of what is stored.
    """
    cuts = is_set(spark, TIMESTAMPS_KEY) and setting(spark, TIMESTAMPS_KEY) == MILLISECONDS
    settings = {TIMESTAMPS_KEY: MICROSECONDS} if cuts else {}
    if spark.conf.get(_TIMESTAMPS_IN_V2, None) == MILLISECONDS:
        settings[_TIMESTAMPS_IN_V2] = MICROSECONDS
    return settings


def _as_commit_file(file: DataFile) -> CommitFile:
    return CommitFile(file.path, file.size_bytes, file.rows, MappingProxyType(dict(file.tags)))
