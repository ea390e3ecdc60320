"""Row weights (int32) and the fractions of rows that they correspond to (docs/format.md 5.2).

Row weights are spread evenly over the whole int32 range, so a weight below `weight_of_fraction(f)`
selects about the fraction f of the rows. A *normalized* weight is this fraction for a cube; 1.0 and
above means that the cube takes every row that reaches it (a leaf).
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

MIN_WEIGHT = -(2**31)
MAX_WEIGHT = 2**31 - 1

_OFFSET = float(MIN_WEIGHT)
_RANGE = float(MAX_WEIGHT) - float(MIN_WEIGHT)


@overload
def weight_of_fraction(f: float) -> int: ...


@overload
def weight_of_fraction(f: NDArray[np.float64]) -> NDArray[np.int64]: ...


def weight_of_fraction(f: float | NDArray[np.float64]) -> int | NDArray[np.int64]:
    """The weight at a fraction: rows with a smaller weight make up about `f` of all rows.

    Truncates toward zero and saturates, as Java's cast to int does. Fractions outside [0, 1] give
    the nearest end. An array gives an array. Raises ValueError for NaN.
    """
    position = f * _RANGE + _OFFSET
    if np.isnan(position).any():
        raise ValueError("a fraction must be a number, got NaN")
    if isinstance(position, np.ndarray):
        weights: NDArray[np.int64] = np.clip(position, _OFFSET, float(MAX_WEIGHT)).astype(np.int64)
        return weights
    return int(min(max(position, _OFFSET), float(MAX_WEIGHT)))


@overload
def fraction_of_weight(w: int) -> float: ...


@overload
def fraction_of_weight(w: NDArray[Any]) -> NDArray[np.float64]: ...


def fraction_of_weight(w: int | NDArray[Any]) -> float | NDArray[np.float64]:
    """The fraction in [0, 1] that a weight corresponds to; an array of weights gives an array."""
    if isinstance(w, np.ndarray):
        fractions: NDArray[np.float64] = (w.astype(np.float64) - _OFFSET) / _RANGE
        return fractions
    return (float(w) - _OFFSET) / _RANGE
