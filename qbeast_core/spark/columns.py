"""A row's way into the tree as Catalyst columns: ordinal, coordinate, path, weight, target.

ordinal     the value as a plain number (a date is milliseconds, a decimal a double)
coordinate  the ordinal in the revision's space, 0 to 1
path words  the interleaved bits of the coordinates (`tree.path`)
order       the row's place in its file (`tree.curve`)
weight      Spark's `hash()` of the indexed columns, or of those of the table's sample key
target      depth of the row's cube and number of its file (`tree.assignment`)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column
from pyspark.sql import functions as F

from qbeast_core.errors import UnsupportedColumnType
from qbeast_core.model.datatypes import MILLIS_PER_DAY, DataType
from qbeast_core.model.quantiles import NumericPlaces, TextPlaces
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
from qbeast_core.spark.catalyst import Catalyst
from qbeast_core.tree.assignment import SLOT_REGION_FACTOR, Assignment
from qbeast_core.tree.curve import HilbertCurve
from qbeast_core.tree.path import PathLayout

_LARGEST = float(np.finfo(np.float64).max)
_PIECE_BITS = 8
_CURVE_STEPS = 4
_CONSTANT = (EmptyTransformation, IdentityToZero, IdentityTransformation, NullToZero)


class Target(NamedTuple):
    """Where a row belongs."""

    depth: Column
    """The depth of its cube, bigint."""
    file: Column
    """The number of its file, bigint."""


def quoted(name: str) -> str:
    """A column's name as one part of a column path."""
    return "`" + name.replace("`", "``") + "`"


def column(name: str) -> Column:
    """The top-level column with exactly this name, whatever characters it has."""
    return F.col(quoted(name))


def weight(columns: Sequence[str]) -> Column:
    """The row's weight, int: the hash of a revision's `weight_columns` (FORMAT section 4)."""
    return F.hash(*(column(name) for name in columns))


def weight_text(columns: Sequence[str]) -> str:
    """The same as SQL that any Spark understands."""
    return f"hash({', '.join(quoted(name) for name in columns)})"


def ordinal(value: Column, data_type: DataType) -> Column:
    """An ordered column's value as a number: bigint for whole types, else double or float.

    Timestamps are floored to milliseconds and dates are days of 86,400,000 ms in UTC, whatever
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
    """The value's place in the revision's space, double; within it from 0 to 1.

    Values outside of the revision's range give a number below 0 or above 1, NaN and infinities
    what arithmetic makes of them; `path_words` moves them to the nearest edge.
    """
    if isinstance(transformation, LinearTransformation):
        minimum, maximum = float(transformation.minimum), float(transformation.maximum)
        number = ordinal(value, transformation.data_type).cast("double")
        placed = (number - F.lit(minimum)) * F.lit(1.0 / (maximum - minimum))
    elif isinstance(transformation, HashTransformation):
        hashed = catalyst.scala_bytes_hash(value.cast("string").cast("binary"))
        placed = hashed.bitwiseAND(0x7FFFFFFF).cast("double") / F.lit(2147483647.0)
    elif isinstance(transformation, _CONSTANT):
        return F.lit(0.0)
    elif isinstance(transformation, NumericQuantiles):
        number = ordinal(value, transformation.data_type).cast("double")
        placed = _among_numbers(catalyst, number, transformation.places())
    elif isinstance(transformation, StringQuantiles | StringHistogram):
        placed = _among_texts(catalyst, value, transformation.places())
    else:
        raise UnsupportedColumnType(f"no row can be placed by a {transformation.class_name}")
    return F.coalesce(placed, F.lit(transformation.transform(None)))


def cell(placed: Column, layout: PathLayout) -> Column:
    """The coordinate as a number of `layout.max_depth` bits, bigint."""
    cells = 1 << layout.max_depth
    # NaN is above every number for Spark, so it ends at 1.0 like +infinity.
    clamped = F.greatest(F.least(placed, F.lit(1.0)), F.lit(0.0))
    return F.least((clamped * float(cells)).cast("bigint"), F.lit(cells - 1))


def path_words(catalyst: Catalyst, cells: Sequence[Column], layout: PathLayout) -> list[Column]:
    """The words of the path, bigint each; `cells` holds one bigint column per dimension."""
    return [
        _levels_of_word(catalyst, cells, layout, word, layout.levels_per_word)
        for word in range(layout.words)
    ]


def order(catalyst: Catalyst, cells: Sequence[Column], layout: PathLayout) -> Column:
    """The row's place in a file, bigint with the bits of a path word.

    Along Hilbert's curve for the first levels, and along the path for the others of a word.
    `cells` holds one bigint column per dimension.
    """
    curve = HilbertCurve.of(layout.dimensions)
    if curve is None:
        return _levels_of_word(catalyst, cells, layout, 0, layout.levels_per_word)
    table = catalyst.array(curve.table)
    position = found = F.lit(0).cast("bigint")
    for step in range(1, _CURVE_STEPS + 1):
        below = layout.max_depth - step * curve.step_levels
        # The state stays where it is, above the position that it was found with.
        index = found.bitwiseAND(-1 << curve.step_bits)
        for dimension, bits in enumerate(cells):
            part = F.shiftright(bits, below).bitwiseAND((1 << curve.step_levels) - 1)
            place = curve.step_levels * (layout.dimensions - 1 - dimension)
            index = index.bitwiseOR(F.shiftleft(part, place))
        found = F.get(table, index.cast("int"))
        inside = found.bitwiseAND((1 << curve.step_bits) - 1)
        position = F.shiftleft(position, curve.step_bits).bitwiseOR(inside)
    levels = layout.levels_per_word - _CURVE_STEPS * curve.step_levels
    deeper = _levels_of_word(catalyst, cells, layout, 0, levels)
    return F.shiftleft(position, levels * layout.dimensions).bitwiseOR(deeper)


def target(
    catalyst: Catalyst, assignment: Assignment, words: Sequence[Column], row_weight: Column
) -> Target:
    """The cube's depth and the file of each row; the steps are those of `Assignment`."""
    region = catalyst.lower_bound(assignment.fold_ends, _folded(catalyst, assignment, words))
    key = region.cast("bigint") * SLOT_REGION_FACTOR + (row_weight.cast("bigint") - MIN_WEIGHT)
    slot = catalyst.lower_bound(assignment.slot_upper, key)
    # One table for both keeps it at one look-up, and the slot is searched once only.
    packed = assignment.slot_file.astype(np.int64) << 8 | assignment.slot_depth
    found = F.get(catalyst.array(packed), slot)
    return Target(depth=found.bitwiseAND(0xFF), file=F.shiftright(found, 8))


def _among_numbers(catalyst: Catalyst, number: Column, places: NumericPlaces) -> Column:
    """The coordinate of a double by the tables of quantiles."""
    # Java's search tells the two zeros apart, a sum does not.
    found = catalyst.binary_search(places.values, number + F.lit(0.0))
    start, low, width = (
        _of_slot(catalyst, table, found) for table in (places.start, places.low, places.width)
    )
    # Above all numbers is NaN for Spark too.
    finite = F.greatest(F.least(number, F.lit(_LARGEST)), F.lit(-_LARGEST))
    return (start + (finite - low) / width) / F.lit(places.intervals)


def _among_texts(catalyst: Catalyst, text: Column, places: TextPlaces) -> Column:
    found = catalyst.binary_search_text(places.values, text)
    return _of_slot(catalyst, places.placed, found)


def _of_slot(catalyst: Catalyst, table: NDArray[np.float64], found: Column) -> Column:
    """The element of a table of quantiles for what Java's binary search answers.

    The answer is named once, for all that it is made of stands in the plan wherever it is named.
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


def _levels_of_word(
    catalyst: Catalyst, cells: Sequence[Column], layout: PathLayout, word: int, levels: int
) -> Column:
    """The last levels of a path word, where they are in it: bits of the cells, interleaved."""
    spread_bytes = catalyst.array(_spread_bytes(layout.dimensions))
    end = (word + 1) * layout.levels_per_word
    # The last word may have more places than there are levels left.
    missing = max(0, end - layout.max_depth)
    below = layout.max_depth - end + missing
    parts = []
    for dimension, bits in enumerate(cells):
        for start in range(0, levels - missing, _PIECE_BITS):
            width = min(_PIECE_BITS, levels - missing - start)
            piece = F.shiftright(bits, below + start).bitwiseAND((1 << width) - 1).cast("int")
            place = (missing + start + 1) * layout.dimensions - 1 - dimension
            parts.append(F.shiftleft(F.get(spread_bytes, piece), place))
    return reduce(Column.bitwiseOR, parts)


def _spread_bytes(dimensions: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """For each byte, its bits `dimensions` places apart."""
    table = np.zeros(1 << _PIECE_BITS, dtype=np.int64)
    values = np.arange(1 << _PIECE_BITS, dtype=np.int64)
    for bit in range(_PIECE_BITS):
        table |= (values >> bit & 1) << (bit * dimensions)
    return table
