"""How much precision samples lose when rows share their weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

TOO_MANY_ALIKE = 10.0
"""With this many rows per weight, a sample's errors are three times those of independent rows."""

FEWEST_ROWS = 1000
"""Smaller tables are not worth sampling, so they cause no warning."""


def rows_per_weight(sample_weights: NDArray[np.int32], rows: int) -> float:
    """How many of all `rows` share a row's weight (including the row), on average over the rows.

    `sample_weights` are the weights of a uniform sample of rows. A sample of the table is as
    imprecise as a sample of independent rows that is this many times smaller.
    """
    drawn = len(sample_weights)
    if drawn < 2:
        return 1.0
    counts = np.unique(sample_weights, return_counts=True)[1].astype(np.float64)
    alike = float((counts * (counts - 1)).sum()) / (drawn * (drawn - 1.0))
    return 1.0 + alike * (rows - 1)


def is_cluster_sample(alike: float, rows: int) -> bool:
    """Whether users should be warned about samples of the table."""
    return rows >= FEWEST_ROWS and alike >= TOO_MANY_ALIKE
