"""Grow a sample until its intervals are narrow enough, or tell that only all rows will do.

Every look at a sample is a chance to stop at an interval that is narrow by luck. Therefore looks
are few, each asks for about as much as is needed, and all use critical values for half of the error
that the confidence allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from qbeast_core.estimation.intervals import (
    FEWEST_CLUSTERS,
    Intervals,
    ratio_intervals,
    rows_agree,
    total_intervals,
)
from qbeast_core.estimation.moments import Moments

MOST_LOOKS = 4

SMALL_SHARE = 0.01
"""A group below this share of the rows, and below half of an average group, is a small one."""


@dataclass(frozen=True)
class Goal:
    """What is asked for."""

    tolerance: float
    """How far from the estimate the ends of the interval may be, relative to it."""
    confidence: float

    @property
    def look_confidence(self) -> float:
        """The confidence of each look's intervals."""
        return 1.0 - (1.0 - self.confidence) / 2.0


@dataclass(frozen=True)
class Population:
    """What is known of all rows without looking at them."""

    rows: int | None
    """How many a sample is drawn from; None where that is not known exactly."""
    about_rows: int
    """How many there are to read, or fewer if that is not known."""
    scale: float | None
    """What ratios of y to z are multiplied with; None for totals of groups of unknown size."""
    extremes: tuple[float, float] | None = None
    """The smallest and the largest y of a single row."""


@dataclass(frozen=True, eq=False)
class Look:
    """A sample of some fraction, summed up."""

    moments: Moments
    rows: float
    """Rows of the sample, whether a filter keeps them or not."""
    squared_rows: float
    """The sum over all weights in the sample of the squared number of rows."""
    rows_of_group: NDArray[np.int64]
    """int64[groups]: the sample's rows that count for each group."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """How the growing ended; `exact_because` tells why all rows are needed, if they are."""

    look: Look | None
    intervals: Intervals | None
    too_small: NDArray[np.bool_]
    """bool[groups]: the small groups whose interval does not reach the tolerance."""
    exact_because: str | None = None


def grow(
    look_at: Callable[[float], Look],
    goal: Goal,
    population: Population,
    largest_fraction: float,
) -> Outcome:
    """Look at samples of growing fractions until every group that is not small is precise.

    Args:
        look_at: the sample of a fraction, or of a larger one that costs no more.
        largest_fraction: from where on reading all rows is the better choice.
    """
    rows = population.rows
    if population.about_rows * largest_fraction < 2 * FEWEST_CLUSTERS:
        return _exact("a sample that is large enough would cost about as much")
    fraction = min(_first_fraction(goal, population), largest_fraction)
    for number in range(1, MOST_LOOKS + 1):
        if not 0.0 < fraction <= largest_fraction:
            return _exact("a sample that is large enough would cost about as much")
        look = look_at(fraction)
        intervals = _intervals_of(look.moments, goal, population)
        precise, small = intervals.within(goal.tolerance), _is_small(look.rows_of_group)
        if rows is not None and not rows_agree(
            look.moments.fraction, look.rows, look.squared_rows, rows
        ):
            return _exact("too many rows share a weight for a sample of them")
        if len(precise) and bool(np.all(precise | small)):
            return Outcome(look, intervals, small & ~precise)
        if number < MOST_LOOKS:
            fraction = _next_fraction(intervals, goal, small)
    return _exact(f"{MOST_LOOKS} samples were not precise enough")


def _exact(reason: str) -> Outcome:
    return Outcome(None, None, np.zeros(0, dtype=np.bool_), reason)


def _first_fraction(goal: Goal, population: Population) -> float:
    """Enough for values that spread about as widely as they are large."""
    critical = NormalDist().inv_cdf(0.5 + goal.look_confidence / 2)
    wanted = max(5.0 * FEWEST_CLUSTERS, 2.0 * (critical / goal.tolerance) ** 2)
    return wanted / population.about_rows


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
