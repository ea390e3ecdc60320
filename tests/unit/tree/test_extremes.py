"""Filters on a file's extremes never rule out a file with a row that satisfies them."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st

from qbeast_core.tree.extremes import Extremes, columns_of, file_filter
from qbeast_core.tree.query import And, Anything, Comparison, In, IsNull, Or, Predicate
from tests.support.oracles import holds

KINDS: list[Any] = [
    st.integers(-5, 5),
    st.sampled_from([-math.inf, -1.5, -0.0, 0.0, 0.5, math.inf, math.nan]),
    st.sampled_from(["", "a", "ab", "b", "\U0001f600"]),
    st.decimals(-2, 2, places=1),
    st.dates(datetime.date(2024, 1, 1), datetime.date(2024, 1, 5)),
]
OPERATORS = ("<", "<=", "=", ">=", ">")


@st.composite
def files(draw: st.DrawFn) -> tuple[dict[str, list[Any]], Predicate]:
    """The values of two columns in the rows of a file, and a filter on them."""
    kinds = {name: draw(st.sampled_from(KINDS)) for name in "ab"}
    rows = draw(st.integers(0, 4))
    values = {
        name: draw(st.lists(st.none() | kind, min_size=rows, max_size=rows))
        for name, kind in kinds.items()
    }
    conditions = st.sampled_from("ab").flatmap(
        lambda name: st.one_of(
            st.builds(Comparison, st.just(name), st.sampled_from(OPERATORS), kinds[name]),
            st.builds(In, st.just(name), st.lists(st.none() | kinds[name], max_size=3).map(tuple)),
            st.builds(IsNull, st.just(name)),
        )
    )
    parts = st.recursive(
        conditions,
        lambda inner: (
            st.builds(And, st.lists(inner, max_size=3).map(tuple))
            | st.builds(Or, st.lists(inner, max_size=3).map(tuple))
        ),
        max_leaves=5,
    )
    return values, draw(parts)


def extremes_of(values: list[Any]) -> Extremes:
    some = [value for value in values if value is not None]
    # NaN is above every number.
    ordered = sorted(math.inf if value != value else value for value in some)
    return Extremes(
        ordered[0] if ordered else None,
        ordered[-1] if ordered else None,
        only_nulls=not some,
        no_nulls=len(some) == len(values),
    )


@given(files())
def test_a_file_with_a_row_that_passes_may_satisfy(
    drawn: tuple[dict[str, list[Any]], Predicate],
) -> None:
    values, predicate = drawn
    extremes = {name: extremes_of(column) for name, column in values.items()}
    rows = [dict(zip("ab", row, strict=True)) for row in zip(*values.values(), strict=True)]
    if any(holds(predicate, row) for row in rows):
        assert file_filter(predicate)(extremes)
        assert file_filter(predicate)({})


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (Comparison("a", "=", 1), False),
        (Comparison("a", "<", 2), False),
        (Comparison("a", "<=", 2), True),
        (Comparison("a", ">", 4), False),
        (Comparison("a", ">=", 4), True),
        (In("a", (1, 5, None)), False),
        (In("a", (1, 3)), True),
        (IsNull("a"), False),
        (IsNull("n"), True),
        (Comparison("n", "=", 1), False),
        (And((Comparison("a", "=", 3), IsNull("a"))), False),
        (Or((Comparison("a", "=", 3), IsNull("a"))), True),
        (Comparison("unknown", "=", Decimal(1)), True),
        (Anything(), True),
    ],
)
def test_a_file_is_ruled_out_by_its_extremes(predicate: Predicate, expected: bool) -> None:
    extremes = {"a": Extremes(2, 4, no_nulls=True), "n": Extremes(only_nulls=True)}
    assert file_filter(predicate)(extremes) is expected


VALUES = st.one_of(*KINDS)


@given(
    st.one_of(*map(st.lists, KINDS), st.lists(VALUES)).map(tuple),
    st.builds(Extremes, *[st.none() | VALUES] * 2, st.booleans(), st.booleans()),
)
def test_a_list_is_ruled_out_if_each_of_its_values_is(
    values: tuple[Any, ...], extremes: Extremes
) -> None:
    for end in (extremes.minimum, extremes.maximum):
        assume(end is None or end == end)
    each = [file_filter(Comparison("a", "=", value)) for value in values]
    try:
        expected = any(possible({"a": extremes}) for possible in each)
        assume(all(isinstance(possible({"a": extremes}), bool) for possible in each))
    except TypeError:  # values that cannot be compared
        reject()
    assert file_filter(In("a", (None, *values)))({"a": extremes}) is expected


@pytest.mark.parametrize("op", OPERATORS)
def test_a_text_that_may_stand_for_other_bytes_rules_out_no_file(op: Any) -> None:
    """Spark compares the bytes: X'FF' is above all characters, but is read as U+FFFD."""
    smile = Extremes("\U0001f600", "\U0001f600")
    assert file_filter(Comparison("s", op, "\ufffd"))({"s": smile})
    assert file_filter(In("s", ("a\ufffd",)))({"s": smile})


@pytest.mark.parametrize("op", OPERATORS)
def test_nan_rules_out_no_file(op: Any) -> None:
    assert file_filter(Comparison("x", op, math.nan))({"x": Extremes(1.0, math.inf)})


def test_nan_is_above_infinity() -> None:
    """The statistics have infinity for a maximum of NaN."""
    assert file_filter(Comparison("x", ">", math.inf))({"x": Extremes(1.0, math.inf)})
    assert not file_filter(Comparison("x", ">", math.inf))({"x": Extremes(1.0, 2.0)})


def test_extremes_decide_filters_on_columns_alone() -> None:
    condition = Or((Comparison("a", "=", 1), And((IsNull("b"), In("c", (1,))))))
    assert columns_of(condition) == {"a", "b", "c"}
    assert columns_of(And((condition, Anything()))) is None
    assert columns_of(And(())) == set()
