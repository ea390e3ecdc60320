"""Pairwise coverage is complete, small and always the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from math import prod

import pytest

from tests.matrix.cells import all_cells
from tests.matrix.features import FEATURES, NAMES
from tests.matrix.operations import STEPS
from tests.matrix.pairs import pairwise
from tests.matrix.settings import INDEXES, SETTINGS


@pytest.mark.parametrize(
    "parameters",
    [
        {"a": "12", "b": "12", "c": "12"},
        {"a": "123", "b": "12", "c": "1234", "d": "12", "e": "123"},
        {"a": "1", "b": "12"},
        {name: tuple(values) for name, values in SETTINGS.items()},
    ],
)
def test_each_pair_of_values_occurs(parameters: Mapping[str, Sequence[str]]) -> None:
    found = pairwise(parameters)
    for one, other in combinations(parameters, 2):
        occurring = {(cell[one], cell[other]) for cell in found}
        assert occurring == set(product(parameters[one], parameters[other]))
    assert all(list(cell) == list(parameters) for cell in found)
    largest, second = sorted(map(len, parameters.values()))[-1:-3:-1]
    assert largest * second <= len(found) <= prod(map(len, parameters.values()))
    assert len(found) <= 2 * largest * second
    assert found == pairwise(parameters)


def test_a_parameter_without_values_cannot_be_covered() -> None:
    assert pairwise({"a": "12", "b": ""}) == []


def test_the_matrix_tries_each_feature_with_each_setting() -> None:
    cells = all_cells()
    tried = {
        (cell.features[0], setting, value)
        for cell in cells
        for setting, value in (cell.settings or {}).items()
    }
    assert tried == {
        (name, setting, value)
        for name in NAMES
        for setting, values in SETTINGS.items()
        for value in values
    }
    assert {(cell.features[0], cell.index) for cell in cells} == set(product(NAMES, INDEXES))


def test_the_table_of_features_names_known_operations_and_columns() -> None:
    kinds = {operation.kind for operation in STEPS}
    assert len(set(NAMES)) == len(FEATURES)
    assert len({operation.name for operation in STEPS}) == len(STEPS)
    for feature in FEATURES:
        assert set(feature.refused) <= kinds
        assert set(feature.wrong) <= set(feature.definitions)
        assert feature.index is None or feature.index in INDEXES
        assert not feature.note or feature.note.endswith(".")
