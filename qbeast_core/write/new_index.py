"""The new index of a created or replaced table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from qbeast_core.delta.metadata import COLUMN_MAPPING_KEY, checked_properties, maps_columns
from qbeast_core.delta.transaction import Transaction
from qbeast_core.errors import InvalidOptions
from qbeast_core.locate.address import RELATION_KEY
from qbeast_core.locate.open_table import OpenTable
from qbeast_core.model.column_stats import ColumnStats
from qbeast_core.model.revision import BUILT_FROM_SAMPLE, IndexConfiguration, Revision
from qbeast_core.model.transformer import Transformer
from qbeast_core.options import IndexedColumn, resolve_columns
from qbeast_core.spark.slices import with_slices
from qbeast_core.spark.statistics import InputStatistics
from qbeast_core.tree.column_choice import ColumnChoice
from qbeast_core.write.index_properties import is_index_key, option_keys, slices_key, stored_keys
from qbeast_core.write.plan import TreePlan
from qbeast_core.write.rebuild_key import rebuild_key
from qbeast_core.write.request import WriteRequest
from qbeast_core.write.revision import first_revision
from qbeast_core.write.sample_warning import cluster_warnings, stored_sample_warnings
from qbeast_core.write.sizing import automatic_cube_size
from qbeast_core.write.writer import RemainingTree

# Delta allows these characters in column names only with column mapping.
_NEED_COLUMN_MAPPING = set(" ,;{}()\n\t=")


@dataclass(frozen=True)
class NewIndex:
    """An index that no file belongs to yet."""

    request: WriteRequest
    table: OpenTable
    """The table before the write; it may not exist."""
    schema: StructType
    columns: tuple[IndexedColumn, ...]
    transformers: tuple[Transformer, ...]
    sample_key: tuple[str, ...]
    column_choice: ColumnChoice | None = None
    """How the columns were chosen, if this write chose them."""

    @staticmethod
    def of(
        request: WriteRequest,
        table: OpenTable,
        schema: StructType,
        columns: tuple[IndexedColumn, ...],
        choice: ColumnChoice | None = None,
    ) -> NewIndex:
        """The index on these columns. Raises InvalidOptions."""
        return NewIndex(
            request,
            table,
            schema,
            columns,
            resolve_columns(columns, schema),
            request.options.new_sample_key(table, schema),
            choice,
        )

    @staticmethod
    def for_rows(
        request: WriteRequest, table: OpenTable, rows: DataFrame, schema: StructType
    ) -> NewIndex:
        """The index on the columns of the request, or on columns chosen for its rows."""
        columns, choice = request.options.new_columns(table, rows, schema)
        return NewIndex.of(request, table, schema, columns, choice)

    @property
    def weight_columns(self) -> tuple[str, ...]:
        return self.sample_key or self._indexed

    @property
    def expected_cube_size(self) -> int | None:
        return self.request.options.cube_size

    @property
    def column_stats(self) -> tuple[ColumnStats, ...]:
        return self.request.options.stats_of(self.transformers)

    @property
    def column_stats_key(self) -> dict[str, str]:
        """The key that stores `column_stats`; empty if the option is not set."""
        return self.request.options.column_stats_key(self.transformers)

    def warnings(self, rows: DataFrame, statistics: InputStatistics) -> tuple[str, ...]:
        """Warnings about samples of a table with these rows."""
        # A run on a sample builds all tables from samples, and says so.
        is_of_run = BUILT_FROM_SAMPLE in (self.request.properties or {})
        warnings = () if is_of_run else stored_sample_warnings(statistics, self.weight_columns)
        if self.sample_key:
            return warnings
        return warnings + cluster_warnings(rows, self.schema, statistics, self._indexed)

    def revision_for(self, statistics: InputStatistics) -> Revision:
        return first_revision(
            self.transformers,
            statistics,
            table_id=self.request.address.location,
            cube_size=self.request.options.cube_size
            or automatic_cube_size(statistics.rows, self.schema),
            sample_key=self.sample_key,
        )

    def remaining_tree(self, revision: Revision) -> RemainingTree:
        return RemainingTree()

    def record(
        self,
        transaction: Transaction,
        revision: Revision,
        plan: TreePlan | None,
        statistics: InputStatistics,
    ) -> None:
        # The next rebuild must measure its rows again to repeat a warning about samples.
        may_be_rebuilt = plan is not None and not statistics.warnings
        keys = rebuild_key(self.table, plan) if plan and may_be_rebuilt else {}
        self.describe(transaction, revision, keys)

    def describe(
        self, transaction: Transaction, revision: Revision, rebuild: Mapping[str, str]
    ) -> None:
        """Set the table's schema and configuration; `rebuild` has the keys for the next rebuild."""
        options = self.request.options
        slices = options.new_slices(self.table)
        configuration = {
            **own_properties(self.request, self.table, self.schema),
            **option_keys(self.columns, revision),
            **self.column_stats_key,
            **options.automatic_keys(self.table, self.column_choice),
            **stored_keys(IndexConfiguration.read({}), revision),
            **slices_key(slices),
            **rebuild,
        }
        if self.request.address.name:
            configuration[RELATION_KEY] = self.request.address.name
        schema = with_slices(self.schema, revision.weight_columns) if slices else self.schema
        if self.table.snapshot.exists:
            transaction.metadata.replace_table(schema, configuration, self.request.comment)
        else:
            transaction.metadata.create_table(schema, configuration, self.request.comment)

    @property
    def _indexed(self) -> tuple[str, ...]:
        return tuple(transformer.column for transformer in self.transformers)


def own_properties(request: WriteRequest, table: OpenTable, schema: StructType) -> dict[str, str]:
    """The properties of a new or replaced table, without those of its index.

    Raises InvalidOptions if Delta rejects a user-supplied property, or if it belongs to the index.
    """
    given = request.properties
    if given is not None:
        given = checked_properties(table.spark, _property_texts(given))
    kept = _kept_properties(given, table.snapshot.configuration)
    special = any(_NEED_COLUMN_MAPPING & set(name) for name in schema.fieldNames())
    return {**kept, COLUMN_MAPPING_KEY: "name"} if special and not maps_columns(kept) else kept


def _kept_properties(given: Mapping[str, str] | None, present: Mapping[str, str]) -> dict[str, str]:
    """The user-supplied properties; without them, those that the table has."""
    own = {key: value for key, value in present.items() if not is_index_key(key)}
    if given is None:
        return own
    # Delta does not allow a table to switch column mapping off.
    mapping = {k: v for k, v in own.items() if k.startswith("delta.columnMapping.")}
    return {**mapping, **given}


def _property_texts(given: Mapping[str, Any]) -> dict[str, str]:
    """Table properties as text. Raises InvalidOptions."""
    if not isinstance(given, Mapping):
        raise InvalidOptions(f"properties must map names to values, got {given!r:.200}")
    texts = {}
    for key, value in given.items():
        if not isinstance(key, str):
            raise InvalidOptions(f"properties has the name {key!r:.200}, which is not a string")
        if is_index_key(key):
            raise InvalidOptions(
                f"properties may not set {key!r}, which belongs to the index of the table it was "
                "copied from; leave out the property, and set the index with columns_to_index, "
                "cube_size, column_stats, sample_key and slices"
            )
        if not isinstance(value, (str, bool, np.bool_, Number)):
            raise InvalidOptions(
                f"properties sets {key!r} to {value!r:.200}; use a string, a number or a boolean"
            )
        is_flag = isinstance(value, (bool, np.bool_))
        texts[key] = str(value).lower() if is_flag else str(value)
    return texts
