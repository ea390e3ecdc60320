"""Which revision a write belongs to (docs/format.md 3.6)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest

from pyspark.sql.types import StructType

from qbeast_core.errors import IndexMismatch
from qbeast_core.model.revision import (
    COLUMNS_KEY,
    IndexConfiguration,
    Revision,
    next_revision,
)
from qbeast_core.model.slices import SLICES_KEY
from qbeast_core.model.transformation import (
    EmptyTransformation,
    HashTransformation,
    NumericQuantiles,
    StringQuantiles,
    Transformation,
    draw_hash_null_value,
    draw_null_value,
    range_transformation,
)
from qbeast_core.model.transformer import (
    EmptyTransformer,
    LinearTransformer,
    NumericQuantilesTransformer,
    StringHistogramTransformer,
    StringQuantilesTransformer,
    Transformer,
    kept_kind,
)
from qbeast_core.options import ALL, IndexedColumn, resolve_columns, resolve_sample_key
from qbeast_core.spark.statistics import Bounds, InputStatistics
from qbeast_core.tree.column_choice import ColumnChoice

_FIRST_REVISION_ID = 1
_BY_QUANTILES = (NumericQuantilesTransformer, StringQuantilesTransformer)
COLUMN_STATS_KEY = "columnStats"
AUTOMATIC_KEY = "qbeast.automatic"
"""What was left to the first write to choose, names of options separated by commas."""
CHOSEN_FROM_KEY = "qbeast.chosenFrom"
"""How many rows were looked at to choose the columns, where they were left to choose."""
COLUMNS, CUBE_SIZE, KEY = "columns_to_index", "cube_size", "sample_key"
_OPTION_KEYS = frozenset((COLUMNS_KEY, "cubeSize", "tableFormat", COLUMN_STATS_KEY))


def first_revision(
    transformers: Sequence[Transformer],
    statistics: InputStatistics,
    *,
    table_id: str,
    cube_size: int,
    sample_key: tuple[str, ...] = (),
) -> Revision:
    """The revision of a new or replaced table: number 1, or number 0 while there are no rows."""
    empty = Revision(
        revision_id=0,
        timestamp_millis=_now_millis(),
        table_id=table_id,
        desired_cube_size=cube_size,
        transformers=tuple(transformers),
        transformations=(),
        sample_key=sample_key,
    )
    if not statistics.rows:
        return empty
    return replace(
        empty,
        revision_id=_FIRST_REVISION_ID,
        transformations=_observed(empty, transformers, statistics, _FIRST_REVISION_ID),
    )


def rebuilt_revision(last: Revision) -> Revision:
    """The revision of a table that is replaced by rows in the space of its last one."""
    return replace(last, revision_id=_FIRST_REVISION_ID, timestamp_millis=_now_millis())


def continued_revision(
    configuration: IndexConfiguration,
    current: Revision,
    transformers: Sequence[Transformer],
    statistics: InputStatistics,
    *,
    cube_size: int | None,
) -> Revision:
    """The revision that more rows belong to: `current` if they fit, else a new one.

    `current` may be any of the table's revisions; the new one has a number that none of them has.
    """
    revision_id = configuration.unused_id
    observed = _observed(current, transformers, statistics, revision_id)
    needed = next_revision(
        current,
        observed,
        _now_millis(),
        revision_id=revision_id,
        transformers=tuple(transformers),
        desired_cube_size=cube_size,
    )
    return needed or current


def continued_transformers(
    current: Revision, wanted: Sequence[IndexedColumn] | None, schema: StructType, table: str
) -> tuple[Transformer, ...]:
    """The transformers of an append: those of the table, or what the user asks for explicitly.

    A column that has another type now keeps the kind of its index, if that goes with the type.

    Raises:
        IndexMismatch: other columns, or another order of them, than the table is indexed by.
    """
    if wanted is not None:
        asked = [column.name.lower() for column in wanted]
        if asked != [name.lower() for name in current.columns]:
            raise IndexMismatch(
                f"{table} is indexed by {', '.join(current.columns)}, the write asks for "
                f"{', '.join(column.name for column in wanted)}; an append cannot change the "
                "columns: leave columns_to_index as it was, or rebuild the table with "
                "mode='overwrite', which keeps only the rows it is given"
            )
    kinds = [column.kind for column in wanted] if wanted else [None] * len(current.columns)
    return tuple(
        _continued(old, kind, schema) for old, kind in zip(current.transformers, kinds, strict=True)
    )


def _continued(old: Transformer, kind: str | None, schema: StructType) -> Transformer:
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    present = types.get(old.column, "")
    # A converted table's columns have no transformer yet, only what was asked for.
    if kind is None and not isinstance(old, EmptyTransformer) and old.is_for(present):
        return old
    column = IndexedColumn(old.column, kind or kept_kind(old, present))
    (new,) = resolve_columns([column], schema, case_sensitive=True, may_be_identity=True)
    return new


def chosen_automatically(configuration: Mapping[str, str], option: str) -> bool:
    """Whether an option of a table was left to its first write to choose."""
    return option in configuration.get(AUTOMATIC_KEY, "").split(",")


def chosen_from_key(choice: ColumnChoice) -> dict[str, str]:
    """The key that stores how many rows the columns were chosen from."""
    return {CHOSEN_FROM_KEY: str(choice.rows)}


def renamed_staging(staging: Revision, columns: Sequence[IndexedColumn]) -> Revision:
    """A staging revision for other columns, under which nothing is indexed."""
    transformers = tuple(EmptyTransformer(column.name, column.kind) for column in columns)
    return replace(
        staging,
        transformers=transformers,
        transformations=tuple(EmptyTransformation() for _ in transformers),
    )


def check_sample_key(
    wanted: Sequence[str] | str,
    current: Revision,
    configuration: Mapping[str, str],
    schema: StructType,
    table: str,
) -> None:
    """Raises IndexMismatch where a table's sample key is another one than is asked for."""
    if wanted == ALL and chosen_automatically(configuration, KEY):
        return
    found = () if wanted == ALL else resolve_sample_key(wanted, schema, may_be_identity=True)
    if wanted == ALL or found != current.sample_key:
        asked = ALL if wanted == ALL else ", ".join(wanted)
        has = f"the sample key {', '.join(current.sample_key)}" if current.sample_key else "none"
        raise IndexMismatch(
            f"{table} has {has}, the write asks for sample_key {asked}; all its rows were "
            "placed by the one it has: leave sample_key as it was, or rebuild the table with "
            "mode='overwrite', which keeps only the rows it is given"
        )


def check_slices(wanted: bool, stored: bool, table: str) -> None:
    """Raises IndexMismatch where a table stores slices and is not to, or the other way round."""
    if wanted != stored:
        raise IndexMismatch(
            f"{table} {'stores' if stored else 'does not store'} slices, the write asks for slices "
            f"{wanted}; its files have the column or not: leave slices as it was, or rebuild the "
            "table with mode='overwrite', which keeps only the rows it is given"
        )


def stored_keys(configuration: IndexConfiguration, revision: Revision) -> dict[str, str]:
    """The `qbeast.*` keys once the revision is the last one of the configuration."""
    if revision.revision_id == _FIRST_REVISION_ID and not configuration.revisions:
        configuration = configuration.with_revision(Revision.staging(revision))
    return configuration.with_revision(revision).write()


def option_keys(columns: Sequence[IndexedColumn], revision: Revision) -> dict[str, str]:
    """The options as qbeast-spark stores them beside its revisions (docs/format.md 2.1)."""
    return {
        COLUMNS_KEY: ",".join(
            f"{transformer.column}:{column.kind}" if column.kind else transformer.column
            for column, transformer in zip(columns, revision.transformers, strict=True)
        ),
        "cubeSize": str(revision.desired_cube_size),
        "tableFormat": "delta",
        COLUMN_STATS_KEY: "",
    }


def slices_key(slices: bool) -> dict[str, str]:
    """The key that stores whether the table stores slices, where it does."""
    return {SLICES_KEY: "true"} if slices else {}


def is_index_key(key: str) -> bool:
    """Whether a key of a table's configuration belongs to the index."""
    return key.startswith("qbeast.") or key in _OPTION_KEYS


def _observed(
    current: Revision,
    transformers: Sequence[Transformer],
    statistics: InputStatistics,
    revision_id: int,
) -> tuple[Transformation, ...]:
    """What the rows alone ask of each column's transformation."""
    has_quantiles = [
        old == new and isinstance(transformation, NumericQuantiles | StringQuantiles)
        for old, new, transformation in zip_longest(
            current.transformers, transformers, current.transformations
        )
    ]
    return tuple(
        _observed_quantiles(transformer, statistics, position, keep=has_quantiles[position])
        if isinstance(transformer, _BY_QUANTILES)
        else _observed_column(transformer, statistics.bounds[position], revision_id)
        for position, transformer in enumerate(transformers)
    )


def _observed_column(transformer: Transformer, bounds: Bounds, revision_id: int) -> Transformation:
    column = transformer.column
    if isinstance(transformer, LinearTransformer):
        draw = partial(draw_null_value, column, revision_id)
        return range_transformation(bounds.minimum, bounds.maximum, transformer.data_type, draw)
    if isinstance(transformer, StringHistogramTransformer):
        return EmptyTransformation()
    return HashTransformation(draw_hash_null_value(column, revision_id))


def _observed_quantiles(
    transformer: Transformer, statistics: InputStatistics, position: int, *, keep: bool
) -> Transformation:
    """The quantiles of a column that the user gives, else those of the rows.

    Rows ask for nothing (the empty transformation) where the column has quantiles that it is to
    `keep`, for these take any value, or where no two values are there to make them of.
    """
    quantiles = statistics.given_quantiles.get(position, ())
    if not quantiles and not keep:
        quantiles = statistics.sample.quantiles(position, statistics.bounds[position])
    if not quantiles:
        return EmptyTransformation()
    if isinstance(transformer, NumericQuantilesTransformer):
        return NumericQuantiles(tuple(map(float, quantiles)), transformer.data_type)
    return StringQuantiles(tuple(map(str, quantiles)))


def _now_millis() -> int:
    return int(time.time() * 1000)
