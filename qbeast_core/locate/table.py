"""A table at one version: what its log says of it and of its index."""

from __future__ import annotations

from functools import cached_property

from pyspark.sql import SparkSession

from qbeast_core.delta.index import TableIndex
from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.delta.transaction import Transaction
from qbeast_core.locate.address import TableAddress
from qbeast_core.model.revision import IndexConfiguration


class OpenTable:
    """One version of a table. Later commits do not change it."""

    def __init__(self, address: TableAddress, snapshot: TableSnapshot) -> None:
        self.address = address
        self.snapshot = snapshot

    @classmethod
    def newest(cls, spark: SparkSession, address: TableAddress) -> OpenTable:
        """The version that the table has now."""
        return OpenTable(address, TableSnapshot.load(spark, address.location))

    @property
    def spark(self) -> SparkSession:
        return self.snapshot.spark

    @property
    def label(self) -> str:
        """How messages call the table."""
        return self.address.label

    @cached_property
    def configuration(self) -> IndexConfiguration:
        """The revisions of its index; none for a table that is not indexed."""
        return IndexConfiguration.read(self.snapshot.configuration)

    @cached_property
    def index(self) -> TableIndex:
        """Which of its files the index describes, and by which blocks."""
        return TableIndex.of(self.snapshot, self.configuration)


class WritableTable(OpenTable):
    """The version of a table that a transaction starts from, with the transaction."""

    def __init__(self, address: TableAddress, transaction: Transaction) -> None:
        super().__init__(address, transaction.snapshot)
        self.transaction = transaction

    @staticmethod
    def begin(spark: SparkSession, address: TableAddress) -> WritableTable:
        """A transaction on the version that the table has now."""
        return WritableTable(address, Transaction(spark, address.location))
