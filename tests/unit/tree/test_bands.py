"""The root in files by weight: where the bands end, and when there are none."""

import numpy as np
import pytest

from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MAX_WEIGHT, weight_of_fraction
from qbeast_core.tree.bands import root_bands

ROOT, LEFT, RIGHT = CubeId.root(1), CubeId.parse("A", 1), CubeId.parse("g", 1)
HIGHEST = weight_of_fraction(0.1)
FILES = {ROOT: 0, LEFT: 1, RIGHT: 2}
WEIGHTS = {ROOT: HIGHEST, LEFT: MAX_WEIGHT, RIGHT: MAX_WEIGHT}


def sample(rows: int) -> np.ndarray:
    return np.random.default_rng(5).integers(-(2**31), 2**31, rows).astype(np.int32)


def bands(
    rows: int = 100_000, smallest: int = 100, scale: float = 1.0, files=None, with_rows=FILES
) -> tuple[int, ...]:
    return root_bands(WEIGHTS, files or FILES, with_rows, sample(rows), scale, smallest)


@pytest.mark.parametrize("smallest", [10, 100])
def test_bands_end_where_samples_of_round_fractions_do(smallest: int):
    ends = bands(smallest=smallest)
    rounds = [0.01, 0.001, 0.0001][: 3 if smallest == 10 else 2]
    assert ends == tuple(weight_of_fraction(f) - 1 for f in reversed(rounds))


def test_a_band_just_above_a_round_fraction_joins_it():
    just_above = dict(WEIGHTS) | {ROOT: weight_of_fraction(0.0105)}
    ends = root_bands(just_above, FILES, FILES, sample(100_000), 1.0, 100)
    assert ends == (weight_of_fraction(0.001) - 1,)


@pytest.mark.parametrize(("smallest", "expected"), [(5, 3), (80, 2), (500, 1), (900, 1)])
def test_no_band_is_smaller_than_is_worth_a_file(smallest: int, expected: int):
    ends = bands(smallest=smallest)
    assert len(ends) == expected
    weights = np.sort(sample(100_000))
    rows = np.diff(np.searchsorted(weights, [*ends, HIGHEST], side="right"), prepend=0)
    assert rows.min() >= smallest
    # The scale counts: each row of the sample may stand for several.
    assert bands(smallest=smallest * 3, scale=3.0) == ends


def test_a_root_of_few_rows_has_none():
    assert bands(smallest=6000) == ()
    assert bands(rows=100) == ()


def test_a_root_that_shares_its_file_has_none():
    assert bands(files={ROOT: 0, LEFT: 0, RIGHT: 1}) == ()
    # A cube that gets no rows does not count.
    assert bands(files={ROOT: 0, LEFT: 0, RIGHT: 1}, with_rows=[ROOT, RIGHT]) == bands()


def test_a_root_alone_or_without_rows_has_none():
    assert bands(with_rows=[ROOT]) == ()
    assert bands(with_rows=[LEFT, RIGHT]) == ()
    assert bands(with_rows=[]) == ()


def test_weights_that_many_rows_share_make_no_empty_band():
    shared = np.repeat(np.array([-(2**31) + 7, 5], dtype=np.int32), 50_000)
    assert root_bands(WEIGHTS, FILES, FILES, shared, 1.0, 100) == ()
