"""How well samples of rows represent them, judged by the rows' weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qbeast_core.model.weight import fraction_of_weight

TOO_MANY_ALIKE = 10.0
"""With this many rows per weight, a sample's errors are three times those of independent rows."""

MIN_ROWS = 1000
"""Smaller tables are not worth sampling, so they cause no warning."""

_ENOUGH_WEIGHTS = 200
_FAR_BELOW_ALL = 0.9


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


def sampled_share(sample_weights: NDArray[np.int32], rows: int) -> float:
    """The fraction of a table that these rows are a sample of; 1 if they look like a whole table.

    `sample_weights` are the weights of a uniform sample of these rows. About one in 10^9 whole
    tables looks like a sample of 90 %.
    """
    if rows < MIN_ROWS or len(np.unique(sample_weights)) < _ENOUGH_WEIGHTS:
        return 1.0
    share = fraction_of_weight(int(sample_weights.max()))
    return share if share < _FAR_BELOW_ALL else 1.0


def is_cluster_sample(alike: float, rows: int) -> bool:
    """Whether users should be warned about samples of the table."""
    return rows >= MIN_ROWS and alike >= TOO_MANY_ALIKE
