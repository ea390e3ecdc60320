"""Slices: for each row a small whole number that tells the smallest of the halved samples it is in.

A weight is a place among 2^32. Slice 0 is the upper half of them, slice 1 the upper half of what is
left, and so on to slice 32, the very first place: `slice >= k` is the sample of 1 / 2^k, and any
engine can ask for it. A table may store it as its last column, which Delta computes.

>>> [slice_of_weight(weight) for weight in (2147483647, 0, -1, -2147483647, -2147483648)]
[0, 0, 1, 31, 32]
"""

from __future__ import annotations

from qbeast_core.model.weight import MIN_WEIGHT

SLICE_COLUMN = "_qbeast_slice"
SLICES_KEY = "qbeast.slices"
"""In a table's configuration, `true` where the table has that column."""

_BITS = 32


def slice_of_weight(weight: int) -> int:
    """From 0 to 32: the leading zeros, in 32 bits, of how far the weight is from the smallest."""
    return _BITS - (weight - MIN_WEIGHT).bit_length()


def lowest_slice_below(limit: int) -> int:
    """The largest slice that every row with a weight below `limit` reaches."""
    return slice_of_weight(max(limit - 1, MIN_WEIGHT))


def slice_expression(weight: str) -> str:
    """SQL for the slice of a row, tinyint, from SQL for its weight, int.

    Whole numbers are compared and nothing is computed, so that no setting and no rounding changes
    it. Half of the rows are done after the first comparison, and three quarters after the second.

    >>> slice_expression("w")[:45]
    'CASE WHEN w >= 0 THEN 0Y WHEN w >= -1073741824'
    """
    cases = (
        f"WHEN {weight} >= {MIN_WEIGHT + (1 << _BITS - 1 - number)} THEN {number}Y"
        for number in range(_BITS)
    )
    return f"CASE {' '.join(cases)} ELSE {_BITS}Y END"
