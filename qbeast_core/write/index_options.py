"""The options of an index as one write asks for them, and what they come to for a new index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from qbeast_core.errors import InvalidOptions, UnsupportedColumnType
from qbeast_core.locate.table import OpenTable
from qbeast_core.model.column_stats import (
    ColumnStats,
    column_stats_text,
    parse_column_stats,
    resolve_column_stats,
)
from qbeast_core.model.datatypes import SUPPORTED_SPARK_TYPES
from qbeast_core.model.transformer import Transformer, kinds_for, wanted_kind
from qbeast_core.options import (
    ALL,
    IndexedColumn,
    parse_automatic,
    parse_columns,
    parse_cube_size,
    parse_sample_key,
    parse_slices,
    resolve_columns,
    resolve_sample_key,
)
from qbeast_core.spark.candidates import candidate_columns, sample_candidates
from qbeast_core.tree.column_choice import ColumnChoice, choose_columns
from qbeast_core.write.known_index import is_guess
from qbeast_core.write.revision import (
    AUTOMATIC_KEY,
    CHOSEN_FROM_KEY,
    COLUMN_STATS_KEY,
    COLUMNS,
    CUBE_SIZE,
    KEY,
    chosen_automatically,
    chosen_from_key,
)


@dataclass(frozen=True)
class IndexOptions:
    """What a write says of the index; None where it says nothing."""

    columns: tuple[IndexedColumn, ...] | None
    automatic_columns: int | None
    """How many columns are to be chosen at most; None where they are named."""
    rechoose: bool
    """Whether columns that were chosen before are chosen anew by a rebuild."""
    cube_size: int | None
    """None for `auto`."""
    column_stats: Mapping[str, Any]
    sample_key: tuple[str, ...] | str | None
    slices: bool | None

    @staticmethod
    def parse(
        columns_to_index: str | Sequence[str] | None,
        cube_size: int | str,
        column_stats: str | Mapping[str, Any] | None = None,
        sample_key: str | Sequence[str] | None = None,
        slices: bool | None = None,
        rechoose: bool = False,
    ) -> IndexOptions:
        """The options of `write_table`. Raises InvalidOptions."""
        automatic = parse_automatic(columns_to_index)
        named = None if automatic is not None else columns_to_index
        return IndexOptions(
            columns=None if named is None else parse_columns(named),
            automatic_columns=automatic,
            rechoose=rechoose,
            cube_size=parse_cube_size(cube_size),
            column_stats=parse_column_stats(column_stats),
            sample_key=parse_sample_key(sample_key),
            slices=parse_slices(slices),
        )

    @property
    def says_columns(self) -> bool:
        """Whether the columns are named, or to be chosen; else those of the table are meant."""
        return self.columns is not None or self.automatic_columns is not None

    def check_new(self, table: OpenTable, schema: StructType) -> None:
        """Find what a new index over rows of this schema would fail at. Raises InvalidOptions."""
        self.new_sample_key(table, schema)
        columns = self.known_columns(table, schema)
        if columns is not None:
            self.stats_of(resolve_columns(columns, schema))
        else:
            self.check_columns(schema)

    def check_columns(self, schema: StructType) -> None:
        """Raises InvalidOptions where rows of this schema do not have the columns, or none that
        could be chosen."""
        if self.columns is not None:
            resolve_columns(self.columns, schema)
        elif not candidate_columns(schema):
            raise UnsupportedColumnType(
                "columns_to_index 'auto': no column has a type that can be indexed; types that "
                f"can: {', '.join(SUPPORTED_SPARK_TYPES)}"
            )

    def stats_of(self, transformers: Sequence[Transformer]) -> tuple[ColumnStats, ...]:
        """What is said beforehand of each indexed column. Raises InvalidOptions."""
        return resolve_column_stats(self.column_stats, transformers)

    def new_columns(
        self, table: OpenTable, rows: DataFrame, schema: StructType
    ) -> tuple[tuple[IndexedColumn, ...], ColumnChoice | None]:
        """The columns of a new index, and how they were chosen if they are chosen now."""
        known = self.known_columns(table, schema)
        if known is not None:
            return known, None
        at_most = self.automatic_columns or len(self._present_columns(table))
        return self._chosen(rows, schema, at_most)

    def columns_for(
        self, rows: DataFrame, schema: StructType
    ) -> tuple[tuple[IndexedColumn, ...], ColumnChoice | None]:
        """The columns that are named, or those chosen for the rows."""
        if self.columns is not None:
            return self.columns, None
        return self._chosen(rows, schema, self.automatic_columns or 1)

    def known_columns(
        self, table: OpenTable, schema: StructType
    ) -> tuple[IndexedColumn, ...] | None:
        """Those asked for, or those of the table that is replaced; None if they are to be chosen.

        Columns that were chosen for the table before stay, unless they are a guess, as long as the
        new rows have them with types that can be indexed in the same way.
        """
        if self.columns is None and is_guess(table):
            return None
        return self.columns_of_tree(table, schema)

    def columns_of_tree(
        self, table: OpenTable, schema: StructType
    ) -> tuple[IndexedColumn, ...] | None:
        """The same for a rebuild by the tree of the table, whose rows are about as many: a guess
        stays then."""
        if self.columns is not None:
            return self.columns
        stored = table.snapshot.configuration
        if self.automatic_columns is None:
            return self._present_columns(table)
        if self.rechoose or not chosen_automatically(stored, COLUMNS):
            return None
        present = self._present_columns(table)
        kinds = {name: kinds_for(data_type) for name, data_type in candidate_columns(schema)}
        fit = (
            column.name in kinds and (column.kind is None or column.kind in kinds[column.name])
            for column in present
        )
        return present if all(fit) else None

    def _chosen(
        self, rows: DataFrame, schema: StructType, at_most: int
    ) -> tuple[tuple[IndexedColumn, ...], ColumnChoice]:
        choice = choose_columns(sample_candidates(rows, schema), at_most)
        return tuple(IndexedColumn(column.name, column.kind) for column in choice.columns), choice

    def _present_columns(self, table: OpenTable) -> tuple[IndexedColumn, ...]:
        configuration = table.configuration
        if configuration.last_revision_id is None:
            raise InvalidOptions(
                "columns_to_index is needed to create a table with an index; name the columns "
                "that filters use most, such as ['ts', 'user_id:hash'], or let 'auto' choose them"
            )
        return tuple(
            IndexedColumn(transformer.column, wanted_kind(transformer))
            for transformer in configuration.latest.transformers
        )

    def new_sample_key(self, table: OpenTable, schema: StructType) -> tuple[str, ...]:
        """The sample key of a new index; empty for none."""
        wanted = self._wanted_sample_key(table)
        return () if wanted is None else resolve_sample_key(wanted, schema)

    def _wanted_sample_key(self, table: OpenTable) -> tuple[str, ...] | str | None:
        """The one asked for. A rebuild that does not say by which columns keeps the table's."""
        known = table.configuration
        if self.sample_key is not None or self.says_columns or known.last_revision_id is None:
            return self.sample_key
        if chosen_automatically(table.snapshot.configuration, KEY):
            return ALL
        return known.latest.sample_key or None

    def new_slices(self, table: OpenTable) -> bool:
        """Whether a new index stores slices. A rebuild that says neither that nor by which columns
        keeps to what the table does."""
        if self.slices is not None:
            return self.slices
        return table.snapshot.stores_slices and not self.says_columns

    def left_open(self, table: OpenTable, choice: ColumnChoice | None) -> dict[str, str]:
        """The keys that store which options the write was left to choose, where there are some.

        `choice` is how it chose the columns; None for columns that were known.
        """
        were_chosen = chosen_automatically(table.snapshot.configuration, COLUMNS)
        options = {
            COLUMNS: self.automatic_columns is not None or (were_chosen and not self.says_columns),
            CUBE_SIZE: self.cube_size is None,
            KEY: self._wanted_sample_key(table) == ALL,
        }
        names = [name for name, is_open in options.items() if is_open]
        keys = {AUTOMATIC_KEY: ",".join(names)} if names else {}
        if choice is not None:
            return keys | chosen_from_key(choice)
        known = table.snapshot.configuration.get(CHOSEN_FROM_KEY)
        return keys | ({CHOSEN_FROM_KEY: known} if known and options[COLUMNS] else {})

    def kept_by_append(self, stored: Mapping[str, str]) -> dict[str, str]:
        """A table's configuration after an append, but for the index; a given cube size is not
        automatic any more."""
        left = [name for name in stored.get(AUTOMATIC_KEY, "").split(",") if name]
        if self.cube_size is not None:
            left = [name for name in left if name != CUBE_SIZE]
        kept = {key: value for key, value in stored.items() if key != AUTOMATIC_KEY}
        return {**kept, AUTOMATIC_KEY: ",".join(left)} if left else kept

    def given_stats(self, transformers: Sequence[Transformer]) -> dict[str, str]:
        """The key that stores what the user said of the columns, where that was anything."""
        text = column_stats_text(self.stats_of(transformers), transformers)
        return {COLUMN_STATS_KEY: text} if text else {}
