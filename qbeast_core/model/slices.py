"""Slices: a small integer per row, which any engine can filter to take a sample of 1 / 2^k.

Slice 0 is the upper half of the 2^32 weights, slice 1 the upper half of the rest, and so on to
slice 32, the smallest weight alone. So `slice >= k` is the sample of 1 / 2^k. A table may store the
slice as its last column, which Delta computes (docs/format.md 5.5).

>>> [slice_of_weight(weight) for weight in (2147483647, 0, -1, -2147483647, -2147483648)]
[0, 0, 1, 31, 32]
"""

from __future__ import annotations

from qbeast_core.model.weight import MIN_WEIGHT

SLICE_COLUMN = "_qbeast_slice"
SLICES_KEY = "qbeast.slices"
"""Key in a table's configuration; `true` if the table has the column."""

_BITS = 32


def slice_of_weight(weight: int) -> int:
    """The slice, 0 to 32: the leading zeros of `weight - MIN_WEIGHT` in 32 bits."""
    return _BITS - (weight - MIN_WEIGHT).bit_length()


def lowest_slice_below(limit: int) -> int:
    """The largest k such that all rows with a weight below `limit` have a slice of k or more."""
    return slice_of_weight(max(limit - 1, MIN_WEIGHT))


def slice_expression(weight: str) -> str:
    """SQL for the slice of a row (tinyint), from SQL for its weight (int).

    It only compares integers, so no setting and no rounding can change the result. Half of the rows
    need one comparison, another quarter two.

    >>> slice_expression("w")[:46]
    'CASE WHEN w >= 0 THEN 0Y WHEN w >= -1073741824'
    """
    cases = (
        f"WHEN {weight} >= {MIN_WEIGHT + (1 << _BITS - 1 - number)} THEN {number}Y"
        for number in range(_BITS)
    )
    return f"CASE {' '.join(cases)} ELSE {_BITS}Y END"
