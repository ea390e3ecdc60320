"""Choose the revision of a write (docs/format.md 3.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest

from pyspark.sql.types import StructType

from qbeast_core.errors import IndexMismatch
from qbeast_core.model.datatypes import now_millis
from qbeast_core.model.revision import FIRST_REVISION_ID, Revision, next_revision
from qbeast_core.model.transformation import (
    EmptyTransformation,
    HashTransformation,
    NumericQuantiles,
    StringQuantiles,
    Transformation,
    UnusableTransformation,
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
    wanted_kind,
)
from qbeast_core.options import ALL, IndexedColumn, resolve_columns, resolve_sample_key
from qbeast_core.spark.statistics import Bounds, InputStatistics
from qbeast_core.write.index_properties import AutomaticOption, is_automatic

_BY_QUANTILES = (NumericQuantilesTransformer, StringQuantilesTransformer)


def first_revision(
    transformers: Sequence[Transformer],
    statistics: InputStatistics,
    *,
    table_id: str,
    cube_size: int,
    sample_key: tuple[str, ...] = (),
) -> Revision:
    """The revision of a new or replaced table: number 1, or number 0 if it has no rows."""
    empty = Revision(
        revision_id=0,
        timestamp_millis=now_millis(),
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
        revision_id=FIRST_REVISION_ID,
        transformations=_observed(empty, transformers, statistics, FIRST_REVISION_ID),
    )


def rebuilt_revision(last: Revision) -> Revision:
    """The first revision of a rebuilt table whose rows stay in the space of its last one."""
    return replace(last, revision_id=FIRST_REVISION_ID, timestamp_millis=now_millis())


def continued_revision(
    current: Revision,
    transformers: Sequence[Transformer],
    statistics: InputStatistics,
    *,
    revision_id: int,
    cube_size: int | None,
) -> Revision:
    """The revision of further rows: `current` if they fit it, else a new one.

    Args:
        current: any of the table's revisions.
        revision_id: the number of a new one.
        cube_size: in rows; None to keep that of `current`.
    """
    observed = _observed(current, transformers, statistics, revision_id)
    needed = next_revision(
        current,
        observed,
        now_millis(),
        revision_id=revision_id,
        transformers=tuple(transformers),
        desired_cube_size=cube_size,
    )
    return needed or current


def continued_transformers(
    current: Revision, wanted: Sequence[IndexedColumn] | None, schema: StructType, table: str
) -> tuple[Transformer, ...]:
    """The transformers of an append: those of the table, or those that the user sets.

    A column whose type has changed keeps its kind of index, if the new type supports it.

    Raises:
        IndexMismatch: the columns, or their order, differ from those of the table's index.
    """
    if wanted is not None:
        asked = [column.name.lower() for column in wanted]
        if asked != [name.lower() for name in current.columns]:
            raise IndexMismatch(
                f"{table} is indexed by {', '.join(current.columns)}, but the write asks for "
                f"{', '.join(column.name for column in wanted)}; an append cannot change the "
                "columns: set columns_to_index back, or write all rows of the table again with "
                "mode='overwrite', overwrite_schema=False and all index options"
            )
    kinds = [column.kind for column in wanted] if wanted else [None] * len(current.columns)
    return tuple(
        _continued(old, kind or _replaced_kind(old, transformation), schema)
        for old, kind, transformation in zip_longest(
            current.transformers, kinds, current.transformations
        )
    )


def _replaced_kind(old: Transformer, transformation: Transformation | None) -> str | None:
    """The kind of a column that cannot keep its own; None if it can.

    Histograms are no longer measured, so one that is not sorted cannot get a new one.
    """
    is_unusable = isinstance(transformation, UnusableTransformation)
    return "quantiles" if is_unusable and isinstance(old, StringHistogramTransformer) else None


def _continued(old: Transformer, kind: str | None, schema: StructType) -> Transformer:
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    present = types.get(old.column, "")
    kept = kept_kind(old, present)
    # qbeast-spark declares hashes of dates and timestamps, but cannot write any.
    is_possible = wanted_kind(old) == kept
    # The columns of a converted table have no transformer yet, only the requested kind.
    is_chosen = is_possible and not isinstance(old, EmptyTransformer)
    if kind is None and is_chosen and old.is_for(present):
        return old
    column = IndexedColumn(old.column, kind or kept)
    (new,) = resolve_columns([column], schema, case_sensitive=True, may_be_identity=True)
    return new


def renamed_staging(staging: Revision, columns: Sequence[IndexedColumn]) -> Revision:
    """A staging revision, under which no file is indexed, for other columns."""
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
    """Raise IndexMismatch if the table's sample key differs from the requested one."""
    if wanted == ALL and is_automatic(configuration, AutomaticOption.SAMPLE_KEY):
        return
    if resolve_sample_key(wanted, schema, may_be_identity=True) != current.sample_key:
        asked = ALL if wanted == ALL else ", ".join(wanted)
        key = ", ".join(current.sample_key)
        has = f"the sample key {key}" if key else "no sample key"
        raise IndexMismatch(
            f"{table} has {has}, but the write asks for sample_key {asked}; a table samples "
            "all its rows by the same columns: set sample_key back, or write all rows of the "
            "table again with mode='overwrite', overwrite_schema=False and all index options"
        )


def check_slices(wanted: bool, has_slices: bool, table: str) -> None:
    """Raise IndexMismatch if the write asks for slices and the table has none, or vice versa."""
    if wanted != has_slices:
        raise IndexMismatch(
            f"{table} {'stores' if has_slices else 'does not store'} slices, but the write asks "
            f"for slices={wanted}; a write cannot change this for existing files: set slices back, "
            "or write all rows of the table again with mode='overwrite', overwrite_schema=False "
            "and all index options"
        )


def _observed(
    current: Revision,
    transformers: Sequence[Transformer],
    statistics: InputStatistics,
    revision_id: int,
) -> tuple[Transformation, ...]:
    """The transformation of each column that these rows alone need."""
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
    """The quantiles of a column from the user, else from the rows.

    Rows need nothing (the empty transformation) if the column has quantiles to `keep`, because
    quantiles accept any value, or if there are fewer than two values to compute quantiles from.
    """
    quantiles = statistics.given_quantiles.get(position, ())
    if not quantiles and not keep:
        quantiles = statistics.sample.quantiles(position, statistics.bounds[position])
    if not quantiles:
        return EmptyTransformation()
    if isinstance(transformer, NumericQuantilesTransformer):
        return NumericQuantiles(tuple(map(float, quantiles)), transformer.data_type)
    return StringQuantiles(tuple(map(str, quantiles)))
