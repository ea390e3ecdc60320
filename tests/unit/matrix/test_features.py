"""Features of the matrix can be tried together in one table."""

from __future__ import annotations

from itertools import combinations

from tests.matrix.features import COLUMNS, FEATURES


def test_no_feature_hides_the_column_of_another() -> None:
    for one, other in combinations(FEATURES, 2):
        shared = {*one.columns, *one.changed} & {*other.columns, *other.changed}
        assert shared <= COLUMNS.keys(), (one.name, other.name)
