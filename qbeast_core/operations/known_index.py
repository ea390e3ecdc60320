"""The index that a table has for the rows that join it.

A table that was created or converted without rows has a guess for its automatic columns, made by
their types alone. A guess is not kept: while nothing is indexed by it, the first rows decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.delta.transaction import Transaction
from qbeast_core.index import TableIndex
from qbeast_core.model.revision import IndexConfiguration, Revision
from qbeast_core.operations.revisions import (
    CHOSEN_FROM_KEY,
    COLUMNS,
    CUBE_SIZE,
    chosen_automatically,
    chosen_from_key,
    option_keys,
    renamed_staging,
    stored_keys,
)
from qbeast_core.operations.sizing import automatic_cube_size, outgrown_cube_size
from qbeast_core.options import IndexedColumn
from qbeast_core.spark.candidates import candidate_columns, sample_candidates
from qbeast_core.spark.columns import column
from qbeast_core.spark.slices import with_slices
from qbeast_core.tree.column_choice import ENOUGH_ROWS, ColumnChoice, choose_columns


@dataclass(frozen=True)
class KnownIndex:
    """What a table's configuration says of its index, once its first rows have decided."""

    index: TableIndex
    """As the log has it."""
    stored: Mapping[str, str]
    """The table's whole configuration."""
    configuration: IndexConfiguration
    schema: StructType | None = None
    """The table's new schema, if its slices depend on the columns that were chosen."""
    column_choice: ColumnChoice | None = None
    """How the columns were chosen, if these rows decided."""

    @staticmethod
    def of(snapshot: TableSnapshot) -> KnownIndex:
        """The index as the log has it."""
        index = TableIndex.of(snapshot)
        return KnownIndex(index, snapshot.configuration, index.configuration)

    @property
    def current(self) -> Revision:
        """The latest revision, as more rows continue it."""
        return self.configuration.latest if self.column_choice else self.index.current

    @staticmethod
    def for_rows(
        snapshot: TableSnapshot, rows: DataFrame | None, at_most: int | None = None
    ) -> KnownIndex:
        """The index for the table's rows and those that join them; they decide while it is open.

        Args:
            rows: those that join, in the table's schema; read once more if they decide.
            at_most: how many columns may be chosen; None for as many as the table has.
        """
        known = KnownIndex.of(snapshot)
        if not is_open(snapshot):
            return known
        # New rows may lack what Delta generates.
        candidates = [column(name) for name, _ in candidate_columns(snapshot.schema)]
        every_row = snapshot.dataframe().select(*candidates)
        if rows is not None:
            every_row = every_row.unionByName(rows.select(*candidates))
        choice = choose_columns(
            sample_candidates(every_row, snapshot.schema),
            at_most or known.configuration.latest.dimensions,
        )
        return known._decided(snapshot, choice) if choice.rows else known

    def add(
        self, transaction: Transaction, revision: Revision, keys: Mapping[str, str] | None = None
    ) -> None:
        """Give the table a revision that becomes its latest, and further keys."""
        transaction.update_configuration(
            {
                **self.stored,
                **(keys or {}),
                "cubeSize": str(revision.desired_cube_size),
                **stored_keys(self.configuration, revision),
            },
            self.schema,
        )

    def _decided(self, snapshot: TableSnapshot, choice: ColumnChoice) -> KnownIndex:
        columns = tuple(IndexedColumn(column.name, column.kind) for column in choice.columns)
        staging = renamed_staging(self.configuration.latest, columns)
        configuration = self.configuration.with_revision(staging)
        stored = {
            **self.stored,
            **option_keys(columns, staging),
            **chosen_from_key(choice),
            **configuration.write(),
        }
        slices = with_slices(snapshot.schema, staging.weight_columns)
        return KnownIndex(
            self.index, stored, configuration, slices if snapshot.stores_slices else None, choice
        )


def is_guess(snapshot: TableSnapshot) -> bool:
    """Whether the table's columns were chosen automatically, from too few rows to tell."""
    stored = snapshot.configuration
    if not chosen_automatically(stored, COLUMNS):
        return False
    rows = stored.get(CHOSEN_FROM_KEY, "")
    if rows.isascii() and rows.isdecimal():
        return int(rows) < ENOUGH_ROWS
    # Older versions did not store it. What they chose for a table without files was a guess.
    return IndexConfiguration.read(stored).latest.is_staging and not snapshot.files


def is_open(snapshot: TableSnapshot) -> bool:
    """Whether the columns are a guess that the next rows replace: nothing is indexed by it yet."""
    if not is_guess(snapshot):
        return False
    latest = IndexConfiguration.read(snapshot.configuration).latest
    # Files of other writers have slices, whose weights the guess decides without a sample key.
    needs_guess = snapshot.stores_slices and snapshot.files and not latest.sample_key
    return latest.is_staging and not needs_guess


def fitting_cube_size(snapshot: TableSnapshot, current: Revision, more_rows: int) -> int | None:
    """The cube size that an automatic one becomes when rows join the table; None if it stays.

    While nothing is indexed it is that of a table with so many rows.
    """
    known = [file.rows for file in snapshot.files]
    if None in known or not chosen_automatically(snapshot.configuration, CUBE_SIZE):
        return None
    rows = sum(rows for rows in known if rows is not None) + more_rows
    if current.is_staging:
        return automatic_cube_size(rows, snapshot.schema)
    return outgrown_cube_size(current.desired_cube_size, rows, snapshot.schema)
