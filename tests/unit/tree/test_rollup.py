from __future__ import annotations

import numpy as np
import pytest

from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MAX_WEIGHT
from qbeast_core.tree.path import PathLayout
from qbeast_core.tree.rollup import expected_rows, plan_files


def named(rows: dict[str, float]) -> dict[CubeId, float]:
    return {CubeId.parse(text, 2): count for text, count in rows.items()}


def files(rows: dict[str, float], desired_rows: int) -> dict[str, int]:
    return {cube.text: n for cube, n in plan_files(named(rows), desired_rows).items()}


def test_little_data_is_one_file() -> None:
    assert files({"": 85, "A": 5, "w": 10}, 100) == {"": 0, "A": 0, "w": 0}
    assert plan_files({}, 100) == {}


def test_large_inner_cubes_stay_apart_from_leaves() -> None:
    planned = files({"": 100, "A": 90, "AA": 30, "AQ": 80, "Ag": 30, "g": 60, "w": 70}, 100)
    assert planned == {"": 0, "A": 1, "AA": 2, "AQ": 3, "Ag": 2, "g": 2, "w": 4}


def test_a_handful_of_rows_left_over_is_no_file() -> None:
    assert files({"": 100, "A": 100, "g": 20}, 100) == {"": 0, "A": 1, "g": 1}
    assert files({"": 100, "A": 100, "g": 30}, 100) == {"": 0, "A": 1, "g": 2}
    assert files({"": 150, "A": 0}, 100) == {"": 0, "A": 0}


def test_a_group_that_is_full_below_is_not_passed_up() -> None:
    planned = files({"": 100, "A": 79, "Q": 79, "QA": 79, "g": 79}, 100)
    assert planned == {"": 0, "A": 1, "Q": 2, "QA": 2, "g": 1}


def test_cubes_in_between_are_filled_in() -> None:
    planned = files({"": 100, "AAA": 100, "www": 30}, 100)
    assert planned.keys() == {"", "A", "AA", "AAA", "w", "ww", "www"}
    assert sorted(set(planned.values())) == [0, 1, 2]


def test_a_desired_size_of_no_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="0"):
        plan_files({}, 0)


def test_rows_are_expected_where_the_sample_goes() -> None:
    layout = PathLayout(2)
    words = layout.path_words(np.array([[0.1, 0.1], [0.1, 0.1], [0.9, 0.9]]))
    row_weights = np.array([-5, 5, 5], dtype=np.int32)
    weights = {CubeId.root(2): 0, CubeId.parse("A", 2): MAX_WEIGHT}
    rows = expected_rows(layout, weights, words, row_weights, 2.5)
    assert {cube.text: n for cube, n in rows.items()} == {"": 2.5, "A": 2.5, "w": 2.5}
