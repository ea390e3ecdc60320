"""Quantiles as tables, and quantiles taken from values."""

import math

import numpy as np
import pytest

from qbeast_core.model.datatypes import DataType
from qbeast_core.model.deprecated import StringHistogram
from qbeast_core.model.measured_quantiles import (
    MEASURED_QUANTILES,
    measured_numbers,
    measured_texts,
)
from qbeast_core.model.quantiles import NumericQuantiles, StringQuantiles

QUANTILES = [
    (0.0, 10.0, 50.0, 100.0, 200.0, 399.0),
    (1.0, 1.0, 1.0, 2.0, 2.0, 3.0),
    (-0.0, 0.0, 5e-324, 1e-300, 1e300),
    (7.0, 7.0),
]
TEXTS = [("a_1", "d_2", "g_3"), ("", "", "b", "b", "\ue000"), ("x", "x"), ("a", "\U0001f600")]


@pytest.mark.parametrize("quantiles", QUANTILES)
def test_lookup_tables_of_numbers_equal_the_transformation(quantiles: tuple[float, ...]) -> None:
    transformation = NumericQuantiles(quantiles, DataType.DOUBLE)
    ends = [v + d for v in quantiles for d in (-1.0, -1e-9, 0.0, 1e-9, 0.3)]
    between = np.random.default_rng(3).uniform(-10, 500, 200).tolist()
    values = [*ends, *between, -0.0, 5e-324, 1e299, -math.inf, math.inf, math.nan]
    placed = transformation.coordinate_table().coordinates(np.array(values))
    assert placed.tolist() == [transformation.transform(value) for value in values]


@pytest.mark.parametrize("quantiles", TEXTS)
def test_lookup_tables_of_strings_equal_the_transformation(quantiles: tuple[str, ...]) -> None:
    values = ["", "A", "a_1", "a_10", "b", "c", "g_3", "x", "y", "\ue000", "\uffff", "\U0001f601"]
    for transformation in (StringQuantiles(quantiles), StringHistogram(quantiles)):
        placed = transformation.coordinate_table().coordinates(values)
        assert placed.tolist() == [transformation.transform(value) for value in values]
    assert math.isnan(StringQuantiles(quantiles).coordinate_table().coordinates([None])[0])


def test_measured_quantiles_halve_the_values_evenly() -> None:
    numbers = np.random.default_rng(5).lognormal(0, 3, 100_000)
    quantiles = measured_numbers(numbers, numbers.min(), numbers.max())
    assert len(quantiles) == MEASURED_QUANTILES + 1
    assert (quantiles[0], quantiles[-1]) == (numbers.min(), numbers.max())
    placed = NumericQuantiles(quantiles, DataType.DOUBLE).coordinate_table().coordinates(numbers)
    assert np.abs(np.histogram(placed, bins=16, range=(0, 1))[0] / 6250 - 1).max() < 0.05


def test_a_value_of_most_rows_takes_one_place() -> None:
    numbers = np.concatenate([np.zeros(9_000), np.arange(1.0, 1_001.0)])
    quantiles = measured_numbers(numbers, 0.0, 1_000.0)
    assert quantiles[0] == 0.0 and len(set(quantiles)) == len(quantiles) > 20
    assert NumericQuantiles(quantiles, DataType.LONG).transform(500) == pytest.approx(0.5, abs=0.1)


def test_bounds_are_exact_where_the_sample_missed_them() -> None:
    assert measured_numbers(np.array([3.0, 5.0]), -1.0, 9.0) == (-1.0, 3.0, 5.0, 9.0)
    assert measured_numbers(np.array([]), -1.0, 9.0) == (-1.0, 9.0)


def test_fewer_than_two_values_have_no_quantiles() -> None:
    assert measured_numbers(np.array([3.0, 3.0]), 3.0, 3.0) == ()
    assert measured_numbers(np.array([0.0]), -0.0, 0.0) == ()
    assert measured_texts([]) == measured_texts(["a", "a"]) == ()


def test_neighbours_that_no_double_spans_are_parted() -> None:
    quantiles = measured_numbers(np.array([-1.7e308, 1.7e308]), -1.7e308, 1.7e308)
    assert quantiles == (-1.7e308, 0.0, 1.7e308)
    with pytest.raises(ValueError, match="distance"):
        NumericQuantiles((-1.7e308, 1.7e308), DataType.DOUBLE)


def test_measured_texts_are_in_the_order_of_java() -> None:
    assert measured_texts(["b", "\ue000", "a", "\U0001f600", "a"]) == (
        "a",
        "b",
        "\U0001f600",
        "\ue000",
    )
    many = [f"{i:05}" for i in range(10_000)]
    assert len(measured_texts(many)) == MEASURED_QUANTILES + 1
