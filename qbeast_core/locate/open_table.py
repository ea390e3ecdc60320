"""A table at one version: its snapshot and its index, as recorded in the log."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from qbeast_core.delta.index import TableIndex
from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.delta.transaction import Transaction
from qbeast_core.errors import NotAQbeastTable
from qbeast_core.locate.address import TableAddress
from qbeast_core.model.revision import IndexConfiguration
from qbeast_core.spark.alignment import widened
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
        """The error for an address without a Delta table."""
        address = self.address
        if address.name is None:
            return NotAQbeastTable(
                f"there is no Delta table at {address.location}; correct the path, or create the "
                "table with write_table"
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

    @property
    def schema(self) -> StructType:
        """The table's columns; in a write, also those that it adds. Without the slice column."""
        return self.snapshot.schema

    def rows(self, files: NDArray[np.int64]) -> DataFrame:
        """The rows of these files in this schema; columns that a write adds are null."""
        return self.snapshot.dataframe(files)

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

    def rows(self, files: NDArray[np.int64]) -> DataFrame:
        found = super().rows(files)
        if not self.transaction.metadata.changes_schema:
            return found
        return widened(found, self.schema, self.label)

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
