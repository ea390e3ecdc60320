"""Chooses the columns by which an index prunes best (`columns_to_index: auto`).

A column deserves a dimension if it has many different values that the other indexed columns do not
predict. Both are measured in a sample of rows:
- *spread*: the entropy of its values; 256 or more equally frequent values give 1.0;
- *overlap* with another column: their rank correlation, or the share of its entropy that the other
  column explains beyond chance, whichever is larger.
Columns are chosen one by one. Each is the one with the most spread that does not overlap with those
already chosen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbeast_core.counts import counted
from qbeast_core.model.datatypes import DataType

WORTH_A_DIMENSION = 0.25
"""The least value of a further column; below it, a dimension costs more than it gains."""

_ENOUGH_BITS = 8.0
ENOUGH_ROWS = int(2**_ENOUGH_BITS)
"""Fewer rows cannot show full spread, so a choice from them is a guess."""
_LINEAR_BINS = 64
_MANY_DISTINCT = 0.9
_SEED = 7

_Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SampledColumn:
    """A column's values in the sampled rows, which are the same rows for each column."""

    name: str
    data_type: DataType
    codes: _Ints
    """int64[rows]: codes with the same order as the values, equal for equal values; -1 for null."""
    numbers: NDArray[np.float64] | None = None
    """float64[rows]: the ordinates of an ordered column, NaN for null."""

    @property
    def distinct(self) -> int:
        """The number of distinct values, without null."""
        return len(np.unique(self.codes[self.codes >= 0]))


@dataclass(frozen=True)
class ChosenColumn:
    """A column to index, and why."""

    name: str
    kind: str | None
    """The kind of index; None for the default of the column's type."""
    why: str


@dataclass(frozen=True)
class ColumnChoice:
    """The chosen columns, in the order of choice."""

    columns: tuple[ChosenColumn, ...]
    considered: int
    """The number of the table's columns that can be indexed."""
    rows: int
    """The number of sampled rows."""

    def __str__(self) -> str:
        named = ", ".join(f"{c.name}:{c.kind}" if c.kind else c.name for c in self.columns)
        reasons = "; ".join(f"{c.name} {c.why}" for c in self.columns)
        return (
            f"columns_to_index auto chose {named} of {counted(self.considered, 'column')}, "
            f"from {counted(self.rows, 'row')}: {reasons}"
        )


def choose_columns(candidates: Sequence[SampledColumn], at_most: int) -> ColumnChoice:
    """The columns to index: at least one, at most `at_most`. `candidates` must not be empty."""
    values = np.array([_spread(column) * _preference(column) for column in candidates])
    overlaps = np.zeros(len(candidates))
    chosen: list[ChosenColumn] = []
    taken: list[int] = []
    while len(taken) < min(at_most, len(candidates)):
        left = values * (1 - overlaps)
        left[taken] = -1.0
        best = int(np.argmax(left))
        if taken and left[best] < WORTH_A_DIMENSION:
            break
        column = candidates[best]
        kind = "quantiles" if _is_uneven(column) else None
        chosen.append(ChosenColumn(column.name, kind, _reason(column, kind, overlaps[best], taken)))
        taken.append(best)
        if len(taken) < at_most:
            with_best = [_overlap(column, other) for other in candidates]
            overlaps = np.maximum(overlaps, with_best)
    return ColumnChoice(tuple(chosen), len(candidates), len(candidates[0].codes))


def most_distinct(candidates: Sequence[SampledColumn]) -> SampledColumn | None:
    """The column with the most distinct values, if it has at least half as many as rows."""
    best = max(candidates, key=lambda column: column.distinct, default=None)
    if best is None or 2 * best.distinct < max(len(best.codes), 1):
        return None
    return best


def _spread(column: SampledColumn) -> float:
    rows = len(column.codes)
    if rows < 2:
        return 1.0  # only the type is known
    return min(1.0, _entropy(column.codes) / min(_ENOUGH_BITS, math.log2(rows)))


def _preference(column: SampledColumn) -> float:
    """A factor for how likely queries filter by ranges of the column."""
    if column.data_type in (DataType.TIMESTAMP, DataType.DATE):
        return 1.0
    if column.data_type is not DataType.STRING:
        return 0.95
    # Strings are hashed, so only equality uses the index; filters on unique strings are rare.
    return 0.4 if column.distinct > _MANY_DISTINCT * len(column.codes) else 0.8


def _is_uneven(column: SampledColumn) -> bool:
    """Whether a linear index would put most values into few places and quantiles would not."""
    # qbeast-spark cannot append to quantiles of decimals, so they must be set explicitly.
    if column.numbers is None or column.data_type is DataType.DECIMAL:
        return False
    finite = np.isfinite(column.numbers)
    numbers = column.numbers[finite]
    if len(numbers) < 2:
        return False
    low, high = float(numbers.min()), float(numbers.max())
    width = high / _LINEAR_BINS - low / _LINEAR_BINS
    if not width:
        return False
    bins = np.clip((numbers / width - low / width), 0, _LINEAR_BINS - 1).astype(np.int64)
    possible = min(np.log2(_LINEAR_BINS), _entropy(column.codes[finite]))
    return bool(_entropy(bins) < possible / 2)


def _overlap(one: SampledColumn, other: SampledColumn) -> float:
    """How much of one column the other one predicts, from 0 to 1."""
    if min(len(np.unique(column.codes)) for column in (one, other)) < 2:
        return 0.0
    both = np.corrcoef(_ranks(one.codes), _ranks(other.codes))
    correlation = abs(float(both[0, 1]))
    return min(1.0, max(correlation, _explained(one.codes, other.codes)))


def _explained(one: _Ints, other: _Ints) -> float:
    """The mutual information beyond that of shuffled rows, as a share of its possible maximum.

    It detects columns that encode the same things in a different order. If both columns have about
    as many values as there are rows, chance explains everything and the result is 0.
    """
    shuffled = np.random.default_rng(_SEED).permutation(other)
    least = min(_entropy(one), _entropy(other))
    by_chance = _mutual(one, shuffled)
    if least - by_chance < 0.5:
        return 0.0
    return max(0.0, (_mutual(one, other) - by_chance) / (least - by_chance))


def _mutual(one: _Ints, other: _Ints) -> float:
    pairs = (one + 1) * (int(other.max(initial=0)) + 2) + other + 1
    return _entropy(one) + _entropy(other) - _entropy(pairs)


def _entropy(codes: _Ints) -> float:
    """The entropy of the codes in bits."""
    counts = np.unique(codes, return_counts=True)[1]
    shares = counts / max(len(codes), 1)
    return float(-(shares * np.log2(shares)).sum())


def _ranks(codes: _Ints) -> NDArray[np.float64]:
    """The rank of each row; equal values have their mean rank."""
    _, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    mean: NDArray[np.float64] = (ends - (counts - 1) / 2.0)[inverse]
    return mean


def _reason(column: SampledColumn, kind: str | None, overlap: float, taken: Sequence[int]) -> str:
    if not len(column.codes):
        return f"for its type, {column.data_type.value}"
    text = f"has {column.distinct:,} values"
    if taken:
        text += f", {overlap:.0%} predicted by the columns before it"
    return text + (", unevenly spread" if kind else "")
