"""Numbers and JSON as Java writes them (docs/format.md 3.4)."""

import json
import math
import random
import struct

import numpy as np
import pytest

from qbeast_core.model.json_text import java_double_text, java_float_text, to_json_text


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (-1.5, "-1.5"),
        (100.0, "100.0"),
        (9999999.0, "9999999.0"),
        (10000000.0, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (1e20, "1.0E20"),
        (1e23, "1.0E23"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (1e-5, "1.0E-5"),
        (0.8836329781120158, "0.8836329781120158"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (5e-324, "4.9E-324"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
    ],
)
def test_doubles_have_the_text_that_java_gives_them(x, text):
    assert java_double_text(x) == text


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0.33333334, "0.33333334"),
        (499.66666, "499.66666"),
        (255.50566, "255.50566"),
        (0.1, "0.1"),
        (0.0, "0.0"),
        (16777216.0, "1.6777216E7"),
        (1e10, "1.0E10"),
        (3.4028235e38, "3.4028235E38"),
        (1.4e-45, "1.4E-45"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
    ],
)
def test_floats_have_the_text_that_java_gives_them(x, text):
    assert java_float_text(np.float32(x)) == text


def test_every_text_reads_back():
    draw = random.Random(1)
    for _ in range(5000):
        x = struct.unpack("<d", draw.randbytes(8))[0]
        if math.isfinite(x):
            assert float(java_double_text(x)) == x
        y = np.frombuffer(draw.randbytes(4), dtype=np.float32)[0]
        if np.isfinite(y):
            assert np.float32(java_float_text(y)) == y


def test_json_is_compact_and_keeps_order_and_letters():
    value = {"b": [1, 2.0, np.float32(0.1), None, True], "a": 'né"\\\n', "c": {}, "d": ()}
    assert to_json_text(value) == '{"b":[1,2.0,0.1,null,true],"a":"né\\"\\\\\\n","c":{},"d":[]}'
    assert json.loads(to_json_text(value))["a"] == value["a"]


@pytest.mark.parametrize("x", [math.nan, math.inf, np.float32("-inf")])
def test_json_has_no_text_for_what_is_not_finite(x):
    with pytest.raises(ValueError, match="JSON"):
        to_json_text([x])


def test_json_of_other_types_is_refused():
    with pytest.raises(TypeError, match="JSON"):
        to_json_text({1, 2})
