"""How much less a sample tells where rows share their weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

TOO_MANY_ALIKE = 10.0
"""So many rows with one weight make a sample's errors three times those of independent rows."""

FEWEST_ROWS = 1000
"""Of smaller tables nobody takes a sample to learn something."""


def rows_per_weight(sample_weights: NDArray[np.int32], rows: int) -> float:
    """How many of all `rows` share the weight of a row (it included), on average over the rows.

    `sample_weights` are those of a uniform sample of rows. A sample of the table is as uncertain as
    one of independent rows that has this many times fewer.
    """
    drawn = len(sample_weights)
    if drawn < 2:
        return 1.0
    counts = np.unique(sample_weights, return_counts=True)[1].astype(np.float64)
    alike = float((counts * (counts - 1)).sum()) / (drawn * (drawn - 1.0))
    return 1.0 + alike * (rows - 1)


def is_cluster_sample(alike: float, rows: int) -> bool:
    """Whether samples of such a table should be warned of."""
    return rows >= FEWEST_ROWS and alike >= TOO_MANY_ALIKE
