"""The index metadata of a table that a write stores, with columns chosen from the first rows.

The automatic columns of a table that was created or converted without rows are a guess from their
types alone. While no file is indexed by a guess, the first rows replace it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from qbeast_core.delta.transaction import Transaction
from qbeast_core.locate.open_table import OpenTable
from qbeast_core.model.json_text import parse_id
from qbeast_core.model.revision import CUBE_SIZE_KEY, IndexConfiguration, Revision
from qbeast_core.options import IndexedColumn
from qbeast_core.spark.columns import column
from qbeast_core.spark.indexable_columns import indexable_columns, sample_indexable_columns
from qbeast_core.spark.slices import with_slices
from qbeast_core.tree.column_choice import ENOUGH_ROWS, ColumnChoice, choose_columns
from qbeast_core.write.index_properties import (
    CHOSEN_FROM_KEY,
    AutomaticOption,
    chosen_from_key,
    is_automatic,
    option_keys,
    stored_keys,
)
from qbeast_core.write.revision import renamed_staging


@dataclass(frozen=True)
class IndexMetadata:
    """The properties, revisions and schema that a write stores for the table's index."""

    table: OpenTable
    """The table as committed."""
    properties: Mapping[str, str]
    """All properties of the table."""
    configuration: IndexConfiguration
    schema: StructType | None = None
    """The table's new schema, if its slices depend on the chosen columns; else None."""
    column_choice: ColumnChoice | None = None
    """How the columns were chosen, if these rows replaced a guess."""

    @staticmethod
    def of(table: OpenTable) -> IndexMetadata:
        """The metadata as committed."""
        return IndexMetadata(table, table.snapshot.configuration, table.configuration)

    @property
    def writable_revision(self) -> Revision:
        """The latest revision, in the form that the next rows continue."""
        return (
            self.configuration.latest if self.column_choice else self.table.index.writable_revision
        )

    @staticmethod
    def for_rows(
        table: OpenTable, rows: DataFrame | None, at_most: int | None = None
    ) -> IndexMetadata:
        """The metadata for the table's rows and new rows, which together replace a guess.

        Args:
            rows: the new rows in the table's schema; read once more if they replace a guess.
            at_most: the maximum number of columns to choose; None for as many as the table has.
        """
        metadata = IndexMetadata.of(table)
        if not is_replaceable_guess(table):
            return metadata
        # New rows may lack columns that Delta generates.
        schema = table.schema
        indexable = [column(name) for name, _ in indexable_columns(schema)]
        present = [column(name) for name, _ in indexable_columns(table.snapshot.schema)]
        every_row = table.snapshot.dataframe().select(*present)
        if rows is not None:
            every_row = every_row.unionByName(rows.select(*indexable), allowMissingColumns=True)
        choice = choose_columns(
            sample_indexable_columns(every_row, schema),
            at_most or metadata.configuration.latest.dimensions,
        )
        return metadata._with_choice(choice) if choice.rows else metadata

    def with_revision(self, revision: Revision, properties: Mapping[str, str]) -> IndexMetadata:
        """The metadata with a new latest revision and further properties.

        Revisions without files leave it. Their numbers are below the latest, so none is used again.
        The last one stays, because another writer may be adding rows to it.
        """
        left = self.table.index.revisions_without_files - {self.configuration.last_revision_id}
        used = self.configuration.without(left)
        unused = self.configuration.write().keys() - used.write().keys()
        all_properties = {
            **{key: value for key, value in self.properties.items() if key not in unused},
            **properties,
            CUBE_SIZE_KEY: str(revision.desired_cube_size),
            **stored_keys(used, revision),
        }
        return replace(self, properties=all_properties, configuration=used.with_revision(revision))

    def store(self, transaction: Transaction) -> None:
        """Store the configuration in the table, and the schema if it changes."""
        transaction.metadata.update_configuration(self.properties, self.schema)

    def _with_choice(self, choice: ColumnChoice) -> IndexMetadata:
        columns = tuple(IndexedColumn(column.name, column.kind) for column in choice.columns)
        staging = renamed_staging(self.configuration.latest, columns)
        configuration = self.configuration.with_revision(staging)
        properties = {
            **self.properties,
            **option_keys(columns, staging),
            **chosen_from_key(choice),
            **configuration.write(),
        }
        slices = with_slices(self.table.schema, staging.weight_columns)
        stores_slices = self.table.snapshot.stores_slices
        return IndexMetadata(
            self.table, properties, configuration, slices if stores_slices else None, choice
        )


def is_guess(table: OpenTable) -> bool:
    """Whether the table's columns were chosen automatically from too few rows."""
    properties = table.snapshot.configuration
    if not is_automatic(properties, AutomaticOption.COLUMNS):
        return False
    rows = parse_id(properties.get(CHOSEN_FROM_KEY, ""))
    if rows is not None:
        return rows < ENOUGH_ROWS
    # Without the number, the choice of a table without files counts as a guess.
    return table.configuration.latest.is_staging and not table.snapshot.files


def is_replaceable_guess(table: OpenTable) -> bool:
    """Whether the table's columns are a guess that indexes no file, so the next rows replace it."""
    if not is_guess(table):
        return False
    snapshot, latest = table.snapshot, table.configuration.latest
    # Other writers' files store slices, which depend on the guess if there is no sample key.
    needs_guess = snapshot.stores_slices and snapshot.files and not latest.sample_key
    return latest.is_staging and not needs_guess
