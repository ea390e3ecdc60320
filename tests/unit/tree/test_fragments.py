"""Choosing files to rewrite: the scattered ones, once, and not the whole table."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from qbeast_core.model.block import Block
from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MAX_WEIGHT, weight_of_fraction
from qbeast_core.tree.anchors import missing_anchors, violations
from qbeast_core.tree.assignment import Assignment
from qbeast_core.tree.bands import choose_band_ends, ends_around
from qbeast_core.tree.build import estimate_weights
from qbeast_core.tree.curve import RowOrder, levels_that_part
from qbeast_core.tree.cuts import cut_into_files, one_file
from qbeast_core.tree.fragments import compaction_candidates
from qbeast_core.tree.otree import OTree
from qbeast_core.tree.path import PathLayout

SIZE = 400
LAYOUT = PathLayout(2)


class File(NamedTuple):
    blocks: list[Block]
    highest_weight: int | None = None


class Table:
    """Files of (path words, weights, blocks), written as `write.plan` does."""

    def __init__(self, smallest_band: int = SIZE) -> None:
        self.files: dict[int, tuple[np.ndarray, np.ndarray, File]] = {}
        self._smallest_band = smallest_band
        self._next = 0

    def write(
        self,
        words: np.ndarray,
        weights: np.ndarray,
        kept: list[Block],
        kept_ends: frozenset[int] = frozenset(),
    ) -> int:
        existing = OTree.of(kept, LAYOUT.dimensions) if kept else None
        cube_weights = estimate_weights(LAYOUT, words, weights, len(weights), SIZE, existing)
        order = RowOrder(LAYOUT, levels_that_part(LAYOUT, words, 1.0, SIZE // 8))
        is_small = len(weights) <= SIZE
        cuts = one_file(order)
        if not is_small or kept_ends:
            smallest = len(weights) if is_small else self._smallest_band
            ends = choose_band_ends(weights, 1.0, smallest, kept_ends)
            cuts = cut_into_files(order, words, weights, 1.0, SIZE, ends)
        depths = Assignment.of(LAYOUT, cube_weights).depths_of(words, weights)
        numbers = cuts.files_of(words, weights)
        written = []
        for number in np.unique(numbers):
            rows = numbers == number
            cubes, cube_of_row = LAYOUT.cubes_of(words[:, rows], depths[rows])
            blocks = [
                Block(
                    cube,
                    int(weights[rows][cube_of_row == i].min()),
                    cube_weights.get(cube, MAX_WEIGHT),
                    int((cube_of_row == i).sum()),
                )
                for i, cube in enumerate(cubes)
            ]
            highest = int(weights[rows].max()) if cuts.by_weight else None
            written.append((words[:, rows], weights[rows], File(blocks, highest)))
        own = [block for _, _, file in written for block in file.blocks]
        written[0][2].blocks.extend(missing_anchors([*kept, *own], cube_weights))
        for part in written:
            self.files[self._next] = part
            self._next += 1
        return len(written)

    def append(self, words: np.ndarray, weights: np.ndarray) -> None:
        self.write(words, weights, self.blocks())

    def optimize(self) -> int:
        """How many rows were rewritten, in rounds as those of `maintain.optimize`."""
        rewritten = 0
        for _ in range(4):
            rows = self.optimize_once()
            rewritten += rows
            if not rows:
                return rewritten
        raise AssertionError("more rounds than expected")

    def optimize_once(self) -> int:
        files = {key: file for key, (_, _, file) in self.files.items()}
        chosen = compaction_candidates(files, SIZE)
        if not chosen:
            return 0
        taken = [self.files.pop(key) for key in chosen]
        ends = frozenset[int]().union(
            *(
                ends_around(int(weights.min()), int(weights.max()))
                for _, weights, file in taken
                if file.highest_weight is not None
            )
        )
        words = np.concatenate([file[0] for file in taken], axis=1)
        self.write(words, np.concatenate([file[1] for file in taken]), self.blocks(), ends)
        return words.shape[1]

    def blocks(self) -> list[Block]:
        return [block for _, _, file in self.files.values() for block in file.blocks]

    def rows(self) -> int:
        return sum(len(weights) for _, weights, _ in self.files.values())

    def read_share(self, fraction: float) -> float:
        """The share of rows in the files that a sample reads."""
        limit = weight_of_fraction(fraction)
        read = [
            len(weights)
            for _, weights, file in self.files.values()
            if any(block.element_count and block.min_weight < limit for block in file.blocks)
        ]
        return sum(read) / self.rows()


def points(rng: np.random.Generator, count: int, skewed: bool) -> tuple[np.ndarray, np.ndarray]:
    places = rng.normal(0.5, 0.15, (count, 2)) if skewed else rng.random((count, 2))
    weights = rng.integers(-(2**31), 2**31 - 1, count).astype(np.int32)
    return LAYOUT.path_words(places), weights


@pytest.mark.parametrize("smallest_band", [SIZE, SIZE // 40])
@pytest.mark.parametrize("skewed", [False, True])
@pytest.mark.parametrize("rows", [SIZE // 8, SIZE])
def test_fifty_appends_are_gathered_by_one_optimize(
    skewed: bool, rows: int, smallest_band: int
) -> None:
    rng = np.random.default_rng(rows)
    table = Table(smallest_band)
    table.write(*points(rng, 50 * SIZE, skewed), [])
    for _ in range(50):
        table.append(*points(rng, rows, skewed))
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
    table = Table(smallest_band)
    table.write(*points(np.random.default_rng(1), 30 * SIZE, skewed), [])
    for fraction in (0.3, 0.1) if smallest_band == SIZE else (0.3, 0.1, 0.03, 0.01):
        assert table.read_share(fraction) == pytest.approx(fraction, abs=0.02 * fraction + 0.002)
    assert table.optimize() == 0


def test_changed_rows_stay_in_the_band_of_their_file() -> None:
    rng = np.random.default_rng(3)
    table = Table(SIZE // 40)
    table.write(*points(rng, 30 * SIZE, False), [])
    before = {fraction: table.read_share(fraction) for fraction in (0.3, 0.1, 0.03)}
    lowest = min(table.files)
    words, weights, file = table.files.pop(lowest)
    ends = ends_around(int(weights.min()), int(weights.max()))
    new_words, new_weights = points(rng, 40, False)
    table.write(
        np.concatenate([words, new_words], axis=1),
        np.concatenate([weights, new_weights]),
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
