"""The changes that a transaction makes to a table's metadata: its schema and its properties."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from qbeast_core.delta.column_identity import ColumnIdentity
from qbeast_core.delta.metadata import fields_of, metadata_of, stores_slices, table_metadata
from qbeast_core.delta.schema_merge import merged_schema
from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.errors import IncompatibleTable
from qbeast_core.jvm.failures import one_line
from qbeast_core.jvm.gateway import Jvm
from qbeast_core.model.slices import SLICE_COLUMN
from qbeast_core.spark.slices import without_slices

_DELTA = "org.apache.spark.sql.delta."


class MetadataChange:
    """The metadata of a table at the end of a transaction; unchanged until a method changes it."""

    def __init__(self, jvm: Jvm, txn: Any, snapshot: TableSnapshot) -> None:
        """`txn`: Delta's own transaction, which started from the snapshot."""
        self._jvm = jvm
        self._txn = txn
        self._snapshot = snapshot
        self._merged: StructType | None = None
        self._stores_merged = False
        self.follows_files = False
        """Whether the transaction has written files."""
        self.actions: list[Any] = []
        """Delta's actions for changes that follow files."""
        self.new_properties: dict[str, str] = {}
        """The properties that `update_configuration` adds or changes."""

    @property
    def schema(self) -> StructType:
        """The columns that the table has after `merge_columns`, without the slice column."""
        if self._merged is None:
            return self._snapshot.schema
        return without_slices(self._merged) if self._snapshot.stores_slices else self._merged

    @property
    def changes_schema(self) -> bool:
        """Whether `merge_columns` added or widened a column or field."""
        return self._merged is not None

    @property
    def stores_slices(self) -> bool:
        """Whether the table has or will have a slice column, which Delta adds to the rows."""
        return stores_slices(fields_of(self._txn.metadata()))

    def identity_of(self, columns: Sequence[str]) -> ColumnIdentity:
        """The columns that these names refer to in the files that the transaction writes."""
        schema = json.loads(fields_of(self._txn.metadata())["schemaString"])
        return ColumnIdentity.of(StructType.fromJson(schema), columns)

    def merge_columns(self, given: StructType) -> None:
        """Add the columns and fields of new rows that the table lacks, as `mergeSchema` does.

        Raises:
            InvalidOptions: Delta does not allow the change.
        """
        if not self._snapshot.exists:
            return
        merged = merged_schema(self._jvm, self._snapshot.trial(), given)
        if merged is not None and self._snapshot.stores_slices:
            # It stays the last column.
            merged = StructType([*without_slices(merged), merged[SLICE_COLUMN]])
        self._merged = merged

    def store_merged_columns(self) -> None:
        """Store the columns of `merge_columns`, if a change of the configuration has not done so.

        Delta must know them before it writes files, and accepts one change of the metadata.
        """
        if self._merged is not None and not self._stores_merged:
            self.update_configuration(self._snapshot.configuration)

    def create_table(
        self, schema: StructType, configuration: Mapping[str, str], comment: str | None
    ) -> None:
        """Make the transaction the first of a new table."""
        metadata = table_metadata(self._jvm, schema, configuration, comment)
        self._txn.updateMetadataForNewTable(metadata)

    def replace_table(
        self, schema: StructType, configuration: Mapping[str, str], comment: str | None
    ) -> None:
        """Give the table a new schema and configuration; it keeps its id and history.

        It also keeps its comment if `comment` is None; an empty `comment` removes it.
        """
        self._support_slices(schema)
        self._stores_merged = True
        metadata = table_metadata(
            self._jvm, schema, configuration, comment, kept_from=self._txn.metadata()
        )
        self._txn.updateMetadataForTableOverwrite(metadata)

    def update_configuration(
        self, configuration: Mapping[str, str], schema: StructType | None = None
    ) -> None:
        """Replace the table's whole configuration, and its schema if one is given.

        Without one, the table gets the columns of `merge_columns`.
        """
        if schema is None:
            schema = self._merged
        self._stores_merged = True
        fields = fields_of(self._txn.metadata()) | {"configuration": dict(configuration)}
        before = self._snapshot.configuration
        self.new_properties = {k: v for k, v in configuration.items() if before.get(k) != v}
        if schema is not None:
            self._support_slices(schema)
            fields["schemaString"] = schema.json()
        metadata = metadata_of(self._jvm, fields)
        if self.follows_files:
            # Delta rejects `updateMetadata` after files are written, but accepts it as an action.
            self.actions.append(metadata)
        else:
            self._update(metadata)

    def _update(self, metadata: Any) -> None:
        # Delta checks the whole schema, also if it stays the same.
        try:
            self._txn.updateMetadata(metadata, False)
        except (Py4JJavaError, PySparkException) as problem:
            raise IncompatibleTable(
                "Delta does not accept a change of the table's properties, in which the index is "
                f"stored: {one_line(problem)}"
            ) from problem

    def _support_slices(self, schema: StructType) -> None:
        """Enable generated columns, which Delta would otherwise treat as ordinary columns."""
        present = self._txn.protocol()
        generated = self._jvm.singleton(_DELTA + "GeneratedColumn")
        if SLICE_COLUMN not in schema.fieldNames() or generated.satisfyGeneratedColumnProtocol(
            present
        ):
            return
        feature = self._jvm.singleton(_DELTA + "GeneratedColumnsTableFeature")
        protocol = self._jvm.singleton(_DELTA + "actions.Protocol")
        supporting = protocol.apply(1, 7).withFeature(feature)
        self._txn.updateProtocol(supporting.merge(self._jvm.seq([present])))
