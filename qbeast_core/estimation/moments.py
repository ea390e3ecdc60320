"""A fixed-size summary of a sample for each group.

A sample contains all rows of a weight or none, so its units are not rows but *clusters*: the rows
of one group that share a weight. Each cluster has two numbers, `y` and `z`, for example the sum of
a column and the number of rows with a value. The sums of their products up to the fourth power are
enough for every interval in `intervals`, for residuals from any ratio.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ORDER = 4

POWERS = tuple((total - of_z, of_z) for total in range(1, ORDER + 1) for of_z in range(total + 1))
"""The powers of y and z in each product that is summed."""


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over the clusters of a sample, one entry for each group."""

    fraction: float
    """The probability with which each cluster is in the sample."""
    clusters: NDArray[np.int64]
    """int64[groups]: the number of clusters of each group in the sample."""
    sums: Mapping[tuple[int, int], NDArray[np.float64]]
    """float64[groups] for each of `POWERS`."""

    def residual_sum(self, ratio: NDArray[np.float64], power: int) -> NDArray[np.float64]:
        """The sum of `(y - ratio z)` to the power over each group's clusters, float64[groups]."""
        total = np.zeros(len(self.clusters))
        for of_z in range(power + 1):
            sign_and_ways = (-1) ** of_z * math.comb(power, of_z)
            total += sign_and_ways * ratio**of_z * self.sums[power - of_z, of_z]
        return total
