"""Write a DataFrame into an indexed table: one evaluation of its rows, one commit."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from qbeast_core import failpoints
from qbeast_core.delta.metadata import COLUMN_MAPPING_KEY
from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.delta.transaction import Operation, Transaction
from qbeast_core.errors import InvalidOptions, NotAQbeastTable, SampleWarning
from qbeast_core.index import TableIndex
from qbeast_core.model.block import Block
from qbeast_core.model.revision import IndexConfiguration, Revision
from qbeast_core.model.transformer import Transformer
from qbeast_core.operations.compatibility import check_writable
from qbeast_core.operations.destination import RELATION_KEY, Destination, resolve_destination
from qbeast_core.operations.index_options import IndexOptions
from qbeast_core.operations.indexing import NO_FILES, IndexedFiles, Outgrown, write_indexed
from qbeast_core.operations.measuring import measure
from qbeast_core.operations.one_file import suits, write_one_file
from qbeast_core.operations.placing import TreePlan, plan_tree
from qbeast_core.operations.rebuild import REBUILD_KEY, may_go_by_tree, plan_by_tree, rebuild_key
from qbeast_core.operations.retry import until_committed
from qbeast_core.operations.revisions import (
    COLUMN_STATS_KEY,
    CUBE_SIZE,
    check_sample_key,
    check_slices,
    chosen_automatically,
    continued_revision,
    continued_transformers,
    first_revision,
    is_index_key,
    option_keys,
    slices_key,
    stored_keys,
)
from qbeast_core.operations.sample_warning import sample_warnings
from qbeast_core.operations.sizing import automatic_cube_size, outgrown_cube_size
from qbeast_core.options import AUTO, IndexedColumn, WriteMode, resolve_columns
from qbeast_core.spark.evaluation import evaluated_once
from qbeast_core.spark.schema import cast_to, nullable
from qbeast_core.spark.slices import has_slice_column, own_rows, with_slices
from qbeast_core.spark.statistics import InputStatistics
from qbeast_core.tree.column_choice import ColumnChoice

# Parquet columns may not have these in their names unless Delta maps them to others.
_NEED_COLUMN_MAPPING = set(" ,;{}()\n\t=")


@dataclass(frozen=True)
class WriteResult:
    """What a write did."""

    version: int
    """The table's version after it."""
    revision_id: int
    rows: int
    cubes: int
    """Cubes that rows of this write went to."""
    files: int
    bytes: int
    seconds: float
    mode: WriteMode
    """APPEND if the table's earlier rows are still there, else OVERWRITE."""
    new_revision: bool
    column_choice: ColumnChoice | None = None
    """Which columns `auto` chose in this write, and why; None where it chose none."""
    warnings: tuple[str, ...] = ()
    """What the user should know of the table's samples."""

    def __str__(self) -> str:
        chosen = f"; {self.column_choice}" if self.column_choice else ""
        return (
            f"{self.rows:,} rows in {self.cubes:,} cubes, {self.files:,} files, "
            f"revision {self.revision_id}{chosen}"
        )


def write_table(
    df: DataFrame,
    *,
    table: str | None = None,
    path: str | None = None,
    mode: str = "append",
    columns_to_index: str | Sequence[str] | None = None,
    cube_size: int | str = AUTO,
    column_stats: str | Mapping[str, Any] | None = None,
    sample_key: str | Sequence[str] | None = None,
    slices: bool | None = None,
    properties: Mapping[str, str] | None = None,
    comment: str | None = None,
    location: str | None = None,
    user_metadata: str | None = None,
    rechoose: bool = False,
    issue_warnings: bool = True,
) -> WriteResult:
    """Write the rows of `df`, indexed, in a single Delta commit.

    Args:
        df: the rows. Its query counts as evaluated once, also if it has `rand()` or a limit.
        table, path: where to; exactly one of them. A name that the catalog does not know yet is
            registered after the commit.
        mode: `append` (creates a missing table), `overwrite` (replaces rows, schema and index, and
            keeps the history), `error` or `ignore` if the table exists.
        columns_to_index: as in `["ts", "user_id:hash"]` or `"ts,user_id:hash"`, at most 8. Needed
            for a new table; an append may repeat them and cannot change them. Kinds are `linear`,
            `hash` and `quantiles`. `"auto"` chooses the columns that prune best, at most three, or
            two with `"auto:2"`; they stay until a rebuild with `rechoose`.
        cube_size: rows per cube and about rows per file, or `auto`. On append, a number other than
            the table's opens a new revision, and `auto` keeps the table's; only where that was
            chosen by `auto` too and the table has outgrown it eight times, one is opened.
        column_stats: what is known of indexed columns beforehand, by column: `{"min": 0, "max": 9}`
            lets a linear one start with a wider range than its rows have (appends within it need no
            new revision), `{"quantiles": [0, 5, 100]}` gives those of a column indexed by
            quantiles, which are measured otherwise. Also as the format's JSON text,
            `{"price_min": 0, "price_max": 9}`. Dates and timestamps are texts, in UTC.
        sample_key: the columns whose hash decides in which samples a row is, as `["order_id"]` or
            `"order_id,line"`, or `all`; without it, the indexed columns. Tables with the same key
            are sampled alike, so that their samples join. It is fixed until a rebuild.
        slices: whether the table gets a last column `_qbeast_slice`, by which any engine samples:
            `_qbeast_slice >= 7` keeps 1 / 2^7 of the rows. Not without being asked for. It is fixed
            until a rebuild. A column of that name in the rows of a table that has it is left out.
        properties: table properties. On overwrite they replace all properties but the index's own;
            None keeps those that the table has. An append ignores them.
        comment: the table's description, for a new or replaced table. On overwrite None keeps the
            one that the table has, and an empty text removes it.
        location: where a new table of that name is to lie; it is then external.
        user_metadata: text for the commit's `userMetadata` in the table's history.
        rechoose: whether a rebuild chooses automatic columns anew.
        issue_warnings: whether Python's `warnings` tell what the result's `warnings` say too.

    Where rows share their weights in large groups, so that samples say little, a new or rebuilt
    table issues a `SampleWarning`.

    Raises:
        InvalidOptions: an option is wrong (also UnknownColumn, UnsupportedColumnType).
        IndexMismatch: an append asks for other columns, another sample key or other slices than
            the table has.
        NotAQbeastTable: an append to a Delta table without an index.
        IncompatibleTable: the table has features that a write would break.
        SourceChanged: the rows changed while they were written.
        CommitConflict: other writers came first on every attempt.
        In every case the table is as it was.
    """
    started = time.monotonic()
    spark = df.sparkSession
    write = TableWrite(
        destination=resolve_destination(
            spark, table=table, path=path, location=location, comment=comment
        ),
        mode=WriteMode.parse(mode),
        options=IndexOptions.parse(
            columns_to_index, cube_size, column_stats, sample_key, slices, rechoose
        ),
        properties=properties,
        user_metadata=user_metadata,
        started=started,
    )
    given = write.own_rows(df)
    checked = write.begin()
    skipped = write.check(checked.snapshot, given.schema)
    if skipped is not None:
        return skipped
    # The log is not read again for the first attempt.
    transactions = chain([checked], iter(write.begin, None))
    try:
        result = until_committed(
            write.destination.label, lambda: write.in_one_pass(next(transactions), given)
        )
    except Outgrown as outgrown:
        given, result = write.own_rows(outgrown.rows), None
    if result is None:
        with evaluated_once(given, read_first=lambda: write.measured_columns(given)) as rows:
            result = until_committed(write.destination.label, lambda: write.attempt(rows))
    for warning in result.warnings if issue_warnings else ():
        warnings.warn(warning, SampleWarning, stacklevel=2)
    return result


@dataclass(frozen=True)
class TableWrite:
    """One write of a table, its options checked."""

    destination: Destination
    mode: WriteMode
    options: IndexOptions
    properties: Mapping[str, str] | None
    user_metadata: str | None
    started: float

    def own_rows(self, given: DataFrame) -> DataFrame:
        """The rows without a column that the table computes, or computed before."""
        if not has_slice_column(given):
            return given
        snapshot = TableSnapshot.load(self.destination.spark, self.destination.location)
        return own_rows(given, snapshot.stores_slices or self.options.slices is True)

    def begin(self) -> Transaction:
        """A transaction on the table's present state, which this write may change."""
        transaction = Transaction(self.destination.spark, self.destination.location)
        self.destination.check_adoptable(transaction.snapshot)
        if self._appends(transaction.snapshot):
            check_writable(transaction.snapshot, self.destination.label)
        return transaction

    def check(self, snapshot: TableSnapshot, schema: StructType) -> WriteResult | None:
        """Find what would fail before anything is computed; a result if nothing is to be done."""
        if self._has_table(snapshot) and self.mode is WriteMode.ERROR:
            raise InvalidOptions(
                f"{self.destination.label} exists; use mode 'append' or 'overwrite'"
            )
        if self._has_table(snapshot) and self.mode is WriteMode.IGNORE:
            last = IndexConfiguration.read(snapshot.configuration).last_revision_id or 0
            return self._result(snapshot.version, last, WriteMode.APPEND)
        if self._appends(snapshot):
            self.options.stats_of(self._transformers_of(snapshot)[1])
        else:
            self.options.check_new(snapshot, schema)
        return None

    def measured_columns(self, given: DataFrame) -> tuple[str, ...]:
        """The columns that the rows are measured by before they are written; none for all."""
        snapshot = self.begin().snapshot
        if self._appends(snapshot):
            current, transformers = self._transformers_of(snapshot)
            key = current.sample_key
        else:
            columns = self.options.known_columns(snapshot, given.schema)
            if columns is None:
                return ()
            transformers = resolve_columns(columns, given.schema)
            key = self.options.new_sample_key(snapshot, given.schema)
        measured = {name.lower() for name in (*key, *(each.column for each in transformers))}
        # An append may lack some of them.
        return tuple(name for name in given.columns if name.lower() in measured)

    def attempt(self, rows: DataFrame) -> WriteResult:
        """Try once, from the table's present state."""
        transaction = self.begin()
        with transaction.pinned_reads():
            if self._appends(transaction.snapshot):
                return self._append(transaction, rows)
            return self.create(transaction, rows, nullable(rows.schema))

    def create(self, transaction: Transaction, rows: DataFrame, schema: StructType) -> WriteResult:
        """Write a new table, or all of an existing one anew, with the schema of its rows."""
        snapshot = transaction.snapshot
        columns, choice = self.options.new_columns(snapshot, rows)
        transformers = resolve_columns(columns, schema)
        indexed = tuple(transformer.column for transformer in transformers)
        key = self.options.new_sample_key(snapshot, schema)
        statistics = self._measure(rows, transformers, key or indexed, self.options.cube_size)
        told = () if key else sample_warnings(rows, statistics, indexed)
        revision = first_revision(
            transformers,
            statistics,
            table_id=self.destination.location,
            cube_size=self.options.cube_size or automatic_cube_size(statistics.rows, schema),
            sample_key=key,
        )
        plan, again = None, {}
        if statistics.rows:
            plan = plan_tree(revision, statistics.sample, statistics.rows, schema)
            # What is told of its samples is to be told by the next rebuild too.
            again = {} if told else rebuild_key(snapshot, plan)
        self._describe(transaction, schema, columns, revision, again)
        written = NO_FILES
        if plan is not None:
            written = write_indexed(transaction, rows, plan, counted_rows=statistics.rows)
        return replace(
            self._created(transaction, revision, written), column_choice=choice, warnings=told
        )

    def in_one_pass(self, transaction: Transaction, rows: DataFrame) -> WriteResult | None:
        """Write the rows by reading them once, where that may be tried; None where not.

        Raises:
            Outgrown: it was tried, and is not for these rows.
        """
        if self.mode is WriteMode.OVERWRITE:
            return self._rebuild_by_tree(transaction, rows)
        if not self._appends(transaction.snapshot):
            return None
        return self._append_one_file(transaction, rows)

    def _rebuild_by_tree(self, transaction: Transaction, rows: DataFrame) -> WriteResult | None:
        """Write all of an existing table anew where the one before has its rows."""
        snapshot, schema = transaction.snapshot, nullable(rows.schema)
        if not may_go_by_tree(snapshot):
            return None
        columns = self.options.known_columns(snapshot, schema)
        if columns is None:
            return None
        transformers = resolve_columns(columns, schema)
        plan = plan_by_tree(
            snapshot,
            transformers,
            self.options.new_sample_key(snapshot, schema),
            self.options.cube_size,
            schema,
        )
        stored = snapshot.configuration
        given = self.options.given_stats(transformers).get(COLUMN_STATS_KEY, "")
        if plan is None or given != stored.get(COLUMN_STATS_KEY, ""):
            return None
        again = {REBUILD_KEY: stored[REBUILD_KEY]}
        with transaction.pinned_reads():
            self._describe(transaction, schema, columns, plan.revision, again)
            written = write_indexed(transaction, rows, plan, counted_rows=None)
            return self._created(transaction, plan.revision, written)

    def _describe(
        self,
        transaction: Transaction,
        schema: StructType,
        columns: Sequence[IndexedColumn],
        revision: Revision,
        again: Mapping[str, str],
    ) -> None:
        """Say what the table is from this transaction on; `again` is for the next rebuild."""
        snapshot = transaction.snapshot
        slices = self.options.new_slices(snapshot)
        configuration = {
            **self._kept_properties(snapshot.configuration),
            **_column_mapping(schema),
            **option_keys(columns, revision),
            **self.options.given_stats(revision.transformers),
            **self.options.left_open(snapshot),
            **stored_keys(IndexConfiguration.read({}), revision),
            **slices_key(slices),
            **again,
        }
        if self.destination.name:
            configuration[RELATION_KEY] = self.destination.name
        comment = self.destination.comment
        stored = with_slices(schema, revision.weight_columns) if slices else schema
        if snapshot.exists:
            transaction.replace_table(stored, configuration, comment)
        else:
            transaction.create_table(stored, configuration, comment)

    def _created(
        self, transaction: Transaction, revision: Revision, written: IndexedFiles
    ) -> WriteResult:
        """Commit a table's first files, or those that replace all that it has."""
        snapshot = transaction.snapshot
        version = self._commit(
            transaction,
            Operation.OVERWRITE if snapshot.exists else Operation.CREATE,
            written,
            removes=np.arange(len(snapshot.files)) if snapshot.exists else None,
        )
        failpoints.reach(failpoints.BEFORE_REGISTRATION)
        self.destination.register()
        return self._result(
            version, revision.revision_id, WriteMode.OVERWRITE, written.rows, written, True
        )

    def _append_one_file(self, transaction: Transaction, given: DataFrame) -> WriteResult | None:
        """Add rows that are few enough for one file, and are measured in it."""
        current, transformers = self._transformers_of(transaction.snapshot)
        rows = cast_to(given, transaction.snapshot.schema, self.destination.label)
        cube_size = self.options.cube_size or current.desired_cube_size
        if not suits(rows, current, transformers, cube_size):
            return None
        with transaction.pinned_reads():
            written = write_one_file(transaction, rows, current)
            if written is None:
                return self._nothing(transaction, current)
            statistics = written.statistics.with_given(self.options.stats_of(transformers))
            plan, kept = self._plan_append(
                transaction, rows.schema, current, transformers, statistics
            )
            return self._appended(transaction, current, plan, written.indexed(plan, kept))

    def _append(self, transaction: Transaction, given: DataFrame) -> WriteResult:
        """Add rows to an indexed table."""
        current, transformers = self._transformers_of(transaction.snapshot)
        rows = cast_to(given, transaction.snapshot.schema, self.destination.label)
        cube_size = self.options.cube_size or current.desired_cube_size
        statistics = self._measure(rows, transformers, current.weight_columns, cube_size)
        if not statistics.rows:
            return self._nothing(transaction, current)
        plan, kept = self._plan_append(transaction, rows.schema, current, transformers, statistics)
        written = write_indexed(
            transaction, rows, plan, counted_rows=statistics.rows, kept_blocks=kept
        )
        return self._appended(transaction, current, plan, written)

    def _plan_append(
        self,
        transaction: Transaction,
        schema: StructType,
        current: Revision,
        transformers: Sequence[Transformer],
        statistics: InputStatistics,
    ) -> tuple[TreePlan, Sequence[Block]]:
        """Where measured rows go, and the live blocks of the revision that they belong to.

        That is `current`, or one that the transaction gives the table.
        """
        snapshot = transaction.snapshot
        index = TableIndex.of(snapshot)
        revision = continued_revision(
            index.configuration,
            current,
            transformers,
            statistics,
            cube_size=self.options.cube_size
            or _outgrown_cube_size(snapshot, current, statistics.rows),
        )
        if revision is current:
            tree, kept_blocks = index.tree(revision), index.blocks_of(revision)
        else:
            tree, kept_blocks = None, []
            transaction.update_configuration(
                {
                    **self.options.kept_by_append(snapshot.configuration),
                    "cubeSize": str(revision.desired_cube_size),
                    **self.options.given_stats(transformers),
                    **stored_keys(index.configuration, revision),
                }
            )
        return plan_tree(revision, statistics.sample, statistics.rows, schema, tree), kept_blocks

    def _appended(
        self, transaction: Transaction, current: Revision, plan: TreePlan, written: IndexedFiles
    ) -> WriteResult:
        """Commit files that more rows are in."""
        return self._result(
            self._commit(transaction, Operation.APPEND, written),
            plan.revision.revision_id,
            WriteMode.APPEND,
            written.rows,
            written,
            new_revision=plan.revision is not current,
        )

    def _nothing(self, transaction: Transaction, current: Revision) -> WriteResult:
        """The result of adding no rows."""
        return self._result(transaction.snapshot.version, current.revision_id, WriteMode.APPEND)

    def _measure(
        self,
        rows: DataFrame,
        transformers: tuple[Transformer, ...],
        weight_columns: tuple[str, ...],
        cube_size: int | None,
    ) -> InputStatistics:
        statistics = measure(rows, transformers, weight_columns, cube_size)
        failpoints.reach(failpoints.BETWEEN_PASSES)
        return statistics.with_given(self.options.stats_of(transformers))

    def _commit(
        self,
        transaction: Transaction,
        operation: Operation,
        written: IndexedFiles,
        removes: NDArray[np.int64] | None = None,
    ) -> int:
        failpoints.reach(failpoints.BEFORE_COMMIT)
        return transaction.commit(operation, written.staged, removes, self.user_metadata)

    def _result(
        self,
        version: int,
        revision_id: int,
        mode: WriteMode,
        rows: int = 0,
        written: IndexedFiles = NO_FILES,
        new_revision: bool = False,
    ) -> WriteResult:
        return WriteResult(
            version=version,
            revision_id=revision_id,
            rows=rows,
            cubes=written.cubes,
            files=len(written.staged),
            bytes=written.bytes,
            seconds=time.monotonic() - self.started,
            mode=mode,
            new_revision=new_revision,
        )

    def _has_table(self, snapshot: TableSnapshot) -> bool:
        """Whether the user sees a table: one that the catalog does not know is none to them."""
        by_path = self.destination.name is None
        return snapshot.exists and (by_path or self.destination.is_registered)

    def _appends(self, snapshot: TableSnapshot) -> bool:
        return self.mode is WriteMode.APPEND and self._has_table(snapshot)

    def _transformers_of(self, snapshot: TableSnapshot) -> tuple[Revision, tuple[Transformer, ...]]:
        """The revision that an append continues, and how it indexes each column."""
        label = self.destination.label
        configuration = IndexConfiguration.read(snapshot.configuration)
        if configuration.last_revision_id is None:
            raise NotAQbeastTable(
                f"{label} is a Delta table without a Qbeast index; "
                "convert it first, or replace it with mode='overwrite'"
            )
        current = configuration.latest
        schema, key = snapshot.schema, self.options.sample_key
        if key is not None:
            check_sample_key(key, current, snapshot.configuration, schema, label)
        if self.options.slices is not None:
            check_slices(self.options.slices, snapshot.stores_slices, label)
        return current, continued_transformers(current, self.options.columns, schema, label)

    def _kept_properties(self, present: Mapping[str, str]) -> dict[str, str]:
        """The table's own properties, which a rebuild keeps unless it is given others."""
        own = {key: value for key, value in present.items() if not is_index_key(key)}
        if self.properties is None:
            return own
        # Delta does not let a table go back to unmapped column names.
        mapping = {k: v for k, v in own.items() if k.startswith("delta.columnMapping.")}
        return {**mapping, **self.properties}


def _outgrown_cube_size(snapshot: TableSnapshot, current: Revision, more_rows: int) -> int | None:
    """The cube size of a table that chose its own and has outgrown it, with the new rows."""
    known = [file.rows for file in snapshot.files]
    if None in known or not chosen_automatically(snapshot.configuration, CUBE_SIZE):
        return None
    rows = sum(rows for rows in known if rows is not None) + more_rows
    return outgrown_cube_size(current.desired_cube_size, rows, snapshot.schema)


def _column_mapping(schema: StructType) -> dict[str, str]:
    """What a table needs for names that Parquet files cannot have."""
    special = any(_NEED_COLUMN_MAPPING & set(name) for name in schema.fieldNames())
    return {COLUMN_MAPPING_KEY: "name"} if special else {}
