"""The numbers that stand for null in linear and hashed columns.

The format asks for a random one. Ours is drawn from a digest of where it is used: the same column
and revision always give the same value, so a write that is tried again changes nothing. The table
has no part in it: Spark writes the value into the code that it generates, and a JVM has compiled
that code already when the same rows are written to another table.
"""

from __future__ import annotations

import hashlib

import numpy as np

from qbeast_core.model.datatypes import DataType, Number


def draw_null_value(
    column: str,
    revision_id: int,
    minimum: Number,
    maximum: Number,
    data_type: DataType,
) -> Number:
    """A value of the column's type in [minimum, maximum]; never overflows the type."""
    digest = _digest(column, revision_id)
    if data_type.is_whole:
        lowest = int(minimum)
        return lowest + digest * (int(maximum) - lowest) // (1 << 64)
    fraction = digest / (1 << 64)
    # Weighted ends instead of minimum + fraction * extent: the extent may not fit a double.
    value = float(minimum) * (1.0 - fraction) + float(maximum) * fraction
    if data_type is DataType.FLOAT:
        value = float(np.float32(value))
    return min(max(value, float(minimum)), float(maximum))


def draw_hash_null_value(column: str, revision_id: int) -> int:
    """An int32 that is hashed in place of null."""
    return (_digest(column, revision_id) >> 32) - (1 << 31)


def _digest(column: str, revision_id: int) -> int:
    """64 bits of a digest."""
    text = f"{revision_id}:{column}"
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")
