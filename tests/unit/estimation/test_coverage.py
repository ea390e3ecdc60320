"""Intervals of 95 % contain the truth for at least 93 % of 200 tables of each kind.

Exact answers count as right. The last test limits how many tables may get them where samples work.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.estimation.populations import ROWS, SHARING, VALUES, Table

TABLES = 200
LEAST_COVERAGE = 0.93


pytestmark = pytest.mark.slow


def tables(values: str, sharing: str):
    for seed in range(TABLES):
        random = np.random.default_rng([seed, len(values), len(sharing)])
        yield Table(VALUES[values](random), SHARING[sharing](random), random)


@pytest.mark.parametrize("sharing", SHARING)
@pytest.mark.parametrize("values", VALUES)
def test_intervals_of_averages_contain_the_truth(values: str, sharing: str) -> None:
    covered = [table.covered("avg", 0.1)[0] for table in tables(values, sharing)]
    assert np.mean(covered) >= LEAST_COVERAGE


@pytest.mark.parametrize("known_size", [True, False], ids=["rows known", "rows unknown"])
@pytest.mark.parametrize("values", ["normal", "lognormal, sigma 2", "Pareto, alpha 1.5"])
def test_intervals_of_sums_contain_the_truth(values: str, known_size: bool) -> None:
    covered = [
        table.covered("sum", 0.1, known_size=known_size)[0]
        for table in tables(values, "four rows share a weight")
    ]
    assert np.mean(covered) >= LEAST_COVERAGE


@pytest.mark.parametrize("known_size", [True, False], ids=["rows known", "rows unknown"])
@pytest.mark.parametrize("sharing", SHARING)
def test_intervals_of_filtered_counts_contain_the_truth(sharing: str, known_size: bool) -> None:
    covered = []
    for table in tables("normal", sharing):
        table.kept = table.random.random(ROWS) < 0.02
        covered.append(table.covered("count", 0.1, known_size=known_size)[0])
    assert np.mean(covered) >= LEAST_COVERAGE


@pytest.mark.parametrize("tolerance", [0.02, 0.05, 0.3])
def test_stopping_at_the_first_interval_that_is_narrow_enough(tolerance: float) -> None:
    covered = [
        table.covered("avg", tolerance)[0]
        for table in tables("lognormal, sigma 1", "each row has a weight of its own")
    ]
    assert np.mean(covered) >= LEAST_COVERAGE


def test_heavy_tails_of_expressions_whose_extremes_the_log_does_not_know() -> None:
    for values in ("lognormal, sigma 2", "Pareto, alpha 1.5"):
        covered = [
            table.covered("avg", 0.1, known_extremes=False)[0]
            for table in tables(values, "each row has a weight of its own")
        ]
        assert np.mean(covered) >= LEAST_COVERAGE, values


def test_intervals_of_groups_contain_the_truth() -> None:
    covered = []
    for table in tables("exponential", "four rows share a weight"):
        table.group = table.random.choice(4, ROWS, p=[0.4, 0.3, 0.2, 0.1])
        covered.append(table.covered("avg", 0.1))
    assert np.mean(covered, axis=0).min() >= LEAST_COVERAGE


@pytest.mark.parametrize("sharing", list(SHARING)[:2])
@pytest.mark.parametrize("values", ["normal", "exponential", "lognormal, sigma 1"])
def test_light_tails_are_served_by_samples(values: str, sharing: str) -> None:
    outcomes = [table.estimate("avg", 0.1) for table in tables(values, sharing)]
    sampled = [each.intervals.fraction for each in outcomes if each.exact_because is None]
    assert len(sampled) >= 0.95 * TABLES
    assert np.median(sampled) <= 0.06
