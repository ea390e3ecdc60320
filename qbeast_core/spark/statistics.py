"""The first pass over a query's rows: exact count and bounds, and a bounded uniform sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from qbeast_core import phases
from qbeast_core.errors import UnsupportedColumnType
from qbeast_core.jvm.catalyst import Catalyst
from qbeast_core.model.column_stats import ColumnStats
from qbeast_core.model.datatypes import FLOATING, Number
from qbeast_core.model.measured_quantiles import measured_numbers, measured_texts
from qbeast_core.model.revision import Revision
from qbeast_core.model.transformation import (
    HashTransformation,
    LinearTransformation,
    NumericQuantiles,
    StringHistogram,
    StringQuantiles,
)
from qbeast_core.model.transformer import (
    HashTransformer,
    LinearTransformer,
    NumericQuantilesTransformer,
    StringHistogramTransformer,
    StringQuantilesTransformer,
    Transformer,
)
from qbeast_core.spark import columns
from qbeast_core.spark.drawing import ROWS, aggregated_and_drawn, all_rows
from qbeast_core.tree.path import PathLayout

SAMPLED_TEXT = 128
"""The number of characters that the sample keeps of a string; quantiles rarely need more."""

_HIGH_CARDINALITY_SHARE = 0.5
"""If a column has more distinct values per sample row than this, it is written without Parquet's
dictionary. The dictionary would save little, and a range that needs one or two pages must read all
of it."""

_BOUNDED = (LinearTransformer, NumericQuantilesTransformer)
_TEXTS = (StringQuantilesTransformer, StringHistogramTransformer)


@dataclass(frozen=True)
class Bounds:
    """The smallest and the largest finite value of a column; None without such a value."""

    minimum: Number | None
    maximum: Number | None


@dataclass(frozen=True, eq=False)
class RowSample:
    """A uniform sample of rows, independent of their weights."""

    numbers: NDArray[np.float64]
    """float64[rows, columns]: ordinals, or coordinates of hashed columns; NaN for null and for the
    columns in `texts`."""
    is_null: NDArray[np.bool_]
    """bool[rows, columns]."""
    weights: NDArray[np.int32]
    """int32[rows]."""
    texts: Mapping[int, Sequence[str | None]] = field(default_factory=dict)
    """The prefixes of the strings of columns indexed by quantiles, by the column's position."""
    located: tuple[Revision, NDArray[np.int64]] | None = None
    """A revision and the paths to the rows' points in its space, if Spark computed them."""

    def words(self, revision: Revision) -> NDArray[np.int64]:
        """The paths to the rows' points in the space of a revision, int64[words, rows]."""
        if self.located and self.located[0] is revision:
            return self.located[1]
        return PathLayout(revision.dimensions).path_words(self.coordinates(revision))

    def coordinates(self, revision: Revision) -> NDArray[np.float64]:
        """The rows' points in the space of a revision, float64[rows, columns]."""
        points = np.empty_like(self.numbers)
        for position, transformation in enumerate(revision.transformations):
            numbers, null = self.numbers[:, position], transformation.transform(None)
            if isinstance(transformation, LinearTransformation):
                is_lowest = np.isneginf(numbers)
                # A range wider than a double gives infinity and NaN, as it does in Spark.
                with np.errstate(over="ignore", invalid="ignore"):
                    numbers = (numbers - float(transformation.minimum)) * transformation.scale
                numbers[is_lowest] = 0.0
            elif isinstance(transformation, NumericQuantiles):
                numbers = transformation.coordinate_table().coordinates(numbers)
            elif isinstance(transformation, StringQuantiles | StringHistogram):
                numbers = transformation.coordinate_table().coordinates(self.texts[position])
            elif not isinstance(transformation, HashTransformation):
                numbers = np.full_like(numbers, null)
            points[:, position] = np.where(self.is_null[:, position], null, numbers)
        return points

    def high_cardinality(self, transformers: Sequence[Transformer]) -> tuple[str, ...]:
        """The numeric columns with so many distinct values that few rows of a file share one."""
        return tuple(
            transformer.column
            for position, transformer in enumerate(transformers)
            if isinstance(transformer, _BOUNDED)
            and len(np.unique(self.numbers[:, position]))
            > _HIGH_CARDINALITY_SHARE * len(self.weights)
        )

    def quantiles(self, position: int, bounds: Bounds) -> tuple[float, ...] | tuple[str, ...]:
        """The quantiles of a column's values; empty if it has fewer than two distinct ones."""
        if position in self.texts:
            return measured_texts([text for text in self.texts[position] if text is not None])
        if bounds.minimum is None or bounds.maximum is None:
            return ()
        numbers = self.numbers[:, position]
        finite = numbers[np.isfinite(numbers)]
        return measured_numbers(finite, float(bounds.minimum), float(bounds.maximum))


@dataclass(frozen=True, eq=False)
class InputStatistics:
    """The results of one pass over the rows."""

    rows: int
    bounds: tuple[Bounds, ...]
    """The bounds of each indexed column; without values for hashed columns and strings."""
    sample: RowSample
    given_quantiles: Mapping[int, tuple[float, ...] | tuple[str, ...]] = field(default_factory=dict)
    """The user-supplied quantiles, by the column's position."""
    warnings: tuple[str, ...] = ()
    """Warnings for the user about samples of the rows."""

    def with_given(self, given: Sequence[ColumnStats]) -> InputStatistics:
        """The statistics with the user-supplied `column_stats`, which can only widen ranges."""
        return replace(
            self,
            bounds=tuple(
                Bounds(
                    min(_known(seen.minimum, said.minimum), default=None),
                    max(_known(seen.maximum, said.maximum), default=None),
                )
                for seen, said in zip(self.bounds, given, strict=True)
            ),
            given_quantiles={i: said.quantiles for i, said in enumerate(given) if said.quantiles},
        )


def collect(
    catalyst: Catalyst,
    rows: DataFrame,
    transformers: Sequence[Transformer],
    weight_columns: Sequence[str],
    sample_rows: Callable[[int], int],
) -> InputStatistics:
    """Count, bound and sample the rows.

    `sample_rows` gives the largest size of the sample from the approximate number of rows.
    """
    phases.enter(phases.MEASURING)
    measured = rows.select(*_measured(catalyst, transformers, weight_columns))
    every_row = all_rows(measured, sample_rows)
    if every_row is not None:
        return _statistics_of_all(every_row, transformers)
    named = {*weight_columns, *(transformer.column for transformer in transformers)}
    found, sample = aggregated_and_drawn(
        measured,
        rows.select(*map(columns.column, sorted(named))),
        _extremes(transformers),
        sample_rows,
    )
    bounds = tuple(
        Bounds(found.get(f"min{i}"), found.get(f"max{i}")) for i in range(len(transformers))
    )
    return InputStatistics(found[ROWS], bounds, _row_sample(sample, len(transformers)))


@dataclass(frozen=True, eq=False)
class EveryRow:
    """Measures rows that are few enough for the driver to collect all of them."""

    revision: Revision
    measured: Sequence[Column]

    @staticmethod
    def of(catalyst: Catalyst, revision: Revision, cells: Sequence[Column]) -> EveryRow:
        """Prepare for rows that are indexed like those of a revision, in its space or outside it.

        `cells` are the rows' cells in this space.
        """
        layout = PathLayout(revision.dimensions)
        words = columns.path_words(catalyst, cells, layout, layout.max_depth)
        measured = _measured(catalyst, revision.transformers, revision.weight_columns)
        return EveryRow(
            revision, [*measured, *(word.alias(f"word{i}") for i, word in enumerate(words))]
        )

    def collect(self, rows: DataFrame) -> InputStatistics:
        """The rows' statistics; the sample has every row, with its path in the revision's space."""
        phases.enter(phases.MEASURING)
        table = rows.select(*self.measured).toArrow()
        names = [name for name in table.column_names if name.startswith("word")]
        words = np.array([table.column(name).to_numpy() for name in names], dtype=np.int64)
        found = _statistics_of_all(table, self.revision.transformers)
        return replace(found, sample=replace(found.sample, located=(self.revision, words)))


def _measured(
    catalyst: Catalyst, transformers: Sequence[Transformer], weight_columns: Sequence[str]
) -> list[Column]:
    """The columns `x0`, `x1` and so on for the indexed columns, and `weight`."""
    numbers = [_number(catalyst, transformer) for transformer in transformers]
    return [
        *(number.alias(f"x{i}") for i, number in enumerate(numbers)),
        columns.weight(weight_columns).alias("weight"),
    ]


def _statistics_of_all(rows: pa.Table, transformers: Sequence[Transformer]) -> InputStatistics:
    """The statistics of rows that the driver has all of."""
    bounds = tuple(
        _bounds(rows.column(f"x{i}"), transformer) for i, transformer in enumerate(transformers)
    )
    return InputStatistics(rows.num_rows, bounds, _row_sample(rows, len(transformers)))


def _bounds(values: pa.ChunkedArray, transformer: Transformer) -> Bounds:
    """The bounds of a column's values on the driver; Spark computes them by `_extremes`."""
    if not isinstance(transformer, _BOUNDED):
        return Bounds(None, None)
    if transformer.data_type in FLOATING:
        values = values.filter(pc.is_finite(values))
    extremes = pc.min_max(values)
    return Bounds(extremes["min"].as_py(), extremes["max"].as_py())


def _number(catalyst: Catalyst, transformer: Transformer) -> Column:
    value = columns.column(transformer.column)
    if isinstance(transformer, _BOUNDED):
        return columns.ordinal(value, transformer.data_type)
    if isinstance(transformer, HashTransformer):
        # A hash coordinate does not depend on other rows, so it can be computed; null stays null.
        hashed = columns.coordinate(catalyst, value, HashTransformation(null_value=0))
        return F.when(value.isNotNull(), hashed)
    if isinstance(transformer, _TEXTS):
        return F.make_valid_utf8(F.substring(value, 1, SAMPLED_TEXT))
    raise UnsupportedColumnType(
        f"column {transformer.column!r} is indexed by {transformer.kind}, which cannot be written"
    )


def _extremes(transformers: Sequence[Transformer]) -> list[Column]:
    """The aggregates `min0`, `max0` and so on, for columns that have bounds."""
    aggregates = []
    for i, transformer in enumerate(transformers):
        if not isinstance(transformer, _BOUNDED):
            continue
        value = F.col(f"x{i}")
        if transformer.data_type in FLOATING:
            finite = ~F.isnan(value) & (F.abs(value) != F.lit(float("inf")))
            value = F.when(finite, value)
        aggregates += [F.min(value).alias(f"min{i}"), F.max(value).alias(f"max{i}")]
    return aggregates


def _row_sample(table: pa.Table, columns_count: int) -> RowSample:
    arrays = [table.column(f"x{i}").combine_chunks() for i in range(columns_count)]
    shape = (table.num_rows, columns_count)
    numbers, is_null = np.full(shape, np.nan), np.empty(shape, dtype=np.bool_)
    texts = {}
    for i, array in enumerate(arrays):
        is_null[:, i] = array.is_null().to_numpy(zero_copy_only=False)
        if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
            texts[i] = array.to_pylist()
        else:
            numbers[:, i] = array.cast("float64", safe=False).to_numpy(zero_copy_only=False)
    return RowSample(numbers, is_null, table.column("weight").to_numpy().astype(np.int32), texts)


def _known(*numbers: Number | None) -> list[Number]:
    return [number for number in numbers if number is not None]
