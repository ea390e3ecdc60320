"""Which files a choice reads: the arrays against the code by which queries choose files."""

from __future__ import annotations

import datetime
import random
from typing import Any

import numpy as np
import pytest

from qbeast_core.model.block import Block
from qbeast_core.model.cube import CubeId
from qbeast_core.model.datatypes import DataType
from qbeast_core.model.revision import Revision
from qbeast_core.model.transformation import (
    HashTransformation,
    LinearTransformation,
    NumericQuantiles,
    StringQuantiles,
    Transformation,
)
from qbeast_core.model.transformer import LinearTransformer
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT
from qbeast_core.tree.extremes import Extremes
from qbeast_core.tree.query import And, Comparison, may_match
from qbeast_core.tree.reading import (
    OTHER_REVISION,
    ReadableFile,
    Readings,
    cube_readings,
    readings,
)
from qbeast_core.tree.steps import ColumnSteps, column_steps
from tests.support.oracles import cube_bounds
from tests.support.trees import grown_blocks, in_files, random_weights

UNKNOWN = Extremes()


def revision(*transformations: Transformation, number: int = 1) -> Revision:
    names = "abc"[: len(transformations)]
    transformers = tuple(LinearTransformer(name, DataType.DOUBLE) for name in names)
    return Revision(number, 0, "t", 100, transformers, transformations)


def steps_of(drawn: Revision, most: int = 16) -> list[ColumnSteps]:
    return [
        column_steps(name, of, most)
        for name, of in zip(drawn.columns, drawn.transformations, strict=True)
    ]


def file(drawn: Revision | None, *blocks: Block, extremes: Any = None) -> ReadableFile:
    rows = sum(block.element_count for block in blocks)
    return ReadableFile(100, rows, drawn, blocks, extremes or (UNKNOWN,) * 2)


def passes(last_from: Any, first_to: Any, chosen: list[tuple[int, int]]) -> bool:
    return all(
        i <= last and j >= first
        for (i, j), last, first in zip(chosen, last_from, first_to, strict=True)
    )


def lowest_by_arrays(found: Readings, chosen: list[tuple[int, int]]) -> list[float]:
    """As the script of the page does it."""
    lowest, entry = [], 0
    for count in found.entries.tolist():
        own = range(entry, entry + count)
        weights = [
            int(found.weight[e])
            for e in own
            if passes(found.last_from[e], found.first_to[e], chosen)
        ]
        lowest.append(min(weights, default=np.inf))
        entry += count
    return lowest


def predicate(steps: list[ColumnSteps], chosen: list[tuple[int, int]]) -> And:
    parts = []
    for of, (i, j) in zip(steps, chosen, strict=True):
        if i > 0:
            parts.append(Comparison(of.column, ">=", of.lower[i - 1].value))
        if j < of.count - 1:
            parts.append(Comparison(of.column, of.upper_op, of.upper[j].value))
    return And(tuple(parts))


def lowest_by_query(
    files: list[ReadableFile], steps: list[ColumnSteps], chosen: list[tuple[int, int]]
) -> list[float]:
    """As `read.sample` chooses files."""
    lowest = []
    for each in files:
        assert each.revision is not None
        filled = [block for block in each.blocks if block.element_count]
        corners = cube_bounds([block.cube for block in filled], each.revision.dimensions)
        meeting = may_match(predicate(steps, chosen), each.revision, *corners)
        weights = [b.min_weight for b, meets in zip(filled, meeting, strict=True) if meets]
        lowest.append(min(weights, default=np.inf))
    return lowest


QUANTILES = NumericQuantiles((0.0, 1.0, 1.0, 3.0, 50.0, 51.0), DataType.DOUBLE)


@pytest.mark.parametrize(
    "transformations",
    [
        (LinearTransformation(0, 1000, 0, DataType.INTEGER),) * 2,
        (QUANTILES, StringQuantiles(("a", "f", "k", "p", "z"))),
        (LinearTransformation(0, 64 * 86_400_000, 0, DataType.DATE), HashTransformation("x")),
    ],
)
@pytest.mark.parametrize("grid_depth", [6, 3, 1])
def test_every_choice_reads_the_files_that_a_query_reads(
    transformations: tuple[Transformation, ...], grid_depth: int
) -> None:
    drawn = revision(*transformations)
    points = np.random.default_rng(3).beta(1.5, 3, (8000, 2))
    blocks = list(grown_blocks(points, random_weights(8000, 4), 100))
    empty = Block(CubeId.root(2), MIN_WEIGHT, MAX_WEIGHT, 0)
    files = [file(drawn, empty, *each.blocks) for each in in_files(blocks, 5)]
    steps = steps_of(drawn)
    found = readings(files, drawn, steps, grid_depth)
    draw = random.Random(7)
    compared = 0
    for _ in range(60):
        chosen = []
        for of in steps:
            i = draw.randint(0, of.count - 1)
            chosen.append((i, draw.randint(i, of.count - 1)))
        expected = lowest_by_query(files, steps, chosen)
        assert lowest_by_arrays(found, chosen) == expected
        compared += 0 < sum(map(np.isfinite, expected)) < len(files)
    assert compared > 20


def test_entries_that_no_choice_tells_apart_are_joined() -> None:
    drawn = revision(*(LinearTransformation(0, 1000, 0, DataType.INTEGER),) * 2)
    deep = [Block(CubeId(2, 9, path), 10 + path, MAX_WEIGHT, 2) for path in range(16)]
    found = readings([file(drawn, *deep), file(drawn, *deep[:3])], drawn, steps_of(drawn), 3)
    assert found.entries.tolist() == [1, 1]
    assert found.weight.tolist() == [10, 10]
    assert found.entry_rows.tolist() == [32, 6]
    assert found.depth.tolist() == [3, 3] and found.cell.tolist() == [[0, 0]] * 2


def test_other_revisions_are_read_by_their_own_ranges_and_have_no_place() -> None:
    drawn = revision(*(LinearTransformation(0, 1000, 0, DataType.INTEGER),) * 2)
    wide = LinearTransformation(0, 4000, 0, DataType.INTEGER)
    other = revision(wide, wide, number=2)
    low, *_, high = CubeId.root(2).children()
    blocks = [Block(cube, 0, MAX_WEIGHT, 5) for cube in (low, high)]
    files = [file(other, blocks[0]), file(other, blocks[1])]
    steps = steps_of(drawn)
    found = readings(files, drawn, steps, 6)
    assert found.depth.tolist() == [OTHER_REVISION] * 2
    # Of what the second file has, only rows beyond the range of the drawn revision are sure.
    assert lowest_by_arrays(found, [(3, 5), (0, 15)]) == [0, np.inf]
    assert lowest_by_arrays(found, [(3, 15), (0, 15)]) == [0, 0]


def test_a_revision_over_other_columns_passes_every_choice() -> None:
    drawn = revision(*(LinearTransformation(0, 1000, 0, DataType.INTEGER),) * 2)
    other = Revision(
        2, 0, "t", 100, (LinearTransformer("z", DataType.INTEGER),), drawn.transformations[:1]
    )
    found = readings(
        [file(other, Block(CubeId.root(1), 3, MAX_WEIGHT, 5))], drawn, steps_of(drawn), 6
    )
    assert lowest_by_arrays(found, [(15, 15), (0, 0)]) == [3]


def test_statistics_pass_the_steps_that_delta_would_read_a_file_for() -> None:
    drawn = revision(
        LinearTransformation(0, 64 * 86_400_000, 0, DataType.DATE),
        StringQuantiles(("a", "b", "c", "d")),
    )
    steps = steps_of(drawn, 64)
    days = [datetime.date(1970, 1, 1) + datetime.timedelta(days=k) for k in (10, 20)]
    extremes = [
        (Extremes(days[0], days[1]), Extremes("b", "c")),
        (Extremes(only_nulls=True), Extremes(only_nulls=True)),
        (UNKNOWN, UNKNOWN),
    ]
    files = [file(None, extremes=each) for each in extremes]
    found = readings(files, drawn, steps, 6)
    assert found.is_indexed.tolist() == [0, 0, 0] and found.entries.tolist() == [0, 0, 0]

    def kept(chosen: list[tuple[int, int]]) -> list[bool]:
        return [
            passes(last, first, chosen)
            for last, first in zip(found.file_last_from, found.file_first_to, strict=True)
        ]

    last = [of.count - 1 for of in steps]
    assert last == [63, 3]
    assert kept([(0, last[0]), (0, last[1])]) == [True, True, True]
    assert kept([(20, last[0]), (0, last[1])]) == [True, False, True]
    assert kept([(21, last[0]), (0, last[1])]) == [False, False, True]
    assert kept([(0, 10), (0, last[1])]) == [True, False, True]
    assert kept([(0, 9), (0, last[1])]) == [False, False, True]
    # Texts end below a bound: no row of a file whose smallest is "b" is below "b".
    assert kept([(0, last[0]), (0, 1)]) == [True, False, True]
    assert kept([(0, last[0]), (0, 0)]) == [False, False, True]
    assert kept([(0, last[0]), (2, last[1])]) == [True, False, True]
    assert kept([(0, last[0]), (3, last[1])]) == [False, False, True]


def test_single_cubes_pass_as_their_entries_do() -> None:
    drawn = revision(*(LinearTransformation(0, 1000, 0, DataType.INTEGER),) * 2)
    cubes = list(CubeId.root(2).children())
    last_from, first_to = cube_readings(cubes, drawn, steps_of(drawn))
    assert last_from.tolist() == [[7, 7], [7, 15], [15, 7], [15, 15]]
    assert first_to.tolist() == [[0, 0], [0, 8], [8, 0], [8, 8]]


def test_no_files_give_empty_arrays() -> None:
    drawn = revision(*(LinearTransformation(0, 1000, 0, DataType.INTEGER),) * 2)
    found = readings([], drawn, steps_of(drawn), 6)
    assert len(found.size_bytes) == len(found.weight) == 0
    assert found.file_last_from.shape == (0, 2)
