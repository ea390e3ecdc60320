"""Hashed coordinates: spread evenly over [0, 1], without order (docs/format.md 4.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np

from qbeast_core.errors import CorruptMetadata
from qbeast_core.model.coordinate import EmptyTransformation, Transformation, field_of
from qbeast_core.model.json_text import java_double_text, java_float_text
from qbeast_core.model.murmur import scala_bytes_hash
from qbeast_core.model.unusable import UnusableTransformation

_LARGEST = 2147483647.0


@dataclass(frozen=True, slots=True)
class HashTransformation(Transformation):
    """Hashes a string's UTF-8 bytes or a number's Java text; null is hashed as a number."""

    class_name: ClassVar[str] = "HashTransformation"

    null_value: int

    def transform(self, value: Any) -> float:
        """The coordinate of a str, int, float, `numpy.float32` (a float column), Decimal or bytes.

        Raises ValueError for dates, timestamps and booleans: the format has no hash for them.
        """
        hashed = scala_bytes_hash(hashed_bytes(self.null_value if value is None else value))
        return (hashed & 0x7FFFFFFF) / _LARGEST

    def to_json(self) -> dict[str, Any]:
        return self._named(nullValue=self.null_value)

    @staticmethod
    def from_json(json_object: Mapping[str, Any]) -> HashTransformation | UnusableTransformation:
        null_value = field_of(json_object, "nullValue")
        if isinstance(null_value, str):
            return UnusableTransformation(json_object, "version 0.2 stored a text for nulls")
        if type(null_value) is not int:
            raise CorruptMetadata(
                f"nullValue of a hash must be an integer, got {null_value!r:.200}"
            )
        return HashTransformation(null_value)

    def is_superseded_by(self, other: Transformation) -> bool:
        return not isinstance(other, (HashTransformation, EmptyTransformation))


def hashed_bytes(value: Any) -> bytes:
    """The bytes that are hashed for a value. Raises ValueError for a type that has none."""
    if isinstance(value, str):
        return value.encode("utf-8")
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, np.float32):
        return java_float_text(value).encode("ascii")
    if isinstance(value, (float, np.floating)):
        return java_double_text(float(value)).encode("ascii")
    if isinstance(value, (int, np.integer, Decimal)) and not isinstance(value, bool):
        # Python writes decimals as Java's BigDecimal does.
        return str(value).encode("ascii")
    raise ValueError(f"{value!r} cannot be hashed to a coordinate; strings and numbers can")
