"""Quantiles measured on a sample of a column's values, for columns without user-given ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from qbeast_core.model.quantiles import utf16_order

MEASURED_QUANTILES = 256
"""The largest number of intervals between measured quantiles: few enough for strings to fit in a
revision, enough to divide the tail of a distribution finely."""


def measured_numbers(
    numbers: NDArray[np.float64], minimum: float, maximum: float
) -> tuple[float, ...]:
    """The quantiles of a uniform sample of a column's finite numbers, from minimum to maximum.

    They are distinct, so a frequent value takes up only one of them. Empty if there are fewer than
    two distinct values.
    """
    picked = np.sort(numbers)[_evenly(len(numbers))]
    quantiles = np.unique(np.concatenate([[minimum], picked, [maximum]])) + 0.0
    if len(quantiles) < 2:
        return ()
    with np.errstate(over="ignore"):
        if np.isinf(np.diff(quantiles)).any():
            quantiles = np.unique(np.append(quantiles, 0.0))
    return tuple(quantiles.tolist())


def measured_texts(texts: Sequence[str]) -> tuple[str, ...]:
    """The same for a string column, from the smallest to the largest value of the sample."""
    ordered = sorted(texts, key=utf16_order)
    picked = dict.fromkeys(ordered[i] for i in _evenly(len(ordered)).tolist())
    return tuple(picked) if len(picked) > 1 else ()


def _evenly(count: int) -> NDArray[np.int64]:
    """Up to `MEASURED_QUANTILES` + 1 indices into `count` elements, both ends included."""
    steps = min(count, MEASURED_QUANTILES + 1)
    return np.round(np.linspace(0, max(count - 1, 0), steps)).astype(np.int64)
