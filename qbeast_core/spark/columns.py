"""The steps from a row to its place in the tree, as Catalyst columns.

ordinal     the value as a number (a date in milliseconds, a decimal as a double)
coordinate  the ordinal in the revision's space, 0 to 1
cell        the first bits of the coordinate
path words  the interleaved bits of the cells (`tree.path`)
place       the row's position along the curve (`tree.curve`)
weight      Spark's `hash()` of the indexed columns, or of those of the table's sample key
depth       of the row's cube (`tree.assignment`)
file        the number of the row's file (`tree.cuts`)

Each task generates code for the expressions of a shuffle and of a sort. So these expressions are
kept small: whatever they use twice is in the code twice (ADR 23).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from qbeast_core.errors import UnsupportedColumnType
from qbeast_core.jvm.catalyst import Catalyst
from qbeast_core.model.datatypes import FLOATING, MILLIS_PER_DAY, DataType
from qbeast_core.model.quantiles import NumericTable, TextTable
from qbeast_core.model.transformation import (
    EmptyTransformation,
    HashTransformation,
    IdentityToZero,
    IdentityTransformation,
    LinearTransformation,
    NullToZero,
    NumericQuantiles,
    StringHistogram,
    StringQuantiles,
    Transformation,
)
from qbeast_core.model.weight import MIN_WEIGHT
from qbeast_core.names import quoted
from qbeast_core.tree.assignment import SLOT_WEIGHT_BITS, Assignment
from qbeast_core.tree.curve import HilbertCurve, RowOrder
from qbeast_core.tree.cuts import FileCuts
from qbeast_core.tree.path import PathLayout

_LARGEST = float(np.finfo(np.float64).max)
_PIECE_BITS = 8
_INT_BITS = 31
_CONSTANT = (EmptyTransformation, IdentityToZero, IdentityTransformation, NullToZero)


def column(name: str) -> Column:
    """The top-level column with exactly this name, which may contain any characters."""
    return F.col(quoted(name))


def column_from(name: str, alias: str | None) -> Column:
    """The column of this name; with an alias, the one from this side of a join."""
    return column(name) if alias is None else F.col(f"{quoted(alias)}.{quoted(name)}")


def file_metadata(rows: DataFrame) -> Column:
    """Spark's metadata of the file of each row, a struct.

    Taken from the DataFrame, because a column of the table may be called `_metadata` too.
    """
    return rows.metadataColumn("_metadata")


def weight(columns: Sequence[str]) -> Column:
    """The row's weight, int: the hash of a revision's `weight_columns` (docs/format.md 5.1)."""
    return F.hash(*(column(name) for name in columns))


def weight_text(columns: Sequence[str]) -> str:
    """The row's weight as SQL that any Spark can run.

    Raises:
        UnsupportedColumnType: Spark would replace a part of a name.
    """
    for name in columns:
        if "${" in name:
            raise UnsupportedColumnType(
                f"column {name!r} cannot be part of a sample as SQL text, or of slices, because "
                "Spark replaces ${...} in SQL; rename the column, or name other columns"
            )
    return f"hash({', '.join(quoted(name) for name in columns)})"


def ordinal(value: Column, data_type: DataType) -> Column:
    """An ordered column's value as a number: bigint for integer types, dates and timestamps, else
    double or float.

    Timestamps are floored to milliseconds, and dates are days of 86,400,000 ms in UTC, whatever
    the session's time zone.
    """
    if data_type is DataType.TIMESTAMP:
        return F.unix_millis(value)
    if data_type is DataType.DATE:
        return F.unix_date(value).cast("bigint") * MILLIS_PER_DAY
    if data_type in (DataType.INTEGER, DataType.LONG):
        return value.cast("bigint")
    return value if data_type is DataType.FLOAT else value.cast("double")


def coordinate(catalyst: Catalyst, value: Column, transformation: Transformation) -> Column:
    """The value's coordinate in the revision's space, double; 0 to 1 within its range.

    Values outside the revision's range give a number below 0 or above 1, and NaN and infinities
    follow the rules of arithmetic. `cell` moves them to the nearest edge.
    """
    null = F.lit(transformation.transform(None))
    return F.coalesce(_coordinate(catalyst, value, transformation), null)


def cell(
    catalyst: Catalyst, value: Column, transformation: Transformation, layout: PathLayout
) -> Column:
    """The value's coordinate as an integer of `layout.max_depth` bits; int, or bigint if needed.

    NaN is at the upper edge, like +infinity.
    """
    cells = 1 << layout.max_depth
    kind = "int" if layout.max_depth <= _INT_BITS else "bigint"
    null_cell = layout.cells(np.array([transformation.transform(None)])).item()
    placed = _coordinate(catalyst, catalyst.known_not_null(value), transformation) * float(cells)
    if isinstance(transformation, LinearTransformation) and (
        transformation.data_type in FLOATING or math.isinf(transformation.scale)
    ):
        placed = F.nanvl(placed, F.lit(float(cells)))
    inside = catalyst.clamped(placed, 0.0, float(cells - 1)).cast(kind)
    return F.call_function("if", value.isNull(), F.lit(null_cell).cast(kind), inside)


def path_words(
    catalyst: Catalyst, cells: Sequence[Column], layout: PathLayout, levels: int
) -> list[Column]:
    """The words of the path, bigint each; digits below the first `levels` levels are 0.

    `cells` has one column per dimension.
    """
    words = []
    for first in range(0, layout.words * layout.levels_per_word, layout.levels_per_word):
        end = first + layout.levels_per_word
        present = range(first, min(end, levels))
        if present:
            missing = (end - present.stop) * layout.dimensions
            word = F.shiftleft(_interleaved(catalyst, cells, layout, present), missing)
        else:
            word = F.lit(0).cast("bigint")
        words.append(word)
    return words


def place(catalyst: Catalyst, cells: Sequence[Column], order: RowOrder) -> Column:
    """The row's place in an order, bigint; `cells` has one column per dimension."""
    layout, by_path, curve = order.layout, order.levels_by_path, order.curve
    if curve is None:
        return _interleaved(catalyst, cells, layout, by_path)
    along = _along(catalyst, curve, cells, layout, order.steps)
    if not by_path:
        return along
    deeper = _interleaved(catalyst, cells, layout, by_path)
    return F.shiftleft(along, len(by_path) * layout.dimensions).bitwiseOR(deeper)


def depth(
    catalyst: Catalyst, assignment: Assignment, words: Sequence[Column], row_weight: Column
) -> Column:
    """The depth of each row's cube, bigint, by the steps of `Assignment`."""
    region = catalyst.lower_bound(assignment.fold_ends, _folded(catalyst, assignment, words))
    # Bit operations, because Spark checks sums for overflow. OR gives the sum, because the bits of
    # both parts do not overlap.
    from_lowest = row_weight.cast("bigint").bitwiseXOR(MIN_WEIGHT)
    in_region = from_lowest.bitwiseAND((1 << SLOT_WEIGHT_BITS) - 1)
    key = F.shiftleft(region.cast("bigint"), SLOT_WEIGHT_BITS).bitwiseOR(in_region)
    slot = catalyst.lower_bound(assignment.slot_upper, key)
    return F.get(catalyst.array(assignment.slot_depth.astype(np.int64)), slot)


def file(catalyst: Catalyst, cuts: FileCuts, row_place: Column, row_weight: Column) -> Column:
    """The number of each row's file, int, by the steps of `FileCuts`."""
    key = F.shiftright(row_place, cuts.order.bits - cuts.place_bits)
    if len(cuts.band_ends):
        band = catalyst.lower_bound(cuts.band_ends, row_weight.cast("bigint")).cast("bigint")
        key = F.shiftleft(band, cuts.place_bits).bitwiseOR(key)
    return catalyst.lower_bound(cuts.file_ends, key).cast("int")


def _coordinate(catalyst: Catalyst, value: Column, transformation: Transformation) -> Column:
    """`coordinate` for values that are not null."""
    if isinstance(transformation, LinearTransformation):
        number = _double(value, transformation.data_type)
        placed = (number - F.lit(float(transformation.minimum))) * F.lit(transformation.scale)
        if transformation.scale:
            return placed
        # -infinity times 0 is NaN, which lies at the other edge.
        return F.when(number == F.lit(-math.inf), F.lit(0.0)).otherwise(placed)
    if isinstance(transformation, HashTransformation):
        hashed = catalyst.scala_bytes_hash(catalyst.java_text(value).cast("binary"))
        return hashed.bitwiseAND(0x7FFFFFFF).cast("double") / F.lit(2147483647.0)
    if isinstance(transformation, _CONSTANT):
        return F.lit(0.0)
    if isinstance(transformation, NumericQuantiles):
        number = _double(value, transformation.data_type)
        return _among_numbers(catalyst, number, transformation.coordinate_table())
    if isinstance(transformation, StringQuantiles | StringHistogram):
        return _among_texts(catalyst, value, transformation.coordinate_table())
    raise UnsupportedColumnType(f"a {transformation.class_name} cannot place rows")


def _double(value: Column, data_type: DataType) -> Column:
    """The ordinal as a double."""
    if data_type is DataType.DATE:
        # The same number as `ordinal`, exact in both types, without an overflow check.
        return F.unix_date(value).cast("double") * float(MILLIS_PER_DAY)
    return ordinal(value, data_type).cast("double")


def _along(
    catalyst: Catalyst,
    curve: HilbertCurve,
    cells: Sequence[Column],
    layout: PathLayout,
    steps: int,
) -> Column:
    """The position along the curve after this many steps, bigint."""
    table = catalyst.array(curve.table)
    position = found = F.lit(0).cast("bigint")
    for step in range(1, steps + 1):
        below = layout.max_depth - step * curve.step_levels
        # The state remains in the high bits, above those of the position.
        index = found.bitwiseAND(-1 << curve.step_bits).cast("int")
        for dimension, bits in enumerate(cells):
            part = _bits(bits, layout, below, curve.step_levels)
            place = curve.step_levels * (layout.dimensions - 1 - dimension)
            index = index.bitwiseOR(F.shiftleft(part, place))
        found = F.get(table, index)
        inside = found.bitwiseAND((1 << curve.step_bits) - 1)
        position = F.shiftleft(position, curve.step_bits).bitwiseOR(inside)
    return position


def _among_numbers(catalyst: Catalyst, number: Column, quantiles: NumericTable) -> Column:
    """The coordinate of a double, looked up in the tables of quantiles."""
    # Java's search distinguishes the two zeros; adding 0.0 removes the negative one.
    found = catalyst.binary_search(quantiles.values, number + F.lit(0.0))
    start, low, width = (
        _of_slot(catalyst, by_slot, found)
        for by_slot in (quantiles.start, quantiles.low, quantiles.width)
    )
    # NaN is above all numbers for Spark too.
    finite = F.greatest(F.least(number, F.lit(_LARGEST)), F.lit(-_LARGEST))
    return (start + (finite - low) / width) / F.lit(quantiles.intervals)


def _among_texts(catalyst: Catalyst, text: Column, quantiles: TextTable) -> Column:
    found = catalyst.binary_search_text(quantiles.values, text)
    return _of_slot(catalyst, quantiles.placed, found)


def _of_slot(catalyst: Catalyst, table: NDArray[np.float64], found: Column) -> Column:
    """The element of a table of quantiles for the result of Java's binary search.

    The result is used only once, because the plan repeats its whole expression at each use.
    """
    values = len(table) // 2
    answers = np.arange(-values - 1, values)
    slots = np.where(answers < 0, -2 * answers - 2, 2 * answers + 1)
    return F.get(catalyst.array(table[slots]), found + (values + 1))


def _folded(catalyst: Catalyst, assignment: Assignment, words: Sequence[Column]) -> Column:
    if not assignment.folds:
        return words[0]
    key, exact = F.lit(0).cast("bigint"), F.lit(True)
    for word, values, stride in zip(words, assignment.folds, assignment.fold_strides, strict=False):
        rank = catalyst.lower_bound(values, word).cast("bigint")
        key = key + F.when(exact, rank).otherwise(F.lit(0)) * stride
        exact = exact & (catalyst.binary_search(values, word) >= 0)
    return key


def _interleaved(
    catalyst: Catalyst, cells: Sequence[Column], layout: PathLayout, levels: range
) -> Column:
    """The digits of some levels of a path, the last in the lowest bits: interleaved cell bits."""
    below = layout.max_depth - levels.stop
    if layout.dimensions == 1:
        mask = (1 << len(levels)) - 1
        return F.shiftright(cells[0], below).bitwiseAND(mask).cast("bigint")
    spread_bytes = catalyst.array(_spread_bytes(layout.dimensions))
    parts = []
    for dimension, bits in enumerate(cells):
        for start in range(0, len(levels), _PIECE_BITS):
            piece = _bits(bits, layout, below + start, min(_PIECE_BITS, len(levels) - start))
            place = (start + 1) * layout.dimensions - 1 - dimension
            parts.append(F.shiftleft(F.get(spread_bytes, piece), place))
    return reduce(Column.bitwiseOR, parts)


def _bits(cell: Column, layout: PathLayout, below: int, count: int) -> Column:
    """The `count` bits of a cell above its lowest `below` bits, int."""
    bits = F.shiftright(cell, below).bitwiseAND((1 << count) - 1)
    return bits if layout.max_depth <= _INT_BITS else bits.cast("int")


def _spread_bytes(dimensions: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """For each byte value, its bits spread to every `dimensions`-th bit."""
    table = np.zeros(1 << _PIECE_BITS, dtype=np.int64)
    values = np.arange(1 << _PIECE_BITS, dtype=np.int64)
    for bit in range(_PIECE_BITS):
        table |= (values >> bit & 1) << (bit * dimensions)
    return table
