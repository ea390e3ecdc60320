"""Cutting the rows of a write into files."""

import numpy as np
import pytest

from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT, weight_of_fraction
from qbeast_core.tree.bands import band_numbers, choose_band_ends
from qbeast_core.tree.curve import RowOrder
from qbeast_core.tree.cuts import FileCuts, cut_into_files, even_sample, one_file
from qbeast_core.tree.path import PathLayout
from qbeast_core.tree.weighed_sample import WeighedSample


def rows_of(dimensions: int, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    words = PathLayout(dimensions).path_words(rng.random((count, dimensions)) ** 3)
    return words, rng.integers(MIN_WEIGHT, MAX_WEIGHT, count).astype(np.int32)


def cut(words: np.ndarray, weights: np.ndarray, dimensions: int) -> FileCuts:
    order = RowOrder(PathLayout(dimensions), min(24, PathLayout(dimensions).first_levels))
    sample = WeighedSample(words, weights, len(weights))
    return cut_into_files(order, sample, 500, choose_band_ends(sample, 100))


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4, 5, 8])
def test_files_have_one_band_a_range_of_places_and_about_the_desired_rows(dimensions: int) -> None:
    words, weights = rows_of(dimensions, 20_000)
    cuts = cut(words, weights, dimensions)
    files = cuts.files_of(words, weights)
    bands, places = band_numbers(weights, cuts.band_ends), cuts.order.places(words)
    assert sorted(set(files)) == list(range(cuts.files))
    rows_in_band = np.bincount(bands)
    for number in range(cuts.files):
        (band,) = set(bands[files == number].tolist())
        rows = np.count_nonzero(files == number)
        assert rows <= 1.5 * 500 + 60 and rows >= min(rows_in_band[band], 0.6 * 500) - 60
    for number in range(1, cuts.files):
        if bands[files == number][0] == bands[files == number - 1][0]:
            assert places[files == number - 1].max() < places[files == number].min()


def test_cuts_from_a_sample_divide_all_rows_evenly() -> None:
    words, weights = rows_of(2, 100_000)
    sample = WeighedSample(words[:, ::10], weights[::10], 100_000)
    order = RowOrder(PathLayout(2), 12)
    cuts = cut_into_files(order, sample, 5000, choose_band_ends(sample, 500))
    rows = np.bincount(cuts.files_of(words, weights), minlength=cuts.files)
    assert rows.sum() == 100_000 and rows.max() < 8500


def test_rows_of_one_place_are_one_file_of_each_band() -> None:
    words = np.full((1, 3000), 5 << 40)
    _, weights = rows_of(2, 3000)
    cuts = cut(words, weights, 2)
    assert cuts.files == cuts.bands
    assert len(set(cuts.files_of(words, weights))) == cuts.files


def test_any_row_has_a_file() -> None:
    words, weights = rows_of(2, 5000)
    cuts = cut(words, weights, 2)
    last = PathLayout(2).cube_interval(CubeId.root(2))[1]
    edges = np.array([[0, *last, 0, *last]])
    limits = np.array([MIN_WEIGHT, MIN_WEIGHT, MAX_WEIGHT, MAX_WEIGHT], dtype=np.int32)
    files = cuts.files_of(edges, limits)
    assert files[0] == 0 and files.max() < cuts.files
    alone = one_file(cuts.order)
    assert alone.files == 1 and not alone.by_weight
    assert not alone.files_of(edges, limits).any()


def test_an_even_sample_has_the_rows_of_each_cube() -> None:
    layout = PathLayout(2)
    left, right = CubeId.parse("A", 2), CubeId.parse("w", 2)
    limit = weight_of_fraction(0.25)
    rows = {CubeId.root(2): 250.0, left: 500.0, right: 250.0}
    sample = even_sample(layout, {CubeId.root(2): limit, left: MAX_WEIGHT}, rows)
    words, weights = sample.words, sample.weights
    assert sample.rows == 1000
    assert words.shape == (1, len(weights))
    above = weights > limit
    assert np.count_nonzero(~above) == pytest.approx(len(weights) / 4, rel=0.01)
    digits = layout.digits(words, 0)
    assert set(digits[above].tolist()) == {0, 3}
    assert np.count_nonzero(digits[above] == 0) == pytest.approx(len(weights) / 2, rel=0.01)
    assert np.count_nonzero(weights < 0) == pytest.approx(len(weights) / 2, rel=0.02)
    assert set(digits[~above].tolist()) == {0, 1, 2, 3}


def test_an_even_sample_has_rows_of_many_small_cubes() -> None:
    """Each has less than half of a row in the sample."""
    small = {CubeId(1, 19, path): 1.0 for path in range(300_000)}
    layout = PathLayout(1)
    sample = even_sample(layout, {}, small)
    assert len(sample.weights) == 131_072
    paths = sample.words[0] >> (layout.levels_per_word - 19)
    spread = np.histogram(paths, bins=10, range=(0, 300_000))[0]
    assert spread.min() > 0.9 * spread.max()


def test_an_even_sample_of_cubes_below_the_first_word() -> None:
    deep = CubeId(3, 24, 5)
    sample = even_sample(PathLayout(3), {}, {CubeId.root(3): 1.0, deep: 1.0})
    words, weights = sample.words, sample.weights
    assert len(weights) == words.shape[1] > 1000
    assert np.count_nonzero(words == 0) >= len(weights) // 2
