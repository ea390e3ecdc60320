"""A table in memory: its rows are placed, written and optimized as in a real one, without Spark."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qbeast_core.model.block import Block
from qbeast_core.model.weight import MAX_WEIGHT, weight_of_fraction
from qbeast_core.tree.anchors import missing_anchors
from qbeast_core.tree.assignment import Assignment
from qbeast_core.tree.bands import ends_around
from qbeast_core.tree.build import estimate_weights
from qbeast_core.tree.cuts import cut_sample, row_order
from qbeast_core.tree.fragments import compaction_candidates
from qbeast_core.tree.otree import OTree
from qbeast_core.tree.path import PathLayout
from qbeast_core.tree.weighed_sample import WeighedSample


class File(NamedTuple):
    blocks: list[Block]
    highest_weight: int | None = None


class Rows(NamedTuple):
    words: np.ndarray
    """int64[words, rows] from `PathLayout.path_words`."""
    weights: np.ndarray
    """int32[rows]."""


class WrittenRows:
    """Files of (rows, blocks), written as `write.plan` does."""

    def __init__(
        self,
        layout: PathLayout,
        cube_size: int,
        smallest_band: int | None = None,
        most_sampled: int | None = None,
    ) -> None:
        self.files: dict[int, tuple[Rows, File]] = {}
        self.layout = layout
        self.cube_size = cube_size
        self._smallest_band = smallest_band or cube_size
        self._most_sampled = most_sampled
        self._next = 0
        self._random = np.random.default_rng(0)

    def write(self, rows: Rows, kept: list[Block], kept_ends: frozenset[int] = frozenset()) -> int:
        """Write rows to new files and return the number of files."""
        layout, size = self.layout, self.cube_size
        sample = WeighedSample(*self._sample(rows), len(rows.weights))
        existing = OTree.of(kept, layout.dimensions) if kept else None
        cube_weights = estimate_weights(layout, sample, size, existing)
        order = row_order(layout, sample, size)
        cuts = cut_sample(order, sample, size, self._smallest_band, kept_ends)
        depths = Assignment.of(layout, cube_weights).depths_of(*rows)
        numbers = cuts.files_of(*rows)
        written = []
        for number in np.unique(numbers):
            inside = numbers == number
            held = Rows(rows.words[:, inside], rows.weights[inside])
            cubes, cube_of_row = layout.cubes_of(held.words, depths[inside])
            lowest = np.full(len(cubes), MAX_WEIGHT)
            np.minimum.at(lowest, cube_of_row, held.weights)
            counts = np.bincount(cube_of_row, minlength=len(cubes))
            blocks = [
                Block(cube, low, cube_weights.get(cube, MAX_WEIGHT), rows_in)
                for cube, low, rows_in in zip(cubes, lowest.tolist(), counts.tolist(), strict=True)
            ]
            highest = int(held.weights.max()) if cuts.by_weight else None
            written.append((held, File(blocks, highest)))
        own = [block for _, file in written for block in file.blocks]
        written[0][1].blocks.extend(missing_anchors([*kept, *own], cube_weights))
        for part in written:
            self.files[self._next] = part
            self._next += 1
        return len(written)

    def append(self, rows: Rows) -> None:
        self.write(rows, self.blocks())

    def optimize(self, rounds: int = 4) -> int:
        """How many rows were rewritten, in rounds as those of `maintain.optimize`."""
        rewritten = 0
        for _ in range(rounds):
            rows = self.optimize_once()
            rewritten += rows
            if not rows:
                return rewritten
        raise AssertionError("more rounds than expected")

    def optimize_once(self) -> int:
        chosen = self.candidates()
        if not chosen:
            return 0
        taken = [self.files.pop(key) for key in chosen]
        ends = frozenset[int]().union(
            *(
                ends_around(int(rows.weights.min()), int(rows.weights.max()))
                for rows, file in taken
                if file.highest_weight is not None
            )
        )
        rows = Rows(
            np.concatenate([held.words for held, _ in taken], axis=1),
            np.concatenate([held.weights for held, _ in taken]),
        )
        self.write(rows, self.blocks(), ends)
        return len(rows.weights)

    def candidates(self) -> list[int]:
        files = {key: file for key, (_, file) in self.files.items()}
        return compaction_candidates(files, self.cube_size)

    def blocks(self) -> list[Block]:
        return [block for _, file in self.files.values() for block in file.blocks]

    def rows(self) -> int:
        return sum(len(held.weights) for held, _ in self.files.values())

    def read_share(self, fraction: float) -> float:
        """The share of rows in the files that a sample reads."""
        limit = weight_of_fraction(fraction)
        read = [
            len(held.weights)
            for held, file in self.files.values()
            if any(block.element_count and block.min_weight < limit for block in file.blocks)
        ]
        return sum(read) / self.rows()

    def _sample(self, rows: Rows) -> Rows:
        count, most = len(rows.weights), self._most_sampled
        if most is None or count <= most:
            return rows
        drawn = self._random.choice(count, most, replace=False)
        return Rows(rows.words[:, drawn], rows.weights[drawn])
