"""JSON and numbers in the text form that Java writes (docs/format.md 3.4).

The text is part of the format: readers on the JVM tell a double from an integer by its decimal
point, and a hashed number's coordinate comes from its Java text (docs/format.md 4.4).
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

MAX_TEXT_LENGTH = 32 << 20
"""The characters that a JSON text of a table's metadata may have."""
MAX_NESTING = 100
"""The levels to which such a text may be nested; the format itself needs five."""


def parse_json(text: str) -> Any:
    """The value of a JSON text from a table's metadata, which anybody may have written.

    Raises ValueError if the text is not JSON, too long or nested too deeply.
    """
    check_length(text)
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if _is_deeper(value, MAX_NESTING):
        raise ValueError(f"it is nested too deeply; {MAX_NESTING} levels are allowed")
    return value


def check_length(text: str) -> None:
    """Raise ValueError if a text of the metadata is too long to be parsed or stored."""
    if len(text) > MAX_TEXT_LENGTH:
        raise ValueError(f"it has {len(text):,} characters; {MAX_TEXT_LENGTH:,} are allowed")


def parse_id(text: str) -> int | None:
    """A number as it is written in names and tags: up to 18 digits; None for any other text."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None


def _is_deeper(value: Any, levels: int) -> bool:
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return False
    return levels == 0 or any(_is_deeper(each, levels - 1) for each in value)


def to_json_text(value: Any) -> str:
    """Compact JSON, with float written as a Java double and `numpy.float32` as a Java float.

    Accepts dict, list, tuple, str, int, float, bool and None; keeps the order of keys. Raises
    ValueError for NaN and infinities, which JSON cannot express, and TypeError for other types.
    """
    if isinstance(value, dict):
        members = [f"{_quoted(key)}:{to_json_text(member)}" for key, member in value.items()]
        return "{" + ",".join(members) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(to_json_text, value)) + "]"
    if isinstance(value, np.float32):
        return _finite(value, java_float_text(value))
    if isinstance(value, float):
        return _finite(value, java_double_text(value))
    if value is None or isinstance(value, (bool, int)):
        return json.dumps(value)
    if isinstance(value, str):
        return _quoted(value)
    raise TypeError(f"{value!r} has no JSON form")


def java_double_text(x: float) -> str:
    """`Double.toString(x)` as of Java 19: the shortest text that reads back as the same double.

    Older Java versions write unneeded digits for a few numbers (1.9999999999999998E23 for
    2.0E23), which read back as the same double.

    >>> java_double_text(100.0), java_double_text(1e20), java_double_text(0.00012)
    ('100.0', '1.0E20', '1.2E-4')
    """
    if not math.isfinite(x):
        return _not_finite(x)
    shortest = repr(float(x))
    # Where one digit suffices, Java writes the closest two digits if they read back: 4.9E-324.
    closer = f"{x:.1e}"
    return _java_number(closer if _has_one_digit(shortest) and float(closer) == x else shortest)


def java_float_text(x: np.float32) -> str:
    """`Float.toString(x)`: the shortest text that reads back as the same 32-bit float."""
    if not math.isfinite(x):
        return _not_finite(float(x))
    shortest = np.format_float_scientific(x, unique=True, trim="0")
    closer = f"{float(x):.1e}"
    if _has_one_digit(shortest) and np.float32(closer) == x:
        return _java_number(closer)
    return _java_number(shortest)


def _java_number(text: str) -> str:
    """Converts a decimal text to Java's layout: plain within [1e-3, 1e7), else scientific."""
    sign = "-" if text.startswith("-") else ""
    mantissa, _, exponent_text = text.lstrip("-").partition("e")
    whole, _, part = mantissa.partition(".")
    digits = (whole + part).lstrip("0").rstrip("0") or "0"
    if digits == "0":
        return sign + "0.0"
    leading_zeros = len(whole + part) - len((whole + part).lstrip("0"))
    # The exponent of the first digit: the number is d.ddd * 10^exponent.
    exponent = int(exponent_text or "0") + len(whole) - 1 - leading_zeros
    if -3 <= exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    if 0 <= exponent < 7:
        padded = digits.ljust(exponent + 1, "0")
        return f"{sign}{padded[: exponent + 1]}.{padded[exponent + 1 :] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _has_one_digit(text: str) -> bool:
    mantissa = text.lstrip("-").partition("e")[0]
    return len(mantissa.replace(".", "").strip("0")) <= 1


def _not_finite(x: float) -> str:
    return "NaN" if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"


def _finite(x: float | np.float32, text: str) -> str:
    if not math.isfinite(x):
        raise ValueError(f"{text} has no JSON form")
    return text


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
