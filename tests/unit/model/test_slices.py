"""Slices of weights, and the SQL that Delta computes them by."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from qbeast_core.model.slices import lowest_slice_below, slice_expression, slice_of_weight
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT, weight_of_fraction

WEIGHTS = st.integers(MIN_WEIGHT, MAX_WEIGHT) | st.builds(
    lambda power, distance: min(max(MIN_WEIGHT + (1 << power) + distance, MIN_WEIGHT), MAX_WEIGHT),
    st.integers(0, 32),
    st.integers(-2, 2),
)
_CASE = re.compile(r"CASE (?P<cases>(?:WHEN w >= -?\d+ THEN \d+Y )+)ELSE (?P<rest>\d+)Y END")


@given(WEIGHTS)
@example(MIN_WEIGHT)
@example(MAX_WEIGHT)
def test_a_slice_says_in_which_halved_samples_a_row_is(weight: int) -> None:
    place = weight - MIN_WEIGHT
    for k in range(34):
        assert (slice_of_weight(weight) >= k) == (k <= 32 and place < 2 ** (32 - k))


@given(WEIGHTS, WEIGHTS)
@example(MIN_WEIGHT, MIN_WEIGHT)
@example(MIN_WEIGHT, MIN_WEIGHT + 1)
@example(-1, 0)
@example(0, 1)
def test_every_row_below_a_limit_reaches_its_slice(weight: int, limit: int) -> None:
    if weight < limit:
        assert slice_of_weight(weight) >= lowest_slice_below(limit)


@given(WEIGHTS.filter(lambda weight: weight > MIN_WEIGHT))
def test_no_higher_slice_would_do(limit: int) -> None:
    assert slice_of_weight(limit - 1) == lowest_slice_below(limit)


@given(st.floats(0.0, 1.0, exclude_max=True))
def test_fractions_choose_slices(fraction: float) -> None:
    lowest = lowest_slice_below(weight_of_fraction(fraction))
    assert 0 <= lowest <= 32
    assert lowest == 0 if fraction > 0.5 else lowest > 0


def test_a_slice_and_those_above_are_exactly_the_sample_of_a_power_of_two() -> None:
    for k in range(1, 33):
        limit = weight_of_fraction(0.5**k)
        assert lowest_slice_below(limit) == k
        assert slice_of_weight(limit) == k - 1


@given(WEIGHTS)
@example(MIN_WEIGHT)
@example(0)
def test_the_sql_computes_the_slice_of_a_weight(weight: int) -> None:
    match = _CASE.fullmatch(slice_expression("w"))
    assert match is not None
    cases = [(int(low), int(k)) for low, k in re.findall(r">= (-?\d+) THEN (\d+)", match["cases"])]
    found = next((k for low, k in cases if weight >= low), int(match["rest"]))
    assert found == slice_of_weight(weight)
