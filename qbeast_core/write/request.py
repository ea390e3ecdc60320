"""A write request: its checked options, and what every way of writing derives from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from qbeast_core.delta.application import ApplicationTransaction
from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.errors import InvalidOptions
from qbeast_core.locate.address import TableAddress
from qbeast_core.locate.compatibility import (
    check_features,
    check_no_slice_column,
    check_removable,
    check_writable,
)
from qbeast_core.locate.open_table import OpenTable, WritableTable
from qbeast_core.model.transformer import Transformer
from qbeast_core.options import WriteMode, resolve_columns
from qbeast_core.spark.alignment import aligned, with_padded_chars
from qbeast_core.spark.schema import nullable
from qbeast_core.spark.slices import has_slice_column, without_given_slices
from qbeast_core.write.index_metadata import IndexMetadata, is_replaceable_guess
from qbeast_core.write.index_options import IndexOptions
from qbeast_core.write.result import WriteResult, unchanged_result
from qbeast_core.write.revision import check_sample_key, check_slices, continued_transformers


@dataclass(frozen=True)
class WriteRequest:
    """One write of a table, with checked options."""

    address: TableAddress
    mode: WriteMode
    options: IndexOptions
    properties: Mapping[str, Any] | None
    comment: str | None
    user_metadata: str | None
    started: float
    application: ApplicationTransaction | None = None
    overwrite_schema: bool = True
    """Whether an overwrite replaces the table's schema."""
    merge_schema: bool = False
    """Whether a write that keeps the table's schema adds the columns that only the rows have."""

    def without_given_slices(self, given: DataFrame) -> DataFrame:
        """The rows without the column `_qbeast_slice`, if the table computes it."""
        if not has_slice_column(given):
            return given
        snapshot = TableSnapshot.load(given.sparkSession, self.address.location)
        return without_given_slices(given, snapshot.stores_slices or self.options.slices is True)

    def begin(
        self, spark: SparkSession, since: OpenTable | None = None
    ) -> WritableTable | WriteResult:
        """Start a transaction on the table, and check that this write may change it.

        Returns a result if there is nothing to do: the table already has this numbered write, or it
        exists and the mode is IGNORE.

        Args:
            since: the version that an earlier attempt started from. If another writer has committed
                since then, there is a table, even if it is not registered yet.
        """
        table = WritableTable.begin(spark, self.address)
        # A repeated write replaces no rows, so it may find rows of a table that is not registered.
        self.address.check_adoptable(table.snapshot, keeps_rows=False)
        if not table.transaction.claim(self.application):
            # The write may have ended before it registered a new table.
            self.address.register(spark, self.comment)
            return unchanged_result(table, self.started, repeated=True)
        exists = self._has_table(table) or (
            since is not None and table.snapshot.version != since.snapshot.version
        )
        if exists and self.mode is WriteMode.ERROR:
            raise InvalidOptions(f"{table.label} exists; use mode 'append' or 'overwrite'")
        if exists and self.mode is WriteMode.IGNORE:
            return unchanged_result(table, self.started)
        self.address.check_adoptable(table.snapshot, keeps_rows=self._keeps_rows_of(table))
        if self.appends(table):
            check_writable(table)
        elif self.mode is WriteMode.OVERWRITE and table.snapshot.exists:
            check_features(table)
            check_removable(table)
        return table

    def _keeps_rows_of(self, table: OpenTable) -> bool:
        """Whether the write may not replace the rows of a table that is not registered.

        ERROR and IGNORE may replace what an interrupted creation left, which has one commit. A
        longer history is that of a table that users had, such as one that was renamed.
        """
        if self.mode is WriteMode.APPEND:
            return True
        return self.mode is not WriteMode.OVERWRITE and table.snapshot.version > 0

    def check(self, table: OpenTable, schema: StructType) -> None:
        """Check the request before anything is computed."""
        if self.appends(table):
            _, transformers = self.continued(table)
            if not self.replaces_guess(table):
                self.options.stats_of(transformers)
        else:
            self._check_new(table, schema)

    def _check_new(self, table: OpenTable, schema: StructType) -> None:
        adds_slices = self.options.new_slices(table) and not table.snapshot.stores_slices
        if adds_slices and self._keeps_schema(table):
            check_no_slice_column(table)
        try:
            self.options.check_new(table, schema)
        except InvalidOptions:
            if self._has_table(table) and not self.options.sets_columns:
                # The write takes over the table's columns.
                table.index.check_columns_exist(table.label)
            raise

    def aligned(self, table: WritableTable, given: DataFrame) -> DataFrame:
        """The rows in the table's schema if the write keeps or extends it; otherwise unchanged,
        with `char(n)` values padded as Spark reads them.

        Raises InvalidOptions.
        """
        if not self._keeps_schema(table):
            return with_padded_chars(given)
        if self.merge_schema:
            table.merge_columns(given.schema)
        return aligned(given, table.schema, table.label)

    def stored_schema(self, table: OpenTable, rows: DataFrame) -> StructType:
        """The table's schema after the write of these aligned rows."""
        return table.schema if self._keeps_schema(table) else nullable(rows.schema)

    def _keeps_schema(self, table: OpenTable) -> bool:
        overwrites = self.mode is WriteMode.OVERWRITE and self._has_table(table)
        return self.appends(table) or (overwrites and not self.overwrite_schema)

    def measured_columns(self, table: OpenTable, given: DataFrame) -> tuple[str, ...]:
        """The columns that are measured before the rows are written; empty for all columns."""
        if self.appends(table):
            if self.replaces_guess(table):
                return ()
            metadata, transformers = self.continued(table)
            key = metadata.configuration.latest.sample_key
        else:
            columns = self.options.known_columns(table, given.schema)
            if columns is None:
                return ()
            transformers = resolve_columns(columns, given.schema)
            key = self.options.new_sample_key(table, given.schema)
        measured = {name.lower() for name in (*key, *(each.column for each in transformers))}
        # The rows of an append may lack some of them.
        return tuple(name for name in given.columns if name.lower() in measured)

    def appends(self, table: OpenTable) -> bool:
        """Whether the write appends to an existing table."""
        return self.mode is WriteMode.APPEND and self._has_table(table)

    def replaces_guess(self, table: OpenTable) -> bool:
        """Whether the rows of an append decide which columns the table is indexed by."""
        return self.options.columns is None and is_replaceable_guess(table)

    def continued(
        self, table: OpenTable, rows: DataFrame | None = None
    ) -> tuple[IndexMetadata, tuple[Transformer, ...]]:
        """The index that an append continues, and how it indexes each column from now on.

        Args:
            rows: the rows to append in the table's schema, which can replace a guess; None to keep
                it.

        Raises:
            NotAQbeastTable: the table has no index.
            IndexMismatch: the options differ from the table's index.
        """
        snapshot, label = table.snapshot, table.label
        metadata = IndexMetadata.of(table)
        if metadata.configuration.last_revision_id is None:
            raise table.not_indexed_error
        schema, key = table.schema, self.options.sample_key
        if key is not None:
            check_sample_key(key, metadata.writable_revision, snapshot.configuration, schema, label)
        if self.options.slices is not None:
            check_slices(self.options.slices, snapshot.stores_slices, label)
        if rows is not None and self.replaces_guess(table):
            metadata = IndexMetadata.for_rows(table, rows, self.options.automatic_columns)
        return metadata, continued_transformers(
            metadata.writable_revision, self.options.columns, schema, label
        )

    def _has_table(self, table: OpenTable) -> bool:
        """Whether the table exists for the user: by name, only if it is in the catalog."""
        by_path = self.address.name is None
        return table.snapshot.exists and (by_path or self.address.is_registered)
