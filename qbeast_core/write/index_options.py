"""The index options of one write, and their resolved values for a new index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from qbeast_core.errors import InvalidOptions, UnsupportedColumnType
from qbeast_core.locate.open_table import OpenTable
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
    parse_flag,
    parse_sample_key,
    resolve_columns,
    resolve_sample_key,
)
from qbeast_core.spark.indexable_columns import indexable_columns, sample_indexable_columns
from qbeast_core.spark.slices import check_weight_columns
from qbeast_core.tree.column_choice import ColumnChoice, choose_columns
from qbeast_core.write.index_metadata import is_guess
from qbeast_core.write.index_properties import (
    CHOSEN_FROM_KEY,
    COLUMN_STATS_KEY,
    AutomaticOption,
    automatic_key,
    chosen_from_key,
    is_automatic,
    without_automatic,
)


@dataclass(frozen=True)
class IndexOptions:
    """The index options of a write; None for those that are not set."""

    columns: tuple[IndexedColumn, ...] | None
    automatic_columns: int | None
    """The maximum number of columns to choose; None if `auto` is not set."""
    rechoose: bool
    """Whether a rebuild chooses automatic columns again."""
    cube_size: int | None
    """None for `auto`."""
    column_stats: Mapping[str, Any]
    sample_key: tuple[str, ...] | str | None
    slices: bool | None
    keeps_choices: bool = False
    """Whether columns and a sample key that were chosen automatically stay what they are."""

    @staticmethod
    def parse(
        *,
        columns_to_index: str | Sequence[str] | None,
        cube_size: int | str,
        column_stats: str | Mapping[str, Any] | None = None,
        sample_key: str | Sequence[str] | None = None,
        slices: bool | None = None,
        rechoose: bool = False,
    ) -> IndexOptions:
        """Parse the options of `write_table`. Raises InvalidOptions."""
        automatic = parse_automatic(columns_to_index)
        named = None if automatic is not None else columns_to_index
        return IndexOptions(
            columns=None if named is None else parse_columns(named),
            automatic_columns=automatic,
            rechoose=rechoose,
            cube_size=parse_cube_size(cube_size),
            column_stats=parse_column_stats(column_stats),
            sample_key=parse_sample_key(sample_key),
            slices=parse_flag("slices", slices),
        )

    @property
    def sets_columns(self) -> bool:
        """Whether the option is set, to names or to `auto`; if not, the table's columns apply."""
        return self.columns is not None or self.automatic_columns is not None

    def check_new(self, table: OpenTable, schema: StructType) -> None:
        """Check the options for a new index over this schema. Raises InvalidOptions."""
        key = self.new_sample_key(table, schema)
        columns = self.known_columns(table, schema)
        transformers = () if columns is None else resolve_columns(columns, schema)
        if columns is not None:
            self.stats_of(transformers)
        else:
            self.check_columns(schema)
        if self.new_slices(table):
            check_weight_columns(schema, key or [each.column for each in transformers])

    def check_columns(self, schema: StructType) -> None:
        """Raise InvalidOptions if the schema lacks the columns, or has none to choose from."""
        if self.columns is not None:
            resolve_columns(self.columns, schema)
        elif not indexable_columns(schema):
            raise UnsupportedColumnType(
                "columns_to_index 'auto': no column has a type that can be indexed; the supported "
                f"types are {', '.join(SUPPORTED_SPARK_TYPES)}"
            )

    def stats_of(self, transformers: Sequence[Transformer]) -> tuple[ColumnStats, ...]:
        """The option `column_stats` of each indexed column. Raises InvalidOptions."""
        return resolve_column_stats(self.column_stats, transformers)

    def new_columns(
        self, table: OpenTable, rows: DataFrame, schema: StructType
    ) -> tuple[tuple[IndexedColumn, ...], ColumnChoice | None]:
        """The columns of a new index, and the choice if this write makes it."""
        known = self.known_columns(table, schema)
        if known is not None:
            return known, None
        at_most = self.automatic_columns or len(self._present_columns(table))
        return self._chosen(rows, schema, at_most)

    def columns_for(
        self, rows: DataFrame, schema: StructType
    ) -> tuple[tuple[IndexedColumn, ...], ColumnChoice | None]:
        """The named columns, or columns chosen for the rows."""
        if self.columns is not None:
            return self.columns, None
        return self._chosen(rows, schema, self.automatic_columns or 1)

    def known_columns(
        self, table: OpenTable, schema: StructType, *, keeps_guess: bool = False
    ) -> tuple[IndexedColumn, ...] | None:
        """The named columns, or those of the replaced table; None if they must be chosen.

        A rebuild keeps columns that were chosen before, unless they are a guess or the new rows
        lack a column or have it with a type that the same kind of index does not support.

        Args:
            keeps_guess: whether the columns are kept even if they are a guess.
        """
        if self.columns is not None:
            return self.columns
        if not (keeps_guess or self.keeps_choices) and is_guess(table):
            return None
        if self.automatic_columns is None:
            return self._present_columns(table)
        is_chosen = is_automatic(table.snapshot.configuration, AutomaticOption.COLUMNS)
        if self.rechoose or not is_chosen:
            return None
        present = self._present_columns(table)
        kinds = {name: kinds_for(data_type) for name, data_type in indexable_columns(schema)}
        fit = (
            column.name in kinds and (column.kind is None or column.kind in kinds[column.name])
            for column in present
        )
        return present if all(fit) else None

    def _chosen(
        self, rows: DataFrame, schema: StructType, at_most: int
    ) -> tuple[tuple[IndexedColumn, ...], ColumnChoice]:
        choice = choose_columns(sample_indexable_columns(rows, schema), at_most)
        return tuple(IndexedColumn(column.name, column.kind) for column in choice.columns), choice

    def _present_columns(self, table: OpenTable) -> tuple[IndexedColumn, ...]:
        configuration = table.configuration
        if configuration.last_revision_id is None:
            raise InvalidOptions(
                "columns_to_index is needed to create a table with an index; name the columns "
                "that queries filter by most, such as ['ts', 'user_id:hash'], or use 'auto'"
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
        """The option, or the table's sample key in a rebuild that sets no columns either."""
        known = table.configuration
        if self.sample_key is not None or self.sets_columns or known.last_revision_id is None:
            return self.sample_key
        if self._has_automatic_key(table) and not self.keeps_choices:
            return ALL
        return known.latest.sample_key or None

    @staticmethod
    def _has_automatic_key(table: OpenTable) -> bool:
        return is_automatic(table.snapshot.configuration, AutomaticOption.SAMPLE_KEY)

    def new_slices(self, table: OpenTable) -> bool:
        """Whether a new index stores slices.

        A rebuild that sets neither this option nor the columns does what the table does.
        """
        if self.slices is not None:
            return self.slices
        return table.snapshot.stores_slices and not self.sets_columns

    def automatic_keys(self, table: OpenTable, choice: ColumnChoice | None) -> dict[str, str]:
        """The keys that record the options that the write chose by itself; empty for none.

        Args:
            choice: how the write chose the columns; None if they were known.
        """
        properties = table.snapshot.configuration
        are_kept = is_automatic(properties, AutomaticOption.COLUMNS) and not self.sets_columns
        options = {
            AutomaticOption.COLUMNS: self.automatic_columns is not None or are_kept,
            AutomaticOption.CUBE_SIZE: self.cube_size is None,
            AutomaticOption.SAMPLE_KEY: self._wanted_sample_key(table) == ALL
            or (self.keeps_choices and self._has_automatic_key(table)),
        }
        keys = automatic_key(option.value for option, is_open in options.items() if is_open)
        if choice is not None:
            return keys | chosen_from_key(choice)
        rows = properties.get(CHOSEN_FROM_KEY)
        return keys | {CHOSEN_FROM_KEY: rows} if rows and options[AutomaticOption.COLUMNS] else keys

    def kept_by_append(self, properties: Mapping[str, str]) -> dict[str, str]:
        """The table's properties after an append, before changes to the index.

        A cube size that the append sets is no longer automatic.
        """
        if self.cube_size is None:
            return dict(properties)
        return without_automatic(properties, AutomaticOption.CUBE_SIZE)

    def column_stats_key(self, transformers: Sequence[Transformer]) -> dict[str, str]:
        """The key that stores `column_stats`; empty if the option is not set."""
        text = column_stats_text(self.stats_of(transformers), transformers)
        return {COLUMN_STATS_KEY: text} if text else {}
