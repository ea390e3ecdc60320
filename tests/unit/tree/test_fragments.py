"""Choosing files to rewrite: the scattered ones, once, and not the whole table."""

from __future__ import annotations

import numpy as np
import pytest

from qbeast_core.model.block import Block
from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT, weight_of_fraction
from qbeast_core.tree.anchors import violations
from qbeast_core.tree.bands import ends_around
from qbeast_core.tree.fragments import compaction_candidates
from qbeast_core.tree.path import PathLayout
from tests.support.written_rows import File, Rows, WrittenRows

SIZE = 400
LAYOUT = PathLayout(2)


def table_of(smallest_band: int = SIZE) -> WrittenRows:
    return WrittenRows(LAYOUT, SIZE, smallest_band)


def points(rng: np.random.Generator, count: int, skewed: bool) -> Rows:
    places = rng.normal(0.5, 0.15, (count, 2)) if skewed else rng.random((count, 2))
    weights = rng.integers(-(2**31), 2**31 - 1, count).astype(np.int32)
    return Rows(LAYOUT.path_words(places), weights)


@pytest.mark.parametrize("smallest_band", [SIZE, SIZE // 40])
@pytest.mark.parametrize("skewed", [False, True])
@pytest.mark.parametrize("rows", [SIZE // 8, SIZE])
def test_fifty_appends_are_gathered_by_one_optimize(
    skewed: bool, rows: int, smallest_band: int
) -> None:
    rng = np.random.default_rng(rows)
    table = table_of(smallest_band)
    table.write(points(rng, 50 * SIZE, skewed), [])
    for _ in range(50):
        table.append(points(rng, rows, skewed))
    cubes = table.rows() / SIZE
    if rows == SIZE:
        assert len(table.files) <= 1.2 * cubes + 50
        assert table.read_share(0.01) > 0.3
    rewritten = table.optimize()
    assert 0 < rewritten <= 3 * 50 * rows
    assert len(table.files) <= 1.2 * cubes
    assert table.read_share(0.01) <= 0.1
    assert violations(table.blocks()) == []
    files = set(table.files)
    assert table.optimize() == 0
    assert set(table.files) == files


@pytest.mark.parametrize("smallest_band", [SIZE, SIZE // 40])
@pytest.mark.parametrize("skewed", [False, True])
def test_a_table_of_one_write_reads_a_fraction_and_gains_nothing(
    skewed: bool, smallest_band: int
) -> None:
    table = table_of(smallest_band)
    table.write(points(np.random.default_rng(1), 30 * SIZE, skewed), [])
    for fraction in (0.3, 0.1) if smallest_band == SIZE else (0.3, 0.1, 0.03, 0.01):
        assert table.read_share(fraction) == pytest.approx(fraction, abs=0.02 * fraction + 0.002)
    assert table.optimize() == 0


def test_changed_rows_stay_in_the_band_of_their_file() -> None:
    rng = np.random.default_rng(3)
    table = table_of(SIZE // 40)
    table.write(points(rng, 30 * SIZE, False), [])
    before = {fraction: table.read_share(fraction) for fraction in (0.3, 0.1, 0.03)}
    lowest = min(table.files)
    (words, weights), file = table.files.pop(lowest)
    ends = ends_around(int(weights.min()), int(weights.max()))
    new_words, new_weights = points(rng, 40, False)
    table.write(
        Rows(np.concatenate([words, new_words], axis=1), np.concatenate([weights, new_weights])),
        table.blocks(),
        frozenset(ends),
    )
    assert file.highest_weight is not None
    for fraction, share in before.items():
        assert table.read_share(fraction) == pytest.approx(share, abs=0.004)


TOP = MAX_WEIGHT


def blocks(highest: int | None = TOP, lowest: int = 0, **rows: int) -> File:
    made = (Block(CubeId.parse(name, 2), lowest, 9, count) for name, count in rows.items())
    return File(list(made), highest)


def chosen(*files: File) -> list[int]:
    return compaction_candidates(dict(enumerate(files)), 1000)


def test_one_small_file_is_left_alone_and_two_are_not() -> None:
    large, small = blocks(A=900), blocks(Q=100)
    assert chosen(large, small) == []
    assert chosen(large, small, small) == [1, 2]


def test_small_files_of_different_bands_are_left_alone() -> None:
    low, high = weight_of_fraction(0.01) - 1, weight_of_fraction(0.03) - 1
    assert chosen(blocks(low, A=100), blocks(high, A=100), blocks(A=100)) == []
    assert chosen(blocks(low, A=100), blocks(high, A=100), blocks(low, Q=10)) == [0, 2]


def test_rows_of_all_weights_are_divided_once_they_fill_a_file() -> None:
    whole = blocks(None, A=500)
    assert chosen(whole, blocks(A=900)) == []
    assert chosen(whole, whole, blocks(A=900)) == []
    assert chosen(whole, whole, blocks(None, A=1), blocks(A=900)) == [0, 1, 2]
    assert chosen(blocks(None, A=1001)) == [0]
    assert chosen(blocks(None, A=100), blocks(None, A=100), blocks(Q=100)) == [0, 1]


def test_files_of_a_crowded_piece_gain() -> None:
    assert chosen(blocks(A=900), blocks(A=900), blocks(A=900), blocks(Q=900)) == [0, 1, 2]
    assert chosen(blocks(A=5000)) == []


def test_a_file_with_more_rows_of_a_piece_than_any_cut_leaves_is_not_cut_again() -> None:
    one_place = blocks(A=5000)
    assert chosen(one_place, blocks(A=900), blocks(Q=900)) == []
    assert chosen(one_place, blocks(A=900), blocks(A=900), blocks(A=900)) == [1, 2, 3]


def test_rows_that_chance_gives_a_small_cube_are_left_alone() -> None:
    """A write divides a cube of 4 rows only if it gets more than 11."""
    rows = dict(enumerate([blocks(A=3), blocks(A=4), blocks(A=4)]))
    assert compaction_candidates(rows, 4) == []
    assert compaction_candidates(rows | {3: blocks(A=3)}, 4) == [0, 1, 2, 3]


def narrow(cube: str, weight: int) -> File:
    """A file of 900 rows of one weight, the weight of their cube."""
    return File([Block(CubeId.parse(cube, 2), weight, weight, 900)], TOP)


def with_anchor(file: File, cube: str, weight: int) -> File:
    return file._replace(blocks=[*file.blocks, Block(CubeId.parse(cube, 2), weight, weight, 0)])


@pytest.mark.parametrize("around", ["Q", ""])
def test_a_crowded_piece_that_no_weight_can_spread_is_left_alone(around: str) -> None:
    """No weight is left between that of the cube and that of one around it."""
    holders, other = [narrow("QA", 7)] * 3, blocks(lowest=8, w=900)
    assert chosen(*holders, with_anchor(other, around, 6)) == []
    assert chosen(*holders, with_anchor(other, around, 5)) == [0, 1, 2]
    assert chosen(*holders, other) == [0, 1, 2], "the weights around the cube are unknown"


def test_a_crowded_root_of_the_lowest_weight_is_left_alone() -> None:
    assert chosen(*[narrow("", MIN_WEIGHT)] * 3) == []
    assert chosen(*[narrow("", MIN_WEIGHT + 1)] * 3) == [0, 1, 2]


def test_rows_from_before_the_weight_was_lowered_can_be_spread() -> None:
    low = with_anchor(narrow("QA", 7), "Q", 6)
    before = File([Block(CubeId.parse("QA", 2), 7, 90, 900)], TOP)
    assert chosen(low, low, before) == [0, 1, 2]


def test_the_weights_of_cubes_come_from_all_files() -> None:
    holders = dict(enumerate([narrow("QA", 7)] * 3))
    others = [with_anchor(blocks(lowest=8, w=900), "Q", 6)]
    assert compaction_candidates(holders, 1000) == [0, 1, 2]
    assert compaction_candidates(holders, 1000, others) == []


def test_files_that_share_most_of_their_rows_gain() -> None:
    spread = blocks(A=250, Q=250, g=250, w=250)
    assert chosen(spread, spread, spread, blocks(w=900), blocks(A=300, QA=600)) == [0, 1, 2]
    assert chosen(spread, spread, blocks(w=900)) == []
    # In other bands, they share nothing.
    other = spread._replace(highest_weight=weight_of_fraction(0.3) - 1)
    assert chosen(spread, spread, other) == []


def test_blocks_without_rows_do_not_count() -> None:
    empty = blocks(Q=500, g=500)
    empty.blocks.append(Block(CubeId.parse("A", 2), 5, 5, 0))
    assert chosen(empty, empty) == []
    assert chosen() == []
