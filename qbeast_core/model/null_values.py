"""The numbers that replace null in linear and hashed columns.

The format asks for a random number. We derive it from a digest of the column and the revision, so a
repeated write gives the same table. The table is not part of the digest: Spark puts the number into
generated code, which the JVM then need not compile again when the same rows go to another table.
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
    """A value of the column's type in [minimum, maximum], computed without overflow."""
    digest = _digest(column, revision_id)
    if data_type.is_whole:
        lowest = int(minimum)
        return lowest + digest * (int(maximum) - lowest) // (1 << 64)
    fraction = digest / (1 << 64)
    # Not minimum + fraction * extent, because the extent may overflow a double.
    value = float(minimum) * (1.0 - fraction) + float(maximum) * fraction
    if data_type is DataType.FLOAT:
        value = float(np.float32(value))
    return min(max(value, float(minimum)), float(maximum))


def draw_hash_null_value(column: str, revision_id: int) -> int:
    """An int32 that is hashed in place of null."""
    return (_digest(column, revision_id) >> 32) - (1 << 31)


def _digest(column: str, revision_id: int) -> int:
    """The first 64 bits of the digest of a column and a revision."""
    text = f"{revision_id}:{column}"
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")
