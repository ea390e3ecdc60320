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
from qbeast_core.tree.bands import root_bands
from qbeast_core.tree.build import estimate_weights
from qbeast_core.tree.fragments import compaction_candidates
from qbeast_core.tree.otree import OTree
from qbeast_core.tree.path import PathLayout
from qbeast_core.tree.rollup import expected_rows, plan_files

SIZE = 400
LAYOUT = PathLayout(2)


class File(NamedTuple):
    blocks: list[Block]
    highest_weight: int | None = None


class Table:
    """Files of (path words, weights, blocks), written as `operations.indexing` does."""

    def __init__(self, smallest_band: int = SIZE) -> None:
        self.files: dict[int, tuple[np.ndarray, np.ndarray, File]] = {}
        self._smallest_band = smallest_band
        self._next = 0

    def write(self, words: np.ndarray, weights: np.ndarray, kept: list[Block]) -> int:
        existing = OTree.of(kept, 2) if kept else None
        cube_weights = estimate_weights(LAYOUT, words, weights, len(weights), SIZE, existing)
        in_cubes = expected_rows(LAYOUT, cube_weights, words, weights, 1.0)
        file_of = plan_files(in_cubes, SIZE)
        ends = root_bands(cube_weights, file_of, in_cubes, weights, 1.0, self._smallest_band)
        lower = [(end, 1000 + i) for i, end in enumerate(ends)]
        assignment = Assignment.of(LAYOUT, cube_weights, file_of, lower)
        depths, numbers = assignment.assign_rows(words, weights)
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
            is_band = bool(ends) and not any(block.cube.depth for block in blocks)
            highest = int(weights[rows].max()) if is_band else None
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
        """How many rows were rewritten."""
        chosen = compaction_candidates(
            {key: file for key, (_, _, file) in self.files.items()}, SIZE
        )
        if not chosen:
            return 0
        taken = [self.files.pop(key) for key in chosen]
        words = np.concatenate([file[0] for file in taken], axis=1)
        self.write(words, np.concatenate([file[1] for file in taken]), self.blocks())
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
def test_a_table_of_one_write_gains_nothing(smallest_band: int) -> None:
    table = Table(smallest_band)
    table.write(*points(np.random.default_rng(1), 30 * SIZE, True), [])
    banded = [file for _, _, file in table.files.values() if file.highest_weight is not None]
    assert len(banded) == (2 if smallest_band < SIZE else 0)
    assert table.optimize() == 0


def band(lowest: int, rows: int, highest: int | None = None) -> File:
    return File([Block(CubeId.root(2), lowest, 1000, rows)], highest)


def test_bands_of_the_root_count_as_one_file() -> None:
    files = {1: band(0, 50, 59), 2: band(60, 200, 250), 3: band(260, 800, 1000), 4: blocks(A=100)}
    assert compaction_candidates(files, 1000) == []
    untold = {key: File(file.blocks) for key, file in files.items()}
    assert compaction_candidates(untold, 1000) == [1, 2, 4]
    # An append's part of the root is small, as any other.
    assert compaction_candidates({**files, 5: band(1, 30)}, 1000) == [4, 5]


def test_bands_that_overlap_are_two_files() -> None:
    files = {
        1: band(0, 500, 299),
        2: band(300, 900, 1000),
        3: band(2, 400, 300),
        4: band(301, 900, 1000),
    }
    assert compaction_candidates(files, 1000) == [1, 2, 3, 4]
    assert compaction_candidates({1: files[1], 2: files[2]}, 1000) == []
    assert compaction_candidates({1: band(0, 100, 300), 2: band(300, 100, 1000)}, 1000) == [1, 2]
    assert compaction_candidates({1: band(0, 100, 299), 2: band(300, 100, 1000)}, 1000) == []


def cube(text: str) -> CubeId:
    return CubeId.parse(text, 2)


def blocks(**rows: int) -> File:
    return File([Block(cube(text), 0, 9, count) for text, count in rows.items()])


def test_one_small_file_is_left_alone_and_two_are_not() -> None:
    large, small = blocks(A=900), blocks(Q=100)
    assert compaction_candidates({1: large, 2: small}, 1000) == []
    assert compaction_candidates({1: large, 2: small, 7: small}, 1000) == [2, 7]


def test_files_of_a_crowded_cube_gain() -> None:
    files = {1: blocks(A=900), 2: blocks(A=900), 3: blocks(A=900), 4: blocks(Q=900)}
    assert compaction_candidates(files, 1000) == [1, 2, 3]
    assert compaction_candidates({1: blocks(A=5000)}, 1000) == []


def test_files_that_share_most_of_their_rows_gain() -> None:
    spread = blocks(A=250, Q=250, g=250, w=250)
    files = {1: spread, 2: spread, 3: spread, 4: blocks(w=900), 5: blocks(A=300, QA=600)}
    assert compaction_candidates(files, 1000) == [1, 2, 3]
    assert compaction_candidates({1: spread, 2: spread, 4: blocks(w=900)}, 1000) == []


def test_blocks_without_rows_do_not_count() -> None:
    empty = File([Block(cube("A"), 5, 5, 0), *blocks(Q=500, g=500).blocks])
    assert compaction_candidates({1: empty, 2: empty}, 1000) == []
    assert compaction_candidates({}, 1000) == []
