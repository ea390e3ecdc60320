"""Pairwise coverage is complete, small and always the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from math import prod

import pytest

from tests.matrix.cells import all_cells
from tests.matrix.features import FEATURES, NAMES
from tests.matrix.operations import STEPS
from tests.matrix.pairs import pairwise, shares
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


def test_the_matrix_tries_each_operation_with_everything() -> None:
    cells = all_cells()
    tried = {
        (value, operation)
        for cell in cells
        for value in (*cell.features, cell.index, *(cell.settings or {}).items())
        for operation in cell.operations
    }
    values = [value for cell in cells for value in (*cell.features, cell.index)]
    values += [value for cell in cells for value in (cell.settings or {}).items()]
    assert tried == set(product(values, (operation.name for operation in STEPS)))
    assert sum(len(cell.operations) for cell in cells) < len(cells) * len(STEPS) / 2
    assert all(
        operation.name in cell.operations
        for cell in cells
        for operation in STEPS
        if operation.is_needed
    )


def test_each_value_meets_each_item() -> None:
    found = pairwise({"a": "123", "b": "12", "c": "1234", "d": "12"})
    items = [f"item {i}" for i in range(20)]
    chosen = shares(found, items, needed=items[3:5])
    for name in found[0]:
        for value in {combination[name] for combination in found}:
            met = [s for c, s in zip(found, chosen, strict=True) if c[name] == value]
            assert {item for share in met for item in share} == {*items}
    assert all(list(share) == sorted(share, key=items.index) for share in chosen)
    assert all({*items[3:5]} <= {*share} for share in chosen)
    # The rarest value occurs three times and needs 18 items.
    assert max(map(len, chosen)) < len(items)
    assert chosen == shares(found, items, needed=items[3:5])


def test_the_table_of_features_names_known_operations_and_columns() -> None:
    kinds = {operation.kind for operation in STEPS}
    assert len(set(NAMES)) == len(FEATURES)
    assert len({operation.name for operation in STEPS}) == len(STEPS)
    for feature in FEATURES:
        assert set(feature.refused) <= kinds
        assert set(feature.wrong) <= set(feature.definitions)
        assert feature.index is None or feature.index in INDEXES
        assert not feature.note or feature.note.endswith(".")
