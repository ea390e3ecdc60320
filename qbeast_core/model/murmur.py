"""The two Murmur3 variants of the format: Spark's `hash()` and Scala's `bytesHash`.

Row weights are Spark's `hash()` of the indexed columns (docs/format.md 5.1); coordinates of hashed
columns come from Scala 2.12's `MurmurHash3.bytesHash` (docs/format.md 4.4). Both differ from
standard Murmur3: Spark mixes the bytes after the last whole 4-byte word one by one, and Scala mixes
all bytes one by one.
"""

from __future__ import annotations

import datetime
import math
import re
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import mmh3

from qbeast_core.model.datatypes import EPOCH

SPARK_HASH_SEED = 42

_MASK = 0xFFFFFFFF
_C1, _C2 = 0xCC9E2D51, 0x1B873593
SCALA_ARRAY_SEED = 0x3C074A61


def spark_hash(values: Sequence[tuple[Any, str]]) -> int:
    """Spark's `hash()` of a row: an int32.

    `values` pairs each Python value with its column's Spark type (`int`, `decimal(12,2)`, ...). A
    date may be given as days and a timestamp as microseconds since 1970 in UTC; a `datetime` must
    have a time zone. None leaves the hash unchanged. Raises ValueError for a type that this module
    does not hash, even if Spark does, and for a value of another type.
    """
    result = SPARK_HASH_SEED
    for value, spark_type in values:
        if value is not None:
            result = _hash_value(value, spark_type, result & _MASK)
    return _signed(result & _MASK)


def scala_bytes_hash(data: bytes) -> int:
    """Scala 2.12's `MurmurHash3.bytesHash`: an int32."""
    h = SCALA_ARRAY_SEED
    for byte in data:
        h = _mix(h, byte if byte < 128 else byte - 256)
    return _signed(_finalize(h, len(data)))


def _hash_value(value: Any, spark_type: str, seed: int) -> int:
    decimal_type = _DECIMAL.fullmatch(spark_type)
    if decimal_type:
        return _hash_decimal(value, int(decimal_type[1]), int(decimal_type[2]), seed)
    encode = _ENCODERS.get(spark_type)
    if encode is None:
        raise ValueError(f"a column of type {spark_type} cannot be hashed")
    try:
        return _hash_bytes(encode(value), seed)
    except (struct.error, AttributeError, TypeError) as problem:
        raise ValueError(f"{value!r} is not a value of type {spark_type}: {problem}") from None


def _hash_bytes(data: bytes, seed: int) -> int:
    """Spark's hash of bytes: 4-byte words as in Murmur3, then each remaining byte as a word."""
    whole = len(data) & ~3
    if whole == len(data):
        return int(mmh3.hash(data, seed, signed=False))
    h = _unfinalized(mmh3.hash(data[:whole], seed, signed=False), whole)
    for byte in data[whole:]:
        h = _mix(h, byte if byte < 128 else byte - 256)
    return _finalize(h, len(data))


def _hash_decimal(value: Any, precision: int, scale: int, seed: int) -> int:
    if not isinstance(value, (Decimal, int)):
        raise ValueError(f"{value!r} is not a value of type decimal({precision},{scale})")
    unscaled = _unscaled(Decimal(value), scale)
    if abs(unscaled) >= 10**precision:
        raise ValueError(f"{value} has more digits than type decimal({precision},{scale})")
    if precision <= 18:
        return _hash_bytes(struct.pack("<q", unscaled), seed)
    magnitude = unscaled if unscaled >= 0 else ~unscaled
    length = magnitude.bit_length() // 8 + 1
    return _hash_bytes(unscaled.to_bytes(length, "big", signed=True), seed)


def _unscaled(value: Decimal, scale: int) -> int:
    """The integer that a decimal column of this scale stores; exact, without a decimal context."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{value} is not a value of a decimal type")
    coefficient = int("".join(map(str, digits)))
    shift = exponent + scale
    power: int = 10 ** abs(shift)
    if shift < 0 and coefficient % power:
        raise ValueError(f"{value} has more than {scale} digits after the decimal point")
    magnitude = coefficient * power if shift >= 0 else coefficient // power
    return -magnitude if sign else magnitude


def _int_bytes(value: Any) -> bytes:
    return struct.pack("<i", value)


def _long_bytes(value: Any) -> bytes:
    return struct.pack("<q", value)


def _date_bytes(value: Any) -> bytes:
    if isinstance(value, datetime.date):
        value = value.toordinal() - EPOCH.toordinal()
    return struct.pack("<i", value)


def _timestamp_bytes(value: Any) -> bytes:
    if isinstance(value, datetime.datetime):
        # Raises TypeError for a datetime without a time zone, which must not be guessed.
        value = (value - EPOCH) // datetime.timedelta(microseconds=1)
    return struct.pack("<q", value)


def _float_bytes(value: Any) -> bytes:
    # Spark hashes NaN and zero in canonical form: one NaN, no negative zero.
    return b"\x00\x00\xc0\x7f" if math.isnan(value) else struct.pack("<f", value + 0.0)


def _double_bytes(value: Any) -> bytes:
    return b"\x00" * 6 + b"\xf8\x7f" if math.isnan(value) else struct.pack("<d", value + 0.0)


def _string_bytes(value: Any) -> bytes:
    return bytes(value.encode("utf-8"))


_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")
_ENCODERS: dict[str, Callable[[Any], bytes]] = {
    "boolean": _int_bytes,
    "tinyint": _int_bytes,
    "smallint": _int_bytes,
    "int": _int_bytes,
    "bigint": _long_bytes,
    "float": _float_bytes,
    "double": _double_bytes,
    "string": _string_bytes,
    "binary": bytes,
    "date": _date_bytes,
    "timestamp": _timestamp_bytes,
}


def _mix(h: int, k: int) -> int:
    """One round of Murmur3 on a 32-bit word."""
    k = (k * _C1) & _MASK
    k = (k << 15 | k >> 17) & _MASK
    h ^= (k * _C2) & _MASK
    h = (h << 13 | h >> 19) & _MASK
    return (h * 5 + 0xE6546B64) & _MASK


def _finalize(h: int, length: int) -> int:
    h ^= length
    h ^= h >> 16
    h = (h * 0x85EBCA6B) & _MASK
    h ^= h >> 13
    h = (h * 0xC2B2AE35) & _MASK
    return h ^ h >> 16


def _unfinalized(h: int, length: int) -> int:
    """Reverses `_finalize`, so that more rounds can follow those of mmh3."""
    h ^= h >> 16
    h = (h * _INVERSE_2) & _MASK
    h ^= h >> 13 ^ h >> 26
    h = (h * _INVERSE_1) & _MASK
    h ^= h >> 16
    return h ^ length


_INVERSE_1 = pow(0x85EBCA6B, -1, 1 << 32)
_INVERSE_2 = pow(0xC2B2AE35, -1, 1 << 32)


def _signed(h: int) -> int:
    return h - (1 << 32) if h >> 31 else h
