from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from qbeast_core.model.datatypes import DataType, to_millis
from qbeast_core.model.revision import Revision
from qbeast_core.model.transformation import (
    HashTransformation,
    IdentityTransformation,
    LinearTransformation,
    NumericQuantiles,
    StringHistogram,
    StringQuantiles,
    Transformation,
    UnusableTransformation,
)
from qbeast_core.model.transformer import (
    HashTransformer,
    LinearTransformer,
    NumericQuantilesTransformer,
    StringHistogramTransformer,
    StringQuantilesTransformer,
    Transformer,
)
from qbeast_core.tree.query import (
    And,
    Anything,
    Comparison,
    In,
    IsNull,
    Or,
    Predicate,
    _common,
    may_match,
)


def revision(*columns: tuple[Transformer, Transformation]) -> Revision:
    transformers, transformations = zip(*columns, strict=True)
    return Revision(1, 0, "t", 100, transformers, transformations)


def linear(name: str, low: float, high: float, data_type: DataType, null: float = 0) -> Any:
    transformation = LinearTransformation(low, high, null or low, data_type)
    return LinearTransformer(name, data_type), transformation


def hashed(name: str, data_type: DataType) -> Any:
    return HashTransformer(name, data_type), HashTransformation(-1809672334)


NUMBERS = revision(
    linear("a", 0, 8, DataType.INTEGER, null=7), linear("b", 0.0, 1.0, DataType.DOUBLE)
)


def quarters(predicate: Predicate, of: Revision = NUMBERS, dimension: int = 0) -> list[int]:
    """Which quarters of one dimension (the other one whole) may match."""
    lower = np.zeros((4, of.dimensions))
    upper = np.ones((4, of.dimensions))
    lower[:, dimension] = np.arange(4) / 4
    upper[:, dimension] = np.arange(1, 5) / 4
    return np.flatnonzero(may_match(predicate, of, lower, upper)).tolist()


@pytest.mark.parametrize(
    ("op", "value", "expected"),
    [
        ("=", 2, [1]),
        ("=", 8, [3]),
        ("<", 2, [0, 1]),
        ("<=", 2, [0, 1]),
        (">", 2, [1, 2, 3]),
        (">=", 8, [3]),
        ("=", 2.5, [1]),
        ("=", Decimal("2.5"), [1]),
        (">", 100, []),
        ("<", -100, []),
        ("=", 9, []),
        ("=", -1, []),
        (">", -1, [0, 1, 2, 3]),
        ("<", 9, [0, 1, 2, 3]),
        ("<", math.nan, [0, 1, 2, 3]),
        (">", math.inf, [3]),
        ("=", "2", [0, 1, 2, 3]),
        ("=", None, [0, 1, 2, 3]),
        ("=", True, [0, 1, 2, 3]),
        ("=", datetime.date(2020, 1, 1), [0, 1, 2, 3]),
        ("!=", 2, [0, 1, 2, 3]),
    ],
)
def test_a_comparison_is_an_interval(op: Any, value: Any, expected: list[int]) -> None:
    assert quarters(Comparison("a", op, value)) == expected


def test_numbers_beyond_the_bounds_are_in_the_outermost_cubes() -> None:
    """Infinities and NaN take no part in the bounds of a revision."""
    assert quarters(Comparison("b", ">", 5.0), dimension=1) == [3]
    assert quarters(Comparison("b", "=", math.nan), dimension=1) == [3]
    assert quarters(Comparison("b", "<=", -math.inf), dimension=1) == [0]


def test_predicates_combine() -> None:
    below, above = Comparison("a", "<", 1), Comparison("a", ">", 7)
    assert quarters(Or((below, above))) == [0, 3]
    assert quarters(And((below, above))) == []
    assert quarters(And((below, And((Anything(), above))))) == []
    assert quarters(And(())) == [0, 1, 2, 3]
    assert quarters(Or(())) == []
    assert quarters(And((Anything(), below))) == [0]
    assert quarters(Or((Anything(), below))) == [0, 1, 2, 3]
    assert quarters(And((below, Comparison("b", ">", 0.6))), dimension=1) == [2, 3]
    assert quarters(Comparison("other", "=", 1)) == [0, 1, 2, 3]


def test_lists_match_each_of_their_values_only() -> None:
    assert quarters(In("a", (1, 7, None))) == [0, 3]
    assert quarters(In("a", (7, 1, 7, 0))) == [0, 3]
    assert quarters(In("a", ())) == []
    assert quarters(In("a", (1, "x"))) == [0, 1, 2, 3]
    assert quarters(And((In("a", (1, 5, 7)), Comparison("a", "<", 6)))) == [0, 2]


def test_null_is_at_its_own_value() -> None:
    assert quarters(IsNull("a")) == [3]
    assert quarters(IsNull("other")) == [0, 1, 2, 3]


def test_nulls_whose_value_is_not_stored_may_be_anywhere() -> None:
    of = (
        LinearTransformer("a", DataType.INTEGER),
        LinearTransformation(0, 8, None, DataType.INTEGER),
    )
    assert quarters(IsNull("a"), revision(of)) == [0, 1, 2, 3]
    assert quarters(Comparison("a", "=", 2), revision(of)) == [1]


def test_nulls_of_string_quantiles_may_be_those_of_a_histogram() -> None:
    """qbeast-spark's updateTransformationTypes turns histograms into quantiles in place."""
    texts = ("a", "f", "k", "p", "z")
    quantiles = revision((StringQuantilesTransformer("s"), StringQuantiles(texts)))
    histogram = revision((StringHistogramTransformer("s", DataType.STRING), StringHistogram(texts)))
    assert quarters(IsNull("s"), histogram) == [2]
    assert quarters(IsNull("s"), quantiles) == [0, 2]
    assert quarters(And((IsNull("s"), Comparison("s", ">", "g"))), quantiles) == [2]


@pytest.mark.parametrize("zero", [0, 0.0, -0.0, Decimal("0.0")])
def test_both_zeros_are_found_among_repeated_quantiles(zero: Any) -> None:
    quantiles = NumericQuantiles((-8.0, 0.0, 0.0, 0.0, 4.0), DataType.DOUBLE)
    of = revision((NumericQuantilesTransformer("q", DataType.DOUBLE), quantiles))
    assert quarters(Comparison("q", "=", zero), of) == [1, 2]
    assert quarters(Comparison("q", ">=", zero), of) == [1, 2, 3]


def test_dates_reach_into_the_neighbouring_days() -> None:
    day = 86_400_000
    dates = revision(linear("d", 0, 8 * day, DataType.DATE))
    assert quarters(Comparison("d", "=", datetime.date(1970, 1, 4)), dates) == [0, 1, 2]
    assert quarters(Comparison("d", "<", datetime.date(1970, 1, 2)), dates) == [0, 1]
    assert quarters(Comparison("d", ">", datetime.date(1970, 1, 8)), dates) == [2, 3]
    assert quarters(In("d", (datetime.date(1970, 1, 1),)), dates) == [0]
    noon = datetime.datetime(1970, 1, 1, 12, tzinfo=datetime.timezone.utc)
    assert quarters(Comparison("d", "=", noon), dates) == [0, 1, 2, 3]


@pytest.mark.parametrize("data_type", [DataType.DATE, DataType.TIMESTAMP])
def test_old_dates_may_be_those_of_another_calendar(data_type: DataType) -> None:
    """qbeast-spark places them as `java.util.Date` does, for which 1582 had ten days less."""

    def at(year: int, month: int, day: int) -> datetime.date:
        date = datetime.datetime(year, month, day, tzinfo=datetime.timezone.utc)
        return date.date() if data_type is DataType.DATE else date

    julian = to_millis(at(1500, 1, 10))
    column = revision(linear("d", julian, to_millis(at(2020, 1, 1)), data_type))
    for op in ("=", "<=", "<"):
        assert 0 in quarters(Comparison("d", op, at(1500, 1, 1)), column)
    few_days = revision(
        linear("d", to_millis(at(1700, 1, 1)), to_millis(at(1700, 1, 9)), data_type)
    )
    assert quarters(Comparison("d", "=", at(1700, 1, 5)), few_days) == [1, 2]
    assert quarters(Comparison("d", "=", at(1582, 10, 16)), few_days) == []


def test_timestamps_are_floored_to_milliseconds() -> None:
    instants = revision(linear("t", 0, 8, DataType.TIMESTAMP))
    at = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    later = at + datetime.timedelta(microseconds=3999)
    assert quarters(Comparison("t", "=", later), instants) == [1]
    assert quarters(Comparison("t", ">", later), instants) == [1, 2, 3]
    assert quarters(Comparison("t", ">", later.replace(tzinfo=None)), instants) == [0, 1, 2, 3]
    assert quarters(Comparison("t", ">", datetime.date(1970, 1, 2)), instants) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("data_type", "value", "stored"),
    [
        (DataType.STRING, "user_7", ["user_7"]),
        (DataType.STRING, "café", ["café", b"caf?", b"caf\xe9"]),
        (DataType.STRING, "€", ["€", b"?", b"\x80"]),
        (DataType.INTEGER, 5.0, [5]),
        (DataType.LONG, Decimal("5.00"), [5]),
    ],
)
def test_a_hash_is_that_of_the_stored_type(
    data_type: DataType, value: Any, stored: list[Any]
) -> None:
    of = revision(hashed("h", data_type))
    transform = of.transformations[0].transform
    expected = sorted({int(transform(each) * 4) for each in stored})
    assert quarters(Comparison("h", "=", value), of) == expected
    assert quarters(In("h", (value,)), of) == expected
    assert quarters(Comparison("h", "<", value), of) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (DataType.DECIMAL, Decimal("5")),
        (DataType.INTEGER, 5.5),
        (DataType.INTEGER, math.inf),
        (DataType.INTEGER, math.nan),
        (DataType.INTEGER, "5"),
        (DataType.FLOAT, 1.5),
        (DataType.DOUBLE, 2e23),
        (DataType.DOUBLE, math.nan),
        (DataType.STRING, 5),
    ],
)
def test_a_value_without_a_sure_hash_matches_everything(data_type: DataType, value: Any) -> None:
    assert quarters(Comparison("h", "=", value), revision(hashed("h", data_type))) == [0, 1, 2, 3]


@pytest.mark.parametrize("op", ["=", "<", ">="])
def test_a_text_that_stands_for_other_bytes_matches_everything(op: str) -> None:
    quantiles = StringQuantilesTransformer("s"), StringQuantiles(("a", "f", "k", "p", "z"))
    for column in (quantiles, hashed("s", DataType.STRING)):
        for text in ("\ufffd", "a\ufffdb"):
            assert quarters(Comparison("s", op, text), revision(column)) == [0, 1, 2, 3]
            assert quarters(In("s", ("b", text)), revision(column)) == [0, 1, 2, 3]


@pytest.mark.parametrize("op", ["<", "<="])
def test_bytes_below_a_text_may_be_placed_above_it(op: str) -> None:
    """X'80' is below every character beyond ASCII, but lies where U+FFFD does."""
    texts = revision(
        (StringQuantilesTransformer("s"), StringQuantiles(("a", "f", "k", "中", "日")))
    )
    assert quarters(Comparison("s", op, "°"), texts) == [0, 1, 2, 3]
    assert quarters(Comparison("s", op, "b°"), texts) == [0]
    assert quarters(Comparison("s", ">=", "°"), texts) == [2, 3]


def test_a_transformation_that_places_no_rows_matches_everything() -> None:
    unusable = UnusableTransformation({"quantiles": ["a", "！", "😀"]}, "they are not sorted")
    of = revision((StringQuantilesTransformer("s"), unusable))
    for predicate in (
        Comparison("s", "=", "a"),
        Comparison("s", ">", "b"),
        IsNull("s"),
        In("s", ("a",)),
    ):
        assert quarters(predicate, of) == [0, 1, 2, 3]


def test_a_constant_column_matches_everything() -> None:
    column = LinearTransformer("c", DataType.INTEGER)
    of = revision((column, IdentityTransformation(5, DataType.INTEGER)))
    for predicate in (Comparison("c", "=", 5), Comparison("c", ">", 9), IsNull("c"), In("c", (1,))):
        assert quarters(predicate, of) == [0, 1, 2, 3]


def test_quantiles_are_intervals_too() -> None:
    numbers = (
        NumericQuantilesTransformer("q", DataType.DOUBLE),
        NumericQuantiles((0.0, 1.0, 10.0, 100.0, 1000.0), DataType.DOUBLE),
    )
    assert quarters(Comparison("q", ">=", 50.0), revision(numbers)) == [2, 3]
    assert quarters(Comparison("q", "=", 1.0), revision(numbers)) == [1]
    texts = (StringQuantilesTransformer("s"), StringQuantiles(("a", "f", "k", "p", "z")))
    assert quarters(Comparison("s", "<", "c"), revision(texts)) == [0]
    assert quarters(Comparison("s", "=", "kk"), revision(texts)) == [2]
    assert quarters(Comparison("s", ">", "\U0001f600"), revision(texts)) == [0, 1, 2, 3]
    assert quarters(Comparison("s", "=", "\U0001f600"), revision(texts)) == [3]
    # Above this text in UTF-8, the emoji is below it in UTF-16.
    edges = (texts[0], StringQuantiles(("a", "\U0001f600", "\ufffb", "\ufffd", "\uffff")))
    assert quarters(Comparison("s", ">", "\ufffd"), revision(edges)) == [0, 1, 2, 3]


def test_a_revision_without_data_matches_everything() -> None:
    empty = Revision(0, 0, "t", 100, (LinearTransformer("a", DataType.INTEGER),), ())
    assert quarters(Comparison("a", "=", 1), empty) == [0, 1, 2, 3]


def test_intervals_have_in_common_what_both_have() -> None:
    generator = np.random.default_rng(7)
    for _ in range(200):
        unions = []
        for count in generator.integers(0, 6, 2):
            ends = np.sort(generator.choice(20, 2 * count, replace=False)) / 20
            unions.append([(float(a), float(b)) for a, b in ends.reshape(-1, 2)])
        some, others = unions
        pairs = [(max(a, c), min(b, d)) for a, b in some for c, d in others]
        assert _common(some, others) == sorted(pair for pair in pairs if pair[0] <= pair[1])
