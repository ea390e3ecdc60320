"""The weights where the files of a write end."""

import numpy as np
import pytest

from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT, weight_of_fraction
from qbeast_core.tree.bands import BAND_ENDS, band_numbers, choose_band_ends, ends_around
from qbeast_core.tree.weighed_sample import WeighedSample
from tests.support.trees import random_weights


def end(fraction: float) -> int:
    return weight_of_fraction(fraction) - 1


def sample_of(weights: np.ndarray, scale: int = 1) -> WeighedSample:
    return WeighedSample(np.zeros((1, len(weights)), np.int64), weights, scale * len(weights))


@pytest.mark.parametrize(
    ("smallest", "fractions"),
    [(14, [0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3]), (1500, [0.03, 0.1, 0.3])],
)
def test_bands_end_where_samples_of_common_fractions_do(
    smallest: int, fractions: list[float]
) -> None:
    weights = random_weights(100_000, 5)
    ends = choose_band_ends(sample_of(weights), smallest)
    assert ends.tolist() == [end(fraction) for fraction in fractions]
    # The scale counts: each row of the sample may stand for several.
    assert choose_band_ends(sample_of(weights, 3), 3 * smallest).tolist() == ends.tolist()


@pytest.mark.parametrize("smallest", [1, 80, 700, 900, 40_000, 60_000])
def test_no_band_is_smaller_than_is_worth_a_file(smallest: int) -> None:
    weights = random_weights(100_000, 5)
    ends = choose_band_ends(sample_of(weights), smallest)
    rows = np.bincount(band_numbers(weights, ends))
    assert rows.min() >= smallest and rows.sum() == 100_000


def test_few_rows_and_equal_weights_are_one_band() -> None:
    assert len(choose_band_ends(sample_of(random_weights(100, 5)), 60)) == 0
    assert len(choose_band_ends(sample_of(np.full(100, 5, dtype=np.int32)), 1)) == 0


def test_a_band_ends_where_one_ended_before_if_there_are_rows_on_both_sides() -> None:
    few = np.array([end(0.002), end(0.05), end(0.05), end(0.8)], dtype=np.int32)
    kept = {end(0.01), end(0.1), end(0.0001)}
    assert choose_band_ends(sample_of(few), 4, kept).tolist() == [end(0.01), end(0.1)]
    assert choose_band_ends(sample_of(few[1:3]), 2, kept).tolist() == []


def test_the_row_at_the_limit_of_a_sample_is_not_in_its_bands() -> None:
    weights = [MIN_WEIGHT, end(0.1), weight_of_fraction(0.1), MAX_WEIGHT]
    first, below, at, last = band_numbers(weights).tolist()
    assert (first, last) == (0, len(BAND_ENDS))
    assert at == below + 1


def test_the_ends_around_a_file_are_those_next_to_its_weights() -> None:
    assert ends_around(end(0.05), end(0.1)) == {end(0.03), end(0.1)}
    assert ends_around(end(0.0002), end(0.01)) == {end(0.01)}
    assert ends_around(end(0.02), MAX_WEIGHT) == set()
    assert ends_around(end(0.5), MAX_WEIGHT) == {end(0.3)}
    assert ends_around(MIN_WEIGHT, MAX_WEIGHT) == set()
    assert ends_around(MIN_WEIGHT, MIN_WEIGHT) == {int(BAND_ENDS[0])}
