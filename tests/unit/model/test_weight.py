"""Weights and fractions as the JVM computes them (docs/format.md 5.2)."""

import math

import numpy as np
import pytest

from qbeast_core.model.weight import (
    MAX_WEIGHT,
    MIN_WEIGHT,
    fraction_of_weight,
    weight_of_fraction,
)
from tests.unit.model.reference_vectors import VECTORS


@pytest.mark.parametrize("case", VECTORS["weight_from_fraction"], ids=lambda c: str(c["fraction"]))
def test_weight_of_a_fraction(case):
    assert weight_of_fraction(case["fraction"]) == case["weight"]


@pytest.mark.parametrize("case", VECTORS["fraction_from_weight"], ids=lambda c: str(c["weight"]))
def test_fraction_of_a_weight(case):
    assert fraction_of_weight(case["weight"]) == case["fraction"]


def test_fractions_of_an_array_equal_those_of_its_weights():
    weights = [case["weight"] for case in VECTORS["fraction_from_weight"]]
    fractions = fraction_of_weight(np.array(weights, dtype=np.int32))
    assert fractions.tolist() == [case["fraction"] for case in VECTORS["fraction_from_weight"]]


@pytest.mark.parametrize("case", VECTORS["normalized_to_weight"], ids=lambda c: str(c["nw"]))
def test_weight_of_a_normalized_weight(case):
    assert weight_of_fraction(case["nw"]) == case["weight"]


def test_fractions_outside_the_unit_interval_saturate():
    assert weight_of_fraction(-0.5) == MIN_WEIGHT
    assert weight_of_fraction(1.5) == MAX_WEIGHT
    assert weight_of_fraction(math.inf) == MAX_WEIGHT
    found = weight_of_fraction(np.array([-0.5, 0.0, 0.3, 1.0, 1.5, math.inf]))
    assert found.tolist() == [
        weight_of_fraction(fraction) for fraction in (-0.5, 0.0, 0.3, 1.0, 1.5, math.inf)
    ]


def test_nan_is_not_a_fraction():
    with pytest.raises(ValueError, match="NaN"):
        weight_of_fraction(math.nan)
