"""Tables as numpy arrays, and samples of them as the index takes them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from qbeast_core.estimation.growing import Goal, Look, Outcome, Population, grow
from tests.support.oracles import moments_of_clusters

ROWS = 50_000

VALUES = {
    "normal": lambda random: random.normal(10, 3, ROWS),
    "exponential": lambda random: random.exponential(1, ROWS),
    "lognormal, sigma 1": lambda random: random.lognormal(0, 1, ROWS),
    "lognormal, sigma 2": lambda random: random.lognormal(0, 2, ROWS),
    "Pareto, alpha 1.5": lambda random: random.pareto(1.5, ROWS) + 1,
    "Pareto, alpha 2.5": lambda random: random.pareto(2.5, ROWS) + 1,
    "rare giants": lambda random: (
        random.exponential(1, ROWS) * np.where(random.random(ROWS) < 0.0005, 1000, 1)
    ),
}
"""Columns to average; the last ones have tails that a small sample does not see."""

SHARING = {
    "each row has a weight of its own": lambda random: np.arange(ROWS),
    "four rows share a weight": lambda random: random.integers(0, ROWS // 4, ROWS),
    "few weights have most rows": lambda random: np.unique(
        np.minimum(random.zipf(1.7, ROWS), 10**9), return_inverse=True
    )[1],
}
"""Which weight each row has."""


@dataclass
class Table:
    """Rows with a value each, and weights that some of them share."""

    values: NDArray[np.float64]
    weight_of_row: NDArray[np.int64]
    random: np.random.Generator
    kept: NDArray[np.bool_] | None = None
    """Which rows a filter keeps; all by default."""
    group: NDArray[np.int64] | None = None
    ruled_out: NDArray[np.bool_] | None = None
    """Which rows are in files that the filter rules out; none by default."""
    weights: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self.weights = self.random.random(self.weight_of_row.max() + 1)
        if self.kept is None:
            self.kept = np.ones(len(self.values), dtype=np.bool_)
        if self.ruled_out is None:
            self.ruled_out = np.zeros(len(self.values), dtype=np.bool_)
        if self.group is None:
            self.group = np.zeros(len(self.values), dtype=np.int64)

    @property
    def groups(self) -> int:
        return int(self.group.max()) + 1

    def truth(self, function: str) -> NDArray[np.float64]:
        sums = np.bincount(self.group[self.kept], self.values[self.kept], self.groups)
        counts = np.bincount(self.group[self.kept], minlength=self.groups)
        return {"sum": sums, "count": counts, "avg": sums / counts}[function]

    def look(self, function: str, fraction: float, known_size: bool) -> Look:
        below = self.weights[self.weight_of_row] < fraction
        sampled = np.flatnonzero(below & ~self.ruled_out)
        weight, kept = self.weight_of_row[sampled], self.kept[sampled]
        number = np.ones(len(sampled)) if function == "count" else self.values[sampled]
        cell = weight * self.groups + self.group[sampled]
        if not known_size:
            cell, number, weight = cell[kept], number[kept], weight[kept]
        cells, cell = np.unique(cell, return_inverse=True)
        counted = np.ones(len(cell)) if not known_size else kept.astype(np.float64)
        y, rows = np.bincount(cell, number * counted), np.bincount(cell).astype(np.float64)
        z = rows if function == "avg" or known_size else np.zeros(len(y))
        moments = moments_of_clusters(fraction, y, z, cells % self.groups, self.groups)
        shared = np.bincount(self.weight_of_row[sampled]).astype(np.float64)
        of_group = np.bincount(self.group[sampled][kept], minlength=self.groups)
        return Look(
            moments,
            float(len(sampled)),
            float((shared**2).sum()),
            of_group,
            rows_elsewhere=float((below & self.ruled_out).sum()),
            most_above=float((~below & ~self.ruled_out).sum()),
        )

    def estimate(
        self,
        function: str,
        tolerance: float,
        *,
        known_size: bool = False,
        known_extremes: bool = True,
        rows_in_log: bool = True,
        confidence: float = 0.95,
        largest_fraction: float = 0.5,
    ) -> Outcome:
        scale: float | None = float(len(self.values)) if known_size else None
        extremes = (float(self.values.min()), float(self.values.max()))
        population = Population(
            len(self.values) if rows_in_log else None,
            int((~self.ruled_out).sum()),
            1.0 if function == "avg" else scale,
            extremes if known_extremes and function != "count" else None,
            min_rows=float((~self.ruled_out & self.kept).sum()),
            is_total=function != "avg",
        )
        return grow(
            lambda fraction: self.look(function, fraction, known_size),
            Goal(tolerance, confidence),
            population,
            largest_fraction,
        )

    def covered(self, function: str, tolerance: float, **options: object) -> NDArray[np.bool_]:
        """Of each group, whether the answer has the truth in its interval, as exact ones do."""
        outcome = self.estimate(function, tolerance, **options)
        if outcome.exact_because:
            return np.ones(self.groups, dtype=np.bool_)
        found = outcome.intervals
        return np.abs(found.value - self.truth(function)) <= found.half_width
