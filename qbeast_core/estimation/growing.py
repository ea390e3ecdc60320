"""Grow a sample until its intervals are narrow enough, or decide that all rows must be read.

Every look at a sample can stop at an interval that is narrow by chance. So there are few looks,
each with about the sample size that is needed, and all use critical values for half of the error
that the confidence allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from qbeast_core.estimation.intervals import (
    MIN_CLUSTERS,
    Intervals,
    ratio_intervals,
    rows_off,
    total_intervals,
)
from qbeast_core.estimation.moments import Moments

MAX_LOOKS = 4

_NOT_CHEAPER = "a large enough sample would cost about as much as reading all rows"
_UNKNOWN_ROWS = "the Delta log does not have the number of rows of every file"
_TOO_FEW = (
    "too few rows have a low weight: many rows share one weight, or the rows of low weights were "
    "left out"
)
_TOO_MANY = (
    "too many rows have a low weight: rows of this table were themselves chosen by a sample, so "
    "another sample does not show how many there are"
)

_UNSAMPLED = (
    "the rows without a value in the column that weights are computed from all have the same "
    "weight, which is too high for a sample"
)

MAX_UNSAMPLED_SHARE = 0.0005
"""Of the rows that no sample has. Whatever their values, few rows rarely change an estimate."""

SMALL_SHARE = 0.01
"""A group below this share of the rows, and below half of an average group, counts as small."""


@dataclass(frozen=True)
class Goal:
    """The requested precision."""

    tolerance: float
    """The maximum half width of the interval, relative to the estimate."""
    confidence: float

    @property
    def look_confidence(self) -> float:
        """The confidence of each look's intervals."""
        return 1.0 - (1.0 - self.confidence) / 2.0


@dataclass(frozen=True)
class Population:
    """What is known about all rows without reading them."""

    rows: int | None
    """The number of all rows of the table, whatever the filter; None if unknown."""
    estimated_rows: int
    """The number of rows to read, or a lower bound."""
    scale: float | None
    """The factor for ratios of y to z; None for totals of groups of unknown size."""
    extremes: tuple[float, float] | None = None
    """The smallest and the largest y of a single row; None if unknown."""
    min_rows: float = 0.0
    """The fewest rows that samples are drawn from."""
    unsampled_share: float = 0.0
    """The share of the rows that no sample can have, because their weight is too high."""
    is_total: bool = False
    """Whether the number to estimate is extrapolated, so that the rows must be known."""


@dataclass(frozen=True, eq=False)
class Look:
    """A summary of one sample."""

    moments: Moments
    rows: float
    """The number of rows in the sample, before any filter."""
    squared_rows: float
    """The sum of the squared number of rows over all weights in the sample."""
    rows_of_group: NDArray[np.int64]
    """int64[groups]: the number of sampled rows of each group, after the filter."""
    rows_elsewhere: float = 0.0
    """The number of rows of low weights that the sample lacks, because the filter rules out their
    files."""
    most_above: float = np.inf
    """The most rows that can pass the filter and have too high a weight for the sample."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """The final sample, or `exact_because`, the reason why all rows must be read."""

    look: Look | None
    intervals: Intervals | None
    too_small: NDArray[np.bool_]
    """bool[groups]: the small groups whose interval exceeds the tolerance."""
    exact_because: str | None = None


def grow(
    look_at: Callable[[float], Look],
    goal: Goal,
    population: Population,
    largest_fraction: float,
) -> Outcome:
    """Take samples of growing fractions until all groups that are not small are precise enough.

    Args:
        look_at: takes a sample of the given fraction, or of a larger one that costs no more.
        goal: the precision to reach.
        population: what is known about all rows.
        largest_fraction: the fraction beyond which it is better to read all rows.
    """
    if population.is_total and population.rows is None:
        return exact_outcome(_UNKNOWN_ROWS)
    if population.unsampled_share > MAX_UNSAMPLED_SHARE:
        return exact_outcome(_UNSAMPLED)
    if population.estimated_rows * largest_fraction < 2 * MIN_CLUSTERS:
        return exact_outcome(_NOT_CHEAPER)
    fraction = min(_first_fraction(goal, population), largest_fraction)
    for number in range(1, MAX_LOOKS + 1):
        if not 0.0 < fraction <= largest_fraction:
            return exact_outcome(_NOT_CHEAPER)
        look = look_at(fraction)
        intervals = _intervals_of(look.moments, goal, population)
        precise, small = intervals.within(goal.tolerance), _is_small(look.rows_of_group)
        if contradiction := _contradiction(look, population):
            return exact_outcome(contradiction)
        if len(precise) and bool(np.all(precise | small)):
            return Outcome(look, intervals, small & ~precise)
        if number < MAX_LOOKS:
            fraction = _next_fraction(intervals, goal, small)
    return exact_outcome(f"{MAX_LOOKS} samples were not precise enough")


def _contradiction(look: Look, population: Population) -> str | None:
    """Why a sample of this fraction does not have this fraction of the rows; None if it may."""
    fraction, alike = look.moments.fraction, look.squared_rows / max(look.rows, 1.0)
    if rows_off(fraction, look.rows, alike, population.min_rows, np.inf):
        return _TOO_FEW
    if population.rows is not None:
        rows = look.rows + look.rows_elsewhere
        off = rows_off(fraction, rows, alike, population.rows, population.rows)
        if off:
            return _TOO_FEW if off < 0 else _TOO_MANY
    kept = float(look.rows_of_group.sum())
    if rows_off(fraction, kept, alike, 0.0, kept + look.most_above):
        return _TOO_MANY
    return None


def exact_outcome(reason: str) -> Outcome:
    """The outcome for which all rows must be read."""
    return Outcome(None, None, np.zeros(0, dtype=np.bool_), reason)


def _first_fraction(goal: Goal, population: Population) -> float:
    """Enough for values whose standard deviation is about as large as their mean."""
    critical = NormalDist().inv_cdf(0.5 + goal.look_confidence / 2)
    values = critical / goal.tolerance
    # Unlike `**`, a product does not raise if a tiny tolerance makes it infinite.
    wanted = max(5.0 * MIN_CLUSTERS, 2.0 * values * values)
    return wanted / population.estimated_rows


def _next_fraction(intervals: Intervals, goal: Goal, small: NDArray[np.bool_]) -> float:
    reached = intervals.fraction
    if not len(small):  # no row of the sample passes the filter
        return 16.0 * reached
    needed = float(intervals.needed_fraction(goal.tolerance)[~small].max(initial=reached))
    return max(2.0 * reached, needed)


def _intervals_of(moments: Moments, goal: Goal, population: Population) -> Intervals:
    confidence, extremes = goal.look_confidence, population.extremes
    if population.scale is None:
        return total_intervals(moments, confidence, extremes=extremes)
    return ratio_intervals(moments, confidence, scale=population.scale, extremes=extremes)


def _is_small(rows_of_group: NDArray[np.int64]) -> NDArray[np.bool_]:
    groups = len(rows_of_group)
    if groups < 2:
        return np.zeros(groups, dtype=np.bool_)
    limit = min(SMALL_SHARE, 0.5 / groups) * rows_of_group.sum()
    small: NDArray[np.bool_] = rows_of_group < limit
    return small
