"""The cube size that a table chooses for itself."""

import numpy as np
import pytest
from pyspark.sql.types import DoubleType, LongType, StringType, StructType

from qbeast_core.model.block import Block
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT
from qbeast_core.tree.assignment import Assignment
from qbeast_core.tree.build import estimate_weights
from qbeast_core.tree.otree import OTree
from qbeast_core.tree.path import PathLayout
from qbeast_core.tree.weighed_sample import WeighedSample
from qbeast_core.write.sizing import automatic_cube_size, outgrown_cube_size, planned_sample_size

SCHEMA = StructType().add("id", LongType()).add("x", DoubleType()).add("s", StringType())
SMALLEST, LARGEST = automatic_cube_size(0, SCHEMA), automatic_cube_size(10**12, SCHEMA)


def test_a_cube_is_a_tenth_of_the_table_within_bounds() -> None:
    assert LARGEST // SMALLEST == 8
    assert automatic_cube_size(10 * 2 * SMALLEST, SCHEMA) == 2 * SMALLEST


@pytest.mark.parametrize(
    ("present", "rows", "grown"),
    [
        (SMALLEST, SMALLEST, None),
        (SMALLEST, 10 * 8 * SMALLEST - 10, None),
        (SMALLEST, 10 * 8 * SMALLEST, 2 * SMALLEST),
        (2 * SMALLEST, 10 * 8 * SMALLEST, None),
        (2 * SMALLEST, 10 * 16 * SMALLEST, 4 * SMALLEST),
        (SMALLEST, 10**12, LARGEST),
        (LARGEST // 2 + 1, 10**12, None),
        (LARGEST, 10**12, None),
    ],
)
def test_a_size_is_kept_until_eight_times_as_much_is_asked_for(
    present: int, rows: int, grown: int | None
) -> None:
    assert outgrown_cube_size(present, rows, SCHEMA) == grown


@pytest.mark.parametrize(
    ("rows", "cube_size", "drawn"),
    [
        (0, None, 1 << 15),
        (10**6, None, 1 << 15),
        (10**6, 5000, 1 << 15),
        (512_000, 1000, 1 << 16),
        (10**6, 1, 1 << 17),
        # What Spark expects of joins without statistics.
        (10**400, None, 1 << 17),
    ],
)
def test_a_sample_has_128_rows_for_each_cube_within_bounds(
    rows: int, cube_size: int | None, drawn: int
) -> None:
    assert planned_sample_size(rows, cube_size, SCHEMA) == drawn


@pytest.mark.parametrize("dimensions", [1, 2])
@pytest.mark.parametrize("columns", [1, 2, 3, 4, 6, 9, 13, 18])
def test_twenty_doublings_make_few_revisions_and_blocks(columns: int, dimensions: int) -> None:
    """From a thousand rows to a thousand million; a uniform sample stands for each append."""
    layout, rng = PathLayout(dimensions), np.random.default_rng(20)
    schema = StructType()
    for number in range(columns):
        schema.add(f"c{number}", LongType())
    rows, size, revisions = 0, automatic_cube_size(1000, schema), 1
    trees: list[list[Block]] = [[]]
    for doubling in range(21):
        added = 1000 if doubling == 0 else rows
        rows += added
        grown = outgrown_cube_size(size, rows, schema)
        if grown is not None:
            size, revisions = grown, revisions + 1
            trees.append([])
        drawn = min(added, 1 << 14)
        words = layout.path_words(rng.random((drawn, dimensions)))
        weights = rng.integers(MIN_WEIGHT, MAX_WEIGHT, drawn, endpoint=True).astype(np.int32)
        existing = OTree.of(trees[-1], dimensions) if trees[-1] else None
        cubes = estimate_weights(layout, WeighedSample(words, weights, added), size, existing)
        depths = Assignment.of(layout, cubes).depths_of(words, weights)
        held, cube_of_row = layout.cubes_of(words, depths)
        counts = np.bincount(cube_of_row) * added // drawn
        trees[-1] += [
            Block(cube, MIN_WEIGHT, cubes.get(cube, MAX_WEIGHT), int(count))
            for cube, count in zip(held, counts, strict=True)
        ]
    assert rows == 1000 * 2**20
    assert revisions <= 4
    assert sum(map(len, trees)) <= 10 * rows / size
