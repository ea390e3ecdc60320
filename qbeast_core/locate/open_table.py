"""A table at one version: its snapshot and its index, as recorded in the log."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from qbeast_core.delta.catalog import Catalog
from qbeast_core.delta.index import TableIndex
from qbeast_core.delta.snapshot import TableSnapshot, is_same_location
from qbeast_core.delta.transaction import Transaction
from qbeast_core.errors import CommitConflict, NotAQbeastTable
from qbeast_core.locate.address import TableAddress
from qbeast_core.model.revision import IndexConfiguration, describes_index
from qbeast_core.spark.alignment import lacks_some, widened, widened_values
from qbeast_core.spark.columns import column, column_from
from qbeast_core.spark.slices import is_slice_of


class OpenTable:
    """One version of a table. Later commits do not change it."""

    def __init__(self, address: TableAddress, snapshot: TableSnapshot) -> None:
        self.address = address
        self.snapshot = snapshot

    @classmethod
    def newest(cls, spark: SparkSession, address: TableAddress) -> OpenTable:
        """The newest version of the table."""
        return OpenTable(address, TableSnapshot.load(spark, address.location))

    @property
    def spark(self) -> SparkSession:
        return self.snapshot.spark

    @property
    def label(self) -> str:
        """The table's name or path, for messages."""
        return self.address.label

    @property
    def not_found_error(self) -> NotAQbeastTable:
        """The error for an address without a Delta table.

        Raises UnknownSchema if the table's schema was dropped as well.
        """
        address = self.address
        if address.name is None:
            return NotAQbeastTable(
                f"there is no Delta table at {address.location}; correct the path, or create the "
                "table with write_table"
            )
        entry = Catalog(self.spark).find(address.sql_name)
        is_listed = entry.exists and not entry.is_view
        if not (is_listed and is_same_location(self.spark, entry.location, address.location)):
            return NotAQbeastTable(
                f"{address.name} was dropped or replaced after it was opened; open it again, or "
                "create it with write_table"
            )
        return NotAQbeastTable(
            f"{address.name} is in the catalog, but there is no Delta table at "
            f"{address.location}; restore its files, or drop it and create it again"
        )

    @property
    def not_indexed_error(self) -> NotAQbeastTable:
        """The error for a Delta table without an index."""
        return NotAQbeastTable(
            f"{self.label} is a Delta table without a Qbeast index; convert it with "
            "convert_to_qbeast, which keeps its rows and history, or replace its rows with "
            "write_table(..., mode='overwrite')"
        )

    def check_indexed(self) -> None:
        """Raise NotAQbeastTable if there is no table, or if it has no index."""
        if not self.snapshot.exists:
            raise self.not_found_error
        if not describes_index(self.snapshot.configuration):
            raise self.not_indexed_error

    @property
    def schema(self) -> StructType:
        """The table's columns; in a write, also those that it adds. Without the slice column."""
        return self.snapshot.schema

    def rows(self, files: NDArray[np.int64]) -> DataFrame:
        """The rows of these files in this schema."""
        return self.in_schema(self.snapshot.dataframe(files))

    def in_schema(self, rows: DataFrame) -> DataFrame:
        """Rows of the snapshot in this schema; columns that a write adds are null."""
        return rows

    @cached_property
    def configuration(self) -> IndexConfiguration:
        """The revisions of the table's index; empty for a table without an index."""
        return IndexConfiguration.read(self.snapshot.configuration)

    @property
    def slices_fit_weights(self) -> bool:
        """Whether the table stores slices, and Delta computes them from the rows' weights."""
        stored = self.snapshot.slice_expression
        return stored is not None and is_slice_of(stored, self.configuration.latest.weight_columns)

    @cached_property
    def index(self) -> TableIndex:
        """The indexed files of the table, with their blocks."""
        return TableIndex.of(self.snapshot, self.configuration)


class WritableTable(OpenTable):
    """A transaction and the version of the table that it starts from."""

    def __init__(self, address: TableAddress, transaction: Transaction) -> None:
        super().__init__(address, transaction.snapshot)
        self.transaction = transaction

    @property
    def schema(self) -> StructType:
        return self.transaction.metadata.schema

    def in_schema(self, rows: DataFrame) -> DataFrame:
        if not self.transaction.metadata.changes_schema:
            return rows
        return widened(rows, self.schema, self.label)

    def values_in_schema(self, rows: DataFrame, alias: str) -> dict[str, Column]:
        """The columns of `in_schema`, for queries in which `alias` names the rows."""
        if not self.transaction.metadata.changes_schema:
            return {name: column_from(name, alias) for name in self.schema.fieldNames()}
        return widened_values(rows, self.schema, self.label, alias)

    def unfilled(self, rows: DataFrame, given: StructType, earlier: OpenTable) -> DataFrame:
        """New rows without the columns that alignment added, if the table's columns have changed.

        Args:
            rows: the rows, aligned with an earlier version of the table.
            given: their schema before that.
            earlier: that version.

        Raises:
            CommitConflict: the table's columns have changed, and alignment added fields of structs.
        """
        if self.snapshot.schema == earlier.snapshot.schema:
            return rows
        names = {name.lower() for name in given.fieldNames()}
        left = rows.select(*(column(name) for name in rows.columns if name.lower() in names))
        if lacks_some(given, left.schema):
            raise CommitConflict(
                f"another writer changed the columns of {self.label}, and the rows to write lack "
                "fields of its structs; nothing was written. Run the write again"
            )
        return left

    def merge_columns(self, given: StructType) -> None:
        """Add the columns and fields of new rows that the table lacks. Raises InvalidOptions."""
        self.transaction.metadata.merge_columns(given)
        if self.transaction.metadata.changes_schema:
            # Files that were indexed by a narrower column do not belong to the index any more.
            self.index = TableIndex(self.configuration, self.schema, self.snapshot.files)

    @staticmethod
    def begin(spark: SparkSession, address: TableAddress) -> WritableTable:
        """Start a transaction on the newest version of the table."""
        return WritableTable(address, Transaction(spark, address.location))
