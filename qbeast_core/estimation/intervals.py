"""Confidence intervals for totals and averages, from the moments of a sample of clusters.

Each cluster is in the sample with the same probability f, independently of the others (Poisson
sampling). The estimate of a total is `sum(y) / f`, and its variance follows from the squares of the
clusters. The estimate of a ratio is `sum(y) / sum(z)`, and its variance follows from the squares of
the residuals `y - ratio z` (linearization). The critical value is that of Student's t, with degrees
of freedom from the spread of these squares (Satterthwaite), so a few clusters that outweigh all
others count as few.

Normal theory fails if a single cluster can move the estimate. The skewness of the estimate shows
whether one can. It is computed from the sample and, if the Delta log has the minimum and maximum of
the column, from these too, so extreme values outside the sample also count.

If all clusters of a sample are alike, this does not show that all clusters of the table are. With
confidence 1 - alpha, the share of others is at most `-ln(alpha) / n` (for 95 %, the rule of three).
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from qbeast_core.estimation.moments import Moments

MIN_CLUSTERS = 200
"""With fewer clusters in the sample, the interval of a group is unreliable."""

MIN_DEGREES = 50.0
"""The variance must be made up of at least this many squares of similar size."""

MAX_SKEWNESS = 0.1
"""Of the estimate, not of the values; stricter than Cochran's rule, which requires 0.2."""

_Floats = NDArray[np.float64]

# A variance below this share of the squares that it is computed from is a rounding error.
_ROUNDING = 1e-12
_NOISE = 1e-13


@dataclass(frozen=True, eq=False)
class Intervals:
    """Estimates of one number for each group; every array is [groups]."""

    fraction: float
    clusters: NDArray[np.int64]
    value: _Floats
    """NaN if the sample is too small."""
    half_width: _Floats
    """The interval is the value plus or minus this; infinite if the sample is too small."""
    skewness: _Floats
    degrees: _Floats

    @property
    def reliable(self) -> NDArray[np.bool_]:
        """Whether normal theory holds well enough for the interval to reach its confidence."""
        return (
            (self.clusters >= MIN_CLUSTERS)
            & (self.degrees >= MIN_DEGREES)
            & (self.skewness <= MAX_SKEWNESS)
        )

    def within(self, tolerance: float) -> NDArray[np.bool_]:
        """Whether the interval is reliable and no wider than the tolerance, relative to |value|."""
        return self.reliable & (self.half_width <= tolerance * np.abs(self.value))

    def needed_fraction(self, tolerance: float) -> _Floats:
        """The approximate fraction at which each group is within the tolerance; at most 1."""
        f = self.fraction
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            too_wide = self.half_width / (tolerance * np.abs(self.value))
            odds = _MARGIN * too_wide**2 * f / (1.0 - f)
            for_width = np.where(np.isfinite(odds), odds / (1.0 + odds), 1.0)
            for_skewness = f * (self.skewness / MAX_SKEWNESS) ** 2
            for_degrees = f * MIN_DEGREES / self.degrees
        for_clusters = _MARGIN * f * MIN_CLUSTERS / np.maximum(self.clusters, 1)
        # With too few clusters, the other numbers are unreliable.
        needed = np.where(
            self.clusters < MIN_CLUSTERS,
            for_clusters,
            np.maximum.reduce([for_width, for_skewness, for_degrees]),
        )
        fraction: _Floats = np.minimum(np.nan_to_num(needed, nan=1.0), 1.0)
        return fraction


_MARGIN = 1.2


def ratio_intervals(
    moments: Moments,
    confidence: float,
    *,
    scale: float = 1.0,
    extremes: tuple[float, float] | None = None,
) -> Intervals:
    """Intervals of `scale * sum(y) / sum(z)` over all rows of each group.

    Args:
        confidence: of each interval.
        scale: 1 for an average; the known sum of z for a total of y.
        extremes: the known smallest and largest y of a single row with z = 1.
    """
    y, z = moments.sums[1, 0], moments.sums[0, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = y / z
        return _intervals(moments, confidence, ratio, scale / z, scale * ratio, extremes)


def total_intervals(
    moments: Moments, confidence: float, *, extremes: tuple[float, float] | None = None
) -> Intervals:
    """Intervals of the sum of y over all rows of each group, if the group's size is unknown."""
    nothing = np.zeros(len(moments.clusters))
    scale = np.full(len(moments.clusters), 1.0 / moments.fraction)
    return _intervals(moments, confidence, nothing, scale, moments.sums[1, 0] * scale, extremes)


def rows_off(
    fraction: float, rows: float, alike: float, at_least: float, at_most: float
) -> Literal[-1, 0, 1]:
    """Whether a sample has fewer (-1) or more (1) rows than expected, by four standard deviations.

    Detects a sample that misses a weight with very many rows, for example because half of a table
    has one value, and a table that has more rows of low weights than of high ones.

    Args:
        fraction: the sample fraction.
        rows: the number of rows in the sample.
        alike: the number of rows that share a row's weight, on average over the rows.
        at_least, at_most: limits of the number of all rows.
    """
    slack = 4.0 * np.sqrt((1.0 - fraction) * rows * alike) / fraction
    if rows / fraction < at_least - slack:
        return -1
    return 1 if rows / fraction > at_most + slack else 0


def student_quantile(probability: float, degrees: _Floats) -> _Floats:
    """The quantile of Student's t for each number of degrees of freedom.

    Uses the expansion in powers of 1/degrees (Abramowitz and Stegun 26.7.5). Its error is below 1 %
    from 3 degrees on, for the probabilities that confidence intervals use.

    >>> student_quantile(0.975, np.array([5.0, 30.0])).round(2)
    array([2.57, 2.04])
    """
    z = NormalDist().inv_cdf(probability)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    quantile = np.full(len(degrees), z)
    for power, term in enumerate(terms, 1):
        quantile += term / degrees**power
    return quantile


def _intervals(
    moments: Moments,
    confidence: float,
    ratio: _Floats,
    scale: _Floats,
    value: _Floats,
    extremes: tuple[float, float] | None,
) -> Intervals:
    f, n = moments.fraction, moments.clusters.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        squares = moments.residual_sum(ratio, 2)
        rounding = squares <= _ROUNDING * moments.sums[2, 0]
        squares = np.where(rounding, 0.0, squares)
        spread = np.where(rounding, 1.0, squares)
        cubes = _beyond_noise(moments, ratio, 3)
        fourths = np.maximum(_beyond_noise(moments, ratio, 4), spread**2 / n)
        skewness = (1.0 - 2.0 * f) / np.sqrt(1.0 - f) * cubes / spread**1.5
        skewness = np.where(rounding, 0.0, np.abs(skewness))
        degrees = np.where(rounding, n - 1, np.minimum(2 * spread**2 / fourths, n - 1))
        if extremes is not None:
            skewness = np.maximum(skewness, _known_skewness(f, ratio, squares, extremes))
        deviation = np.abs(scale) * np.sqrt((1.0 - f) * squares * n / (n - 1))
        critical = student_quantile(0.5 + confidence / 2, np.maximum(degrees, 3.0))
        half_width = np.where(n > 1, critical * deviation, np.inf)
        rows = np.where(moments.sums[0, 1] > 0.0, moments.sums[0, 1], n)
        unseen = np.abs(scale) * rows * -np.log(1.0 - confidence) / n
        unseen *= _unseen_residual(ratio, extremes)
        half_width = np.where(rounding, np.maximum(half_width, unseen), half_width)
    half_width = np.where(np.isfinite(half_width), half_width, np.inf)
    return Intervals(
        f,
        moments.clusters,
        value,
        half_width,
        np.where(np.isfinite(skewness), skewness, np.inf),
        np.maximum(degrees, 1.0),
    )


def _beyond_noise(moments: Moments, ratio: _Floats, power: int) -> _Floats:
    """The absolute sum of a power of the residuals; 0 if it may be a rounding error.

    The sums of large values that differ little cancel out nearly all of their digits.
    """
    found = np.abs(moments.residual_sum(ratio, power))
    size = np.abs(moments.sums[power, 0]) + np.abs(ratio) ** power * moments.sums[0, power]
    return np.where(found <= _NOISE * size, 0.0, found)


def _unseen_residual(ratio: _Floats, extremes: tuple[float, float] | None) -> _Floats:
    """The largest possible distance of a row that is not sampled from the ratio.

    Without known extremes, we assume that its value is zero. If the ratio is zero, the distance is
    unbounded.
    """
    if extremes is not None:
        return _most_extreme(ratio, extremes)
    return np.where(ratio == 0.0, np.inf, np.abs(ratio))


def _most_extreme(ratio: _Floats, extremes: tuple[float, float]) -> _Floats:
    residual: _Floats = np.maximum(np.abs(extremes[0] - ratio), np.abs(extremes[1] - ratio))
    return residual


def _known_skewness(
    f: float, ratio: _Floats, squares: _Floats, extremes: tuple[float, float]
) -> _Floats:
    """The skewness of the estimate that a single row with the most extreme value causes."""
    residual = _most_extreme(ratio, extremes)
    of_all = np.maximum(squares / f, residual**2)
    share: _Floats = np.where(residual > 0, residual**2 / of_all, 0.0)
    # Without the factor 1 - 2f: at f = 0.5, the estimate is symmetric, but not normal.
    skewness: _Floats = share**1.5 / np.sqrt(f * (1.0 - f))
    return skewness
