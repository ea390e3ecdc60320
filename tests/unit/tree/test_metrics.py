from __future__ import annotations

import json
from dataclasses import replace

import pytest

from qbeast_core.model.block import Block
from qbeast_core.model.cube import CubeId
from qbeast_core.model.datatypes import DataType
from qbeast_core.model.revision import Revision
from qbeast_core.model.transformation import LinearTransformation
from qbeast_core.model.transformer import LinearTransformer
from qbeast_core.model.weight import MAX_WEIGHT, weight_of_fraction
from qbeast_core.tree.metrics import (
    FileBlocks,
    IndexMetrics,
    OptimizableFiles,
    SampleCost,
    Spread,
    TableSize,
    index_metrics,
)

NO_ROWS = TableSize(0, 0, 0)

REVISION = Revision(
    3,
    0,
    "t",
    100,
    tuple(LinearTransformer(name, DataType.INTEGER) for name in ("a", "b")),
    (LinearTransformation(0, 9, 0, DataType.INTEGER),) * 2,
)


def block(text: str, at: float, rows: int, upto: float = 1.0) -> Block:
    weight = weight_of_fraction(upto) if upto < 1 else MAX_WEIGHT
    return Block(CubeId.parse(text, 2), weight_of_fraction(at), weight, rows)


@pytest.fixture
def metrics() -> IndexMetrics:
    files = [
        FileBlocks(1_000_000, (block("", 0.0, 100, upto=0.2),), 0),
        FileBlocks(3_000_000, (block("A", 0.2, 60), block("w", 0.05, 40), block("Q", 0.3, 50)), 9),
        FileBlocks(2_000_000, (block("g", 0.1, 110), block("", 0.0, 0, upto=0.1)), 9),
    ]
    table = TableSize(files=6, rows=700, size_bytes=10_000_000)
    return index_metrics(REVISION, files, table, unindexed_files=2, unindexed_bytes=500_000)


def test_the_tree_is_counted(metrics: IndexMetrics) -> None:
    assert (metrics.rows, metrics.files, metrics.blocks, metrics.cubes) == (360, 3, 6, 5)
    assert (metrics.inner_cubes, metrics.height) == (1, 2)
    assert (metrics.average_fan_out, metrics.balance) == (4.0, 1.0)
    assert metrics.blocks_per_cube == 1.2
    assert metrics.inner_cube_rows == Spread(100, 100, 100, 100, 100)
    assert metrics.leaf_cube_rows == Spread(40, 40, 50, 60, 110)


def test_rows_that_a_deletion_vector_hides_are_not_counted() -> None:
    file = FileBlocks(1_000_000, (block("", 0.0, 100),), deleted_rows=30)
    metrics = index_metrics(REVISION, [file], TableSize(files=1, rows=70, size_bytes=1_000_000))
    assert (metrics.rows, metrics.file_rows.largest) == (70, 100)


def test_samples_cost_the_files_with_a_low_enough_block(metrics: IndexMetrics) -> None:
    assert metrics.sample_costs == (
        SampleCost(0.001, 1, 100, 1_000_000),
        SampleCost(0.01, 1, 100, 1_000_000),
        SampleCost(0.1, 2, 250, 4_000_000),
    )


def test_the_text_is_for_people(metrics: IndexMetrics) -> None:
    assert str(metrics).splitlines() == [
        "revision             3, indexed by a, b",
        "sample key           the indexed columns",
        "rows                 360 in 3 files, 6.0 MB",
        "cubes                5 (1 inner), 6 blocks",
        "tree                 2 levels, 4.0 children on average, balance 1.00",
        "desired cube size    100 rows",
        "rows per inner cube  100 / 100 / 100 / 100 / 100  (min / quartiles / max)",
        "rows per leaf cube   40 / 40 / 50 / 60 / 110",
        "rows per block       0 / 40 / 50 / 100 / 110",
        "rows per file        100 / 100 / 110 / 150 / 150",
        "bytes per file       1,000,000 / 1,000,000 / 2,000,000 / 3,000,000 / 3,000,000",
        "blocks per file      1 / 1 / 2 / 3 / 3",
        "0.1 % sample reads   1 of 3 files, 16.7% of the bytes, 100 rows",
        "1 % sample reads     1 of 3 files, 16.7% of the bytes, 100 rows",
        "10 % sample reads    2 of 3 files, 66.7% of the bytes, 250 rows",
        "not indexed          2 files, 0.5 MB, 5.0% of all",
        "optimize rewrites    nothing",
    ]


def test_the_sample_key_is_reported() -> None:
    metrics = index_metrics(replace(REVISION, sample_key=("order", "line")), [], NO_ROWS)
    assert str(metrics).splitlines()[1] == "sample key           order, line"
    assert json.loads(json.dumps(metrics.to_dict()))["sample_key"] == ["order", "line"]


def test_the_numbers_are_json(metrics: IndexMetrics) -> None:
    numbers = json.loads(json.dumps(metrics.to_dict()))
    assert numbers["columns"] == ["a", "b"]
    assert numbers["sample_costs"][2] == {
        "fraction": 0.1,
        "files": 2,
        "rows": 250,
        "size_bytes": 4_000_000,
    }
    assert numbers["leaf_cube_rows"]["median"] == 50


def test_a_lopsided_tree_has_a_higher_balance() -> None:
    chain = [FileBlocks(1, (block("A" * depth, 0.0, 1),)) for depth in range(5)]
    assert index_metrics(REVISION, chain, NO_ROWS).balance > 1.9


def test_no_files_are_all_zero() -> None:
    metrics = index_metrics(REVISION, [], NO_ROWS)
    assert (metrics.height, metrics.balance, metrics.cubes, metrics.blocks_per_cube) == (0, 0, 0, 0)
    assert metrics.file_rows == Spread(0, 0, 0, 0, 0)
    assert "0 of 0 files, 0.0% of the bytes" in str(metrics)


def test_what_optimize_would_rewrite_is_reported() -> None:
    small = [FileBlocks(1_000_000, (block("A", 0.0, 30),)) for _ in range(4)]
    large = FileBlocks(9_000_000, (block("w", 0.0, 90),), 9)
    metrics = index_metrics(REVISION, [*small, large], NO_ROWS)
    assert metrics.optimizable == OptimizableFiles(4, 120, 4_000_000, files_after=2)
    assert "4 files as about 2, 120 rows, 4.0 MB" in str(metrics)
