"""What a write of a table was asked for, and what each way of writing needs of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from qbeast_core import failpoints
from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.delta.transaction import Operation, Transaction
from qbeast_core.errors import CommitStateUnknown, InvalidOptions, NotAQbeastTable
from qbeast_core.model.revision import IndexConfiguration
from qbeast_core.model.transformer import Transformer
from qbeast_core.operations.compatibility import check_features, check_writable
from qbeast_core.operations.destination import Destination
from qbeast_core.operations.index_options import IndexOptions
from qbeast_core.operations.indexing import NO_FILES, IndexedFiles
from qbeast_core.operations.known_index import KnownIndex, is_open
from qbeast_core.operations.measuring import measure
from qbeast_core.operations.revisions import check_sample_key, check_slices, continued_transformers
from qbeast_core.options import WriteMode, resolve_columns
from qbeast_core.spark.alignment import aligned
from qbeast_core.spark.schema import nullable
from qbeast_core.spark.slices import has_slice_column, own_rows
from qbeast_core.spark.statistics import InputStatistics
from qbeast_core.tree.column_choice import ColumnChoice


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


@dataclass(frozen=True)
class TableWrite:
    """One write of a table, its options checked."""

    destination: Destination
    mode: WriteMode
    options: IndexOptions
    properties: Mapping[str, str] | None
    user_metadata: str | None
    started: float
    overwrite_schema: bool = True
    """Whether an overwrite replaces the table's schema."""

    def own_rows(self, given: DataFrame) -> DataFrame:
        """The rows without a column that the table computes, or computed before."""
        if not has_slice_column(given):
            return given
        snapshot = TableSnapshot.load(self.destination.spark, self.destination.location)
        return own_rows(given, snapshot.stores_slices or self.options.slices is True)

    def begin(self) -> Transaction:
        """A transaction on the table's present state, which this write may change."""
        transaction = Transaction(self.destination.spark, self.destination.location)
        self.destination.check_adoptable(
            transaction.snapshot, keeps_rows=self.mode is WriteMode.APPEND
        )
        if self.appends(transaction.snapshot):
            check_writable(transaction.snapshot, self.destination.label)
        elif self.mode is WriteMode.OVERWRITE and transaction.snapshot.exists:
            check_features(transaction.snapshot, self.destination.label)
        return transaction

    def check(self, snapshot: TableSnapshot, schema: StructType) -> WriteResult | None:
        """Find what would fail before anything is computed; a result if nothing is to be done."""
        if self._has_table(snapshot) and self.mode is WriteMode.ERROR:
            raise InvalidOptions(
                f"{self.destination.label} exists; use mode 'append' or 'overwrite'"
            )
        if self._has_table(snapshot) and self.mode is WriteMode.IGNORE:
            last = IndexConfiguration.read(snapshot.configuration).last_revision_id or 0
            return self.result(snapshot.version, last, WriteMode.APPEND)
        if self.appends(snapshot):
            _, transformers = self.continued(snapshot)
            if not self.decides(snapshot):
                self.options.stats_of(transformers)
        else:
            self.options.check_new(snapshot, schema)
        return None

    def aligned(self, snapshot: TableSnapshot, given: DataFrame) -> DataFrame:
        """The rows as the table stores them, where it keeps its schema. Raises InvalidOptions."""
        if not self._keeps_schema(snapshot):
            return given
        return aligned(given, snapshot.schema, self.destination.label)

    def stored_schema(self, snapshot: TableSnapshot, rows: DataFrame) -> StructType:
        """The schema that the table has after the write, of rows that are aligned with it."""
        return snapshot.schema if self._keeps_schema(snapshot) else nullable(rows.schema)

    def _keeps_schema(self, snapshot: TableSnapshot) -> bool:
        overwrites = self.mode is WriteMode.OVERWRITE and self._has_table(snapshot)
        return self.appends(snapshot) or (overwrites and not self.overwrite_schema)

    def measured_columns(self, given: DataFrame) -> tuple[str, ...]:
        """The columns that the rows are measured by before they are written; none for all."""
        snapshot = self.begin().snapshot
        if self.appends(snapshot):
            if self.decides(snapshot):
                return ()
            known, transformers = self.continued(snapshot)
            key = known.configuration.latest.sample_key
        else:
            columns = self.options.known_columns(snapshot, given.schema)
            if columns is None:
                return ()
            transformers = resolve_columns(columns, given.schema)
            key = self.options.new_sample_key(snapshot, given.schema)
        measured = {name.lower() for name in (*key, *(each.column for each in transformers))}
        # An append may lack some of them.
        return tuple(name for name in given.columns if name.lower() in measured)

    def appends(self, snapshot: TableSnapshot) -> bool:
        """Whether it adds to rows that the table has."""
        return self.mode is WriteMode.APPEND and self._has_table(snapshot)

    def decides(self, snapshot: TableSnapshot) -> bool:
        """Whether the rows of an append decide by which columns the table is indexed."""
        return self.options.columns is None and is_open(snapshot)

    def continued(
        self, snapshot: TableSnapshot, rows: DataFrame | None = None
    ) -> tuple[KnownIndex, tuple[Transformer, ...]]:
        """The index that an append continues, and how it indexes each column from now on.

        `rows`, in the table's schema, decide where the append does; None to leave that open.
        """
        label = self.destination.label
        known = KnownIndex.of(snapshot)
        if known.configuration.last_revision_id is None:
            raise NotAQbeastTable(
                f"{label} is a Delta table without a Qbeast index; "
                "convert it first, which keeps its rows, or replace them with mode='overwrite'"
            )
        schema, key = snapshot.schema, self.options.sample_key
        if key is not None:
            check_sample_key(key, known.current, snapshot.configuration, schema, label)
        if self.options.slices is not None:
            check_slices(self.options.slices, snapshot.stores_slices, label)
        if rows is not None and self.decides(snapshot):
            known = KnownIndex.for_rows(snapshot, rows, self.options.automatic_columns)
        return known, continued_transformers(known.current, self.options.columns, schema, label)

    def measure(
        self,
        rows: DataFrame,
        transformers: tuple[Transformer, ...],
        weight_columns: tuple[str, ...],
        cube_size: int | None,
    ) -> InputStatistics:
        """Look at the rows once; `cube_size` is None for the automatic one."""
        statistics = measure(rows, transformers, weight_columns, cube_size)
        failpoints.reach(failpoints.BETWEEN_PASSES)
        return statistics.with_given(self.options.stats_of(transformers))

    def commit(
        self,
        transaction: Transaction,
        operation: Operation,
        written: IndexedFiles,
        removes: NDArray[np.int64] | None = None,
    ) -> int:
        """The version that has the files, without those at the indices `removes`."""
        failpoints.reach(failpoints.BEFORE_COMMIT)
        try:
            return transaction.commit(operation, written.staged, removes, self.user_metadata)
        except CommitStateUnknown as problem:
            raise self.destination.unknown(problem) from problem.__cause__

    def result(
        self,
        version: int,
        revision_id: int,
        mode: WriteMode,
        rows: int = 0,
        written: IndexedFiles = NO_FILES,
        new_revision: bool = False,
    ) -> WriteResult:
        """What this write did."""
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
