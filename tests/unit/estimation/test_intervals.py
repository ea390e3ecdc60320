from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbeast_core.estimation.growing import MAX_LOOKS
from qbeast_core.estimation.intervals import (
    ratio_intervals,
    rows_off,
    student_quantile,
    total_intervals,
)
from tests.support.oracles import moments_of_clusters
from tests.unit.estimation.populations import ROWS, SHARING, VALUES, Table

numbers = st.floats(-1e3, 1e3).map(lambda number: round(number, 3))
clusters = st.lists(st.tuples(numbers, st.integers(1, 9)), min_size=2, max_size=30)


@given(clusters, numbers, st.integers(1, 4))
def test_residuals_come_from_power_sums(
    given_clusters: list[tuple[float, int]], ratio: float, power: int
) -> None:
    y, z = np.array(given_clusters, dtype=np.float64).T
    moments = moments_of_clusters(0.1, y, z)
    direct = ((y - ratio * z) ** power).sum()
    size = (np.abs(y) + np.abs(ratio * z)).max() ** power * len(y)
    assert moments.residual_sum(np.array([ratio]), power)[0] == pytest.approx(
        direct, abs=1e-9 * max(size, 1e-9)
    )


def test_a_total_is_scaled_up_and_its_variance_is_that_of_poisson_sampling() -> None:
    y = np.arange(1.0, 401.0)
    found = total_intervals(moments_of_clusters(0.25, y, np.zeros(400)), 0.95)
    assert found.value[0] == y.sum() / 0.25
    deviation = np.sqrt(0.75 * (y**2).sum() * 400 / 399) / 0.25
    assert found.half_width[0] == pytest.approx(1.96 * deviation, rel=0.01)


def test_a_ratio_does_not_depend_on_how_many_clusters_were_drawn() -> None:
    rows = np.tile([1.0, 2.0, 5.0], 100)
    moments = moments_of_clusters(0.1, 7.0 * rows, rows)
    found = ratio_intervals(moments, 0.95, scale=1000.0, extremes=(7.0, 7.0))
    assert (found.value[0], found.half_width[0]) == (7000.0, 0.0)
    assert found.within(0.001)[0]


def test_a_sample_of_equal_values_leaves_room_for_others() -> None:
    moments = moments_of_clusters(0.1, np.full(1000, 7.0), np.ones(1000))
    found = ratio_intervals(moments, 0.95)
    assert found.value[0] == 7.0
    assert found.half_width[0] == pytest.approx(7.0 * 3 / 1000, rel=0.01)


@pytest.mark.parametrize("known_size", [True, False])
def test_a_sample_of_zeros_says_nothing(known_size: bool) -> None:
    moments = moments_of_clusters(0.01, np.zeros(5000), np.ones(5000))
    found = (
        ratio_intervals(moments, 0.95, scale=1e6) if known_size else total_intervals(moments, 0.95)
    )
    assert np.isinf(found.half_width[0])
    assert not found.within(1.0)[0]


@pytest.mark.parametrize("hits", [1, 2, 4])
@pytest.mark.parametrize("rare", [True, False])
def test_rare_rows_are_not_rounded_away(rare: bool, hits: int) -> None:
    """Most samples have none of the few rows that a filter keeps, or drops."""
    covered = []
    for seed in range(40):
        random = np.random.default_rng(seed)
        table = Table(np.ones(ROWS), np.arange(ROWS), random)
        table.kept = np.full(ROWS, not rare)
        table.kept[random.choice(ROWS, hits, replace=False)] = rare
        covered += [
            table.covered(function, 0.1, known_size=True, known_extremes=False)[0]
            for function in ("count", "sum")
        ]
    assert np.mean(covered) >= 0.95


def test_equal_values_in_a_weight_count_once() -> None:
    """Rows that share weight and value make intervals as wide as if each weight had one row."""
    values = np.random.default_rng(1).normal(10, 3, 500)
    single = ratio_intervals(moments_of_clusters(0.1, values, np.ones(500)), 0.95)
    shared = ratio_intervals(moments_of_clusters(0.1, 8 * values, np.full(500, 8.0)), 0.95)
    assert shared.half_width[0] == pytest.approx(single.half_width[0])


@pytest.mark.parametrize("number", [0, 1])
def test_very_few_clusters_have_an_infinite_interval(number: int) -> None:
    found = ratio_intervals(moments_of_clusters(0.1, np.ones(number), np.ones(number)), 0.95)
    assert not found.within(1.0)[0]
    assert found.half_width[0] == np.inf
    assert 0.1 < found.needed_fraction(0.05)[0] <= 1.0


@pytest.mark.parametrize("value", [np.inf, np.nan, 1e200])
def test_numbers_beyond_all_bounds_are_not_precise(value: float) -> None:
    y = np.append(np.ones(500), value)
    with np.errstate(all="ignore"):
        found = ratio_intervals(moments_of_clusters(0.1, y, np.ones(501)), 0.95)
    assert not found.within(1.0)[0]
    assert found.needed_fraction(0.05)[0] > 0.1


def test_one_cluster_that_outweighs_all_others_is_not_relied_upon() -> None:
    y = np.append(np.ones(10_000), 5_000.0)
    assert not ratio_intervals(moments_of_clusters(0.1, y, np.ones(10_001)), 0.95).reliable[0]


def test_an_extreme_value_that_the_sample_lacks_is_known_from_the_log() -> None:
    moments = moments_of_clusters(0.01, np.tile([9.0, 10.0, 11.0], 1000), np.ones(3000))
    assert ratio_intervals(moments, 0.95, extremes=(8.0, 12.0)).within(0.01)[0]
    assert not ratio_intervals(moments, 0.95, extremes=(8.0, 1e6)).reliable[0]


@pytest.mark.parametrize(
    ("degrees", "expected"), [(3, 3.182), (5, 2.571), (30, 2.042), (1e9, 1.960)]
)
def test_student(degrees: float, expected: float) -> None:
    assert student_quantile(0.975, np.array([degrees]))[0] == pytest.approx(expected, rel=0.01)


def test_the_number_of_rows_reveals_a_heavy_weight_outside_the_sample() -> None:
    assert rows_off(0.01, 1000, 1.0, 100_000, 100_000) == 0
    assert rows_off(0.01, 500, 1.0, 100_000, 100_000) == -1
    assert rows_off(0.01, 1500, 1.0, 100_000, np.inf) == 0
    assert rows_off(0.01, 1500, 1.0, 100_000, 100_000) == 1
    assert rows_off(0.01, 1500, 50.0, 100_000, 100_000) == 0


def half_in_one_weight(random: np.random.Generator) -> Table:
    weights = np.where(random.random(ROWS) < 0.5, 0, np.arange(ROWS))
    return Table(random.normal(10, 3, ROWS), weights, random)


@pytest.mark.parametrize(("function", "rows_in_log"), [("count", True), ("avg", False)])
def test_a_table_with_half_of_its_rows_in_one_weight_is_read_whole(
    function: str, rows_in_log: bool
) -> None:
    table = half_in_one_weight(np.random.default_rng(3))
    outcome = table.estimate(function, 0.05, rows_in_log=rows_in_log)
    assert "many rows share one weight" in outcome.exact_because


def filtered(random: np.random.Generator, sampled: slice, fraction: float) -> Table:
    """A filter keeps some rows of the first half, and rules out the files of the second one.

    `sampled` are the rows that the table has from a sample of this fraction.
    """
    table = Table(random.normal(10, 3, ROWS), np.arange(ROWS), random)
    table.kept = np.arange(ROWS) < ROWS // 3
    table.ruled_out = np.arange(ROWS) >= ROWS // 2
    table.weights[sampled] *= fraction
    return table


WHOLE = slice(0, 0)


@pytest.mark.parametrize("function", ["count", "sum"])
def test_totals_of_a_filter_that_rules_out_files_are_covered(function: str) -> None:
    tables = [filtered(np.random.default_rng(seed), WHOLE, 1.0) for seed in range(40)]
    assert all(table.estimate(function, 0.1).exact_because is None for table in tables)
    assert np.mean([table.covered(function, 0.1)[0] for table in tables]) >= 0.93


@pytest.mark.parametrize(
    ("sampled", "fraction"),
    [
        (slice(None), 0.1),
        (slice(None), 0.8),
        (slice(ROWS // 2), 0.1),
        (slice(ROWS // 2, None), 0.1),
        (slice(None, None, 2), 0.1),
    ],
    ids=["all rows", "most of all rows", "the rows of the filter", "the others", "every other row"],
)
@pytest.mark.parametrize("function", ["count", "sum"])
def test_rows_that_were_sampled_before_are_counted(
    function: str, sampled: slice, fraction: float
) -> None:
    table = filtered(np.random.default_rng(1), sampled, fraction)
    outcome = table.estimate(function, 0.1)
    assert "themselves chosen by a sample" in outcome.exact_because


def test_few_rows_that_were_sampled_before_are_counted() -> None:
    """They hardly change the number of all rows, but there are no more that the filter keeps."""
    table = filtered(np.random.default_rng(1), slice(2000), 0.8)
    table.kept = np.arange(ROWS) < 2000
    table.ruled_out = ~table.kept
    outcome = table.estimate("count", 0.3)
    assert "themselves chosen by a sample" in outcome.exact_because


def test_a_table_without_the_rows_of_a_sample_is_read_whole() -> None:
    table = filtered(np.random.default_rng(1), WHOLE, 1.0)
    table.weights = 0.1 + 0.9 * table.weights
    assert "rows of low weights were left out" in table.estimate("count", 0.1).exact_because


def test_a_total_needs_the_number_of_rows() -> None:
    table = filtered(np.random.default_rng(1), WHOLE, 1.0)
    assert "number of rows" in table.estimate("count", 0.1, rows_in_log=False).exact_because
    assert table.estimate("avg", 0.1, rows_in_log=False).exact_because is None


def test_small_groups_are_marked_and_do_not_hold_up_the_others() -> None:
    random = np.random.default_rng(5)
    table = Table(random.normal(10, 3, ROWS), np.arange(ROWS), random)
    table.group = np.where(np.arange(ROWS) < 20, 2, np.arange(ROWS) % 2)
    outcome = table.estimate("avg", 0.05)
    assert outcome.exact_because is None
    assert outcome.too_small.tolist() == [False, False, True]


def test_many_groups_of_one_size_are_all_made_precise() -> None:
    random = np.random.default_rng(6)
    table = Table(random.normal(10, 3, ROWS), np.arange(ROWS), random)
    table.group = np.arange(ROWS) % 50
    outcome = table.estimate("avg", 0.2, largest_fraction=0.9)
    assert outcome.intervals is not None
    assert outcome.intervals.within(0.2).all()


def test_a_sample_grows_no_further_than_pays() -> None:
    asked = []

    class Watched(Table):
        def look(self, function: str, fraction: float, known_size: bool):
            asked.append(fraction)
            return super().look(function, fraction, known_size)

    random = np.random.default_rng(7)
    values = VALUES["lognormal, sigma 2"](random)
    table = Watched(values, SHARING["four rows share a weight"](random), random)
    outcome = table.estimate("avg", 0.01, known_extremes=False, largest_fraction=0.3)
    assert outcome.exact_because
    assert asked == sorted(asked)
    assert len(asked) <= MAX_LOOKS
    assert max(asked) <= 0.3


def test_a_filter_that_keeps_nothing_ends_with_all_rows() -> None:
    random = np.random.default_rng(8)
    table = Table(random.normal(10, 3, ROWS), np.arange(ROWS), random)
    table.kept = np.zeros(ROWS, dtype=np.bool_)
    assert table.estimate("count", 0.05).exact_because


def test_numpy_is_all_that_estimation_imports() -> None:
    import subprocess
    import sys
    from pathlib import Path

    code = (
        "import sys, qbeast_core.estimation.growing as growing\n"
        "print(growing.MAX_LOOKS, sorted({n.split('.')[0] for n in sys.modules}"
        " & {'pyspark', 'py4j', 'delta'}))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
        check=True,
    )
    assert run.stdout.strip() == f"{MAX_LOOKS} []"


@pytest.mark.parametrize(("tolerance", "confidence"), [(1e-200, 0.95), (5e-324, 0.999999999)])
def test_a_precision_that_no_sample_reaches_asks_for_all_rows(
    tolerance: float, confidence: float
) -> None:
    random = np.random.default_rng(3)
    table = Table(VALUES["normal"](random), np.arange(ROWS), random)
    assert table.estimate("avg", tolerance, confidence=confidence).exact_because


def test_sampled_zeros_leave_room_for_the_known_extremes() -> None:
    moments = moments_of_clusters(0.1, np.zeros(500), np.zeros(500))
    found = total_intervals(moments, 0.95, extremes=(0.0, 1000.0))
    assert found.half_width[0] == pytest.approx(3 * 1000 / 0.1, rel=0.01)


@pytest.mark.parametrize("fraction", [0.1, 0.48, 0.5])
def test_a_known_giant_is_not_forgotten_near_half_of_the_rows(fraction: float) -> None:
    values = np.random.default_rng(1).normal(10, 3, 4000)
    moments = moments_of_clusters(fraction, values, np.ones(4000))
    assert ratio_intervals(moments, 0.95, extremes=(-2.0, 22.0)).within(0.05)[0]
    assert not ratio_intervals(moments, 0.95, extremes=(-2.0, 1e6)).reliable[0]


@pytest.mark.parametrize("width", [86_400, 3_600, 100])
def test_large_values_that_differ_little_need_no_more_rows_than_others(width: int) -> None:
    """Such as the seconds of a day: the sums of their powers cancel out nearly all digits."""
    for seed in range(20):
        values = 1.7e9 + np.random.default_rng(seed).uniform(0, width, 4000)
        found = ratio_intervals(moments_of_clusters(0.08, values, np.ones(4000)), 0.95)
        assert found.within(0.05)[0]
        assert abs(found.value[0] - 1.7e9 - width / 2) < width / 2
