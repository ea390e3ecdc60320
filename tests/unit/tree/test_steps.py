"""The steps of a column: literals that Spark reads as the values that the index compares."""

from __future__ import annotations

import datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from qbeast_core.model.datatypes import DataType
from qbeast_core.model.transformation import (
    HashTransformation,
    IdentityTransformation,
    LinearTransformation,
    NumericQuantiles,
    StringHistogram,
    StringQuantiles,
    Transformation,
)
from qbeast_core.tree.steps import ColumnSteps, column_steps


def linear(low: Any, high: Any, data_type: DataType) -> LinearTransformation:
    return LinearTransformation(low, high, low, data_type)


def literals(steps: ColumnSteps) -> list[str]:
    return [bound.sql for bound in steps.lower]


def test_a_step_ends_below_the_boundary_at_which_the_next_cube_begins() -> None:
    of = linear(0, 20_000, DataType.INTEGER)
    steps = column_steps("a", of)
    assert steps.count == 64
    assert steps.lower[0].value == 320 and steps.upper[0].value == 310
    for i, (lower, upper) in enumerate(zip(steps.lower, steps.upper, strict=True), start=1):
        assert of.transform(upper.value) < i / 64 <= of.transform(lower.value) < (i + 1) / 64
    assert steps.marks[0] == (0.0, "0") and steps.marks[-1] == (1.0, "20,000")


def test_few_whole_numbers_are_a_step_each() -> None:
    steps = column_steps("a", linear(0, 9, DataType.LONG))
    assert [bound.value for bound in steps.lower] == list(range(1, 10))
    assert [bound.value for bound in steps.upper] == list(range(9))
    assert steps.count == 10


@pytest.mark.parametrize(
    ("of", "scale", "first"),
    [
        (linear(0, 64 * 86_400_000, DataType.DATE), None, "date '1970-01-02'"),
        (
            linear(0, 64 * 86_400_000, DataType.TIMESTAMP),
            None,
            "timestamp '1970-01-02 00:00:00 UTC'",
        ),
        (
            linear(-58_000_000_000_000, -57_999_999_993_600, DataType.TIMESTAMP),
            None,
            "timestamp '0132-01-20 16:53:20.100 UTC'",
        ),
        (linear(0, 6400, DataType.TIMESTAMP), None, "timestamp '1970-01-01 00:00:00.100 UTC'"),
        (linear(0.0, 64.0, DataType.DOUBLE), None, "1D"),
        (linear(0.0, 6.4e300, DataType.DOUBLE), None, "1.0E+299D"),
        (linear(0.0, 16.0, DataType.FLOAT), None, "0.25F"),
        (linear(0.0, 1.0, DataType.DECIMAL), 2, "0.02"),
        (linear(0.0, 1.0, DataType.DECIMAL), None, "0.016"),
    ],
)
def test_values_are_written_as_spark_reads_them(
    of: Transformation, scale: int | None, first: str
) -> None:
    assert literals(column_steps("a", of, decimal_scale=scale))[0] == first


@pytest.mark.parametrize(
    "of",
    [
        linear(-5, 90, DataType.INTEGER),
        linear(-1e-9, 3e-9, DataType.DOUBLE),
        linear(-(2**62), 2**62, DataType.LONG),
        linear(1_700_000_000_000, 1_700_009_000_000, DataType.TIMESTAMP),
        NumericQuantiles((1.0, 1.0, 2.0, 5.5, 1000.0, 1000.0, 1e6), DataType.DOUBLE),
        NumericQuantiles((0.0, 1.0, 2.0, 3.0), DataType.INTEGER),
        NumericQuantiles((1.0, 2.0, 40.0), DataType.DECIMAL),
        StringQuantiles(("a", "b", "b", "m", "z")),
        StringHistogram(("a", "k", "z")),
    ],
)
@pytest.mark.parametrize("most", [64, 8, 2])
def test_bounds_and_edges_are_increasing(of: Transformation, most: int) -> None:
    steps = column_steps("a", of, most)
    assert steps.kind == "ordered" and 2 <= steps.count <= most
    assert len(steps.lower) == len(steps.upper) == steps.count - 1
    assert all(low.value < high.value for low, high in pairwise(steps.lower))
    assert all(low.value < high.value for low, high in pairwise(steps.upper))
    assert all(low <= high for low, high in pairwise(steps.edges))
    assert steps.edges[0] == 0.0 and steps.edges[-1] == 1.0
    for edge, bound in zip(steps.edges[1:], steps.lower, strict=False):
        assert of.transform(bound.value) == edge
    for lower, upper in zip(steps.lower, steps.upper, strict=True):
        assert upper.value < lower.value or steps.upper_op == "<"


def test_texts_are_escaped_and_shortened_for_people() -> None:
    steps = column_steps("a", StringQuantiles(("a", "it's \\ " + "x" * 40)))
    assert literals(steps) == ["'it\\'s \\\\ " + "x" * 40 + "'"]
    assert steps.upper_op == "<"
    assert len(steps.lower[0].label) == 24 and steps.lower[0].label.endswith("…")


def test_texts_whose_order_depends_on_their_encoding_are_not_bounds() -> None:
    steps = column_steps("a", StringQuantiles(("a", "b", "\U0001f600")))
    assert literals(steps) == ["'b'"]


@pytest.mark.parametrize(
    ("of", "kind"),
    [
        (HashTransformation("x"), "hashed"),
        (IdentityTransformation(5, DataType.INTEGER), "single"),
        (None, "single"),
        (linear(-(10**17), 10**17, DataType.TIMESTAMP), "single"),
    ],
)
def test_other_columns_have_no_ranges(of: Transformation | None, kind: str) -> None:
    steps = column_steps("a", of)
    assert (steps.kind, steps.count, steps.lower, steps.upper) == (kind, 1, (), ())


def test_values_are_those_that_the_index_compares() -> None:
    dated = column_steps("a", linear(0, 64 * 86_400_000, DataType.DATE))
    assert dated.lower[0].value == datetime.date(1970, 1, 2)
    timed = column_steps("a", linear(0, 64_000, DataType.TIMESTAMP))
    assert timed.lower[0].value == datetime.datetime(
        1970, 1, 1, 0, 0, 1, tzinfo=datetime.timezone.utc
    )
    assert column_steps("a", linear(0.0, 6.4, DataType.DECIMAL)).lower[0].value == Decimal("0.1")
