"""Rows of a file have the order that `RowOrder` computes with numpy."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from qbeast_core import write_table
from qbeast_core.jvm.catalyst import Catalyst
from qbeast_core.jvm.gateway import Jvm
from qbeast_core.model.datatypes import DataType
from qbeast_core.model.transformation import LinearTransformation
from qbeast_core.spark import columns
from qbeast_core.tree.curve import HilbertCurve, RowOrder
from qbeast_core.tree.path import PathLayout
from tests.support.invariants import assert_sound

UNIT = LinearTransformation(0.0, 1.0, 0.5, DataType.DOUBLE)


def order_of(points: np.ndarray, levels: int) -> np.ndarray:
    """The places of points float64[rows, n] by so many levels, or a few more where the curve's last
    step goes further, int64[rows]: Hilbert's curve, then the path."""
    layout = PathLayout(points.shape[1])
    word = layout.path_words(points)[0]
    below = layout.levels_per_word - levels
    curve = HilbertCurve.of(layout.dimensions)
    if curve is None:
        return word >> below * layout.dimensions
    steps = min(4, math.ceil(levels / curve.step_levels))
    by_curve = steps * curve.step_levels
    cells = layout.cells(points.T) >> layout.max_depth - by_curve
    places = curve.positions(cells, by_curve)
    if levels <= by_curve:
        return places
    bits_below = (levels - by_curve) * layout.dimensions
    by_path = word >> below * layout.dimensions & (1 << bits_below) - 1
    return places << bits_below | by_path


@pytest.mark.parametrize("levels", [1, 4, 7, 13, None])
@pytest.mark.parametrize("dimensions", [1, 2, 3, 4, 5])
def test_the_expression_agrees_with_numpy(
    spark: SparkSession, dimensions: int, levels: int | None
) -> None:
    rng = np.random.default_rng(dimensions)
    # Some points are so close together that only the last levels tell them apart.
    points = np.vstack(
        [
            rng.random((500, dimensions)),
            0.3 + rng.random((200, dimensions)) * 1e-6,
            np.ones((1, dimensions)),
            np.zeros((1, dimensions)),
        ]
    )
    names = [f"x{i}" for i in range(dimensions)]
    rows = spark.createDataFrame([tuple(map(float, point)) for point in points], names)
    layout, catalyst = PathLayout(dimensions), Catalyst(Jvm(spark))
    levels = min(levels or layout.first_levels, layout.first_levels)
    cells = [columns.cell(catalyst, F.col(name), UNIT, layout) for name in names]
    order = RowOrder(layout, levels)
    place = columns.place(catalyst, cells, order).alias("place")
    found = np.array([row.place for row in rows.select(place).collect()])
    assert np.array_equal(found, order_of(points, levels))
    assert np.array_equal(found, order.places(layout.path_words(points)))
    assert int(found.max()).bit_length() == order.bits
    assert len(np.unique(found)) > 690 or dimensions > 2 or levels < layout.first_levels


@pytest.mark.parametrize(("dimensions", "levels"), [(1, 7), (2, 4), (3, 3)])
def test_files_are_sorted_by_as_many_levels_as_they_need(
    spark: SparkSession, tmp_path: Path, dimensions: int, levels: int
) -> None:
    rng = np.random.default_rng(7)
    points = rng.random((20_000, 3))
    rows = spark.createDataFrame(
        [(i, *map(float, point)) for i, point in enumerate(points)], ["id", "x0", "x1", "x2"]
    )
    names = ["x0", "x1", "x2"][:dimensions]
    stats = {name: {"min": 0.0, "max": 1.0} for name in names}
    write_table(
        rows, path=str(tmp_path), columns_to_index=names, cube_size=3000, column_stats=stats
    )
    files = [pq.read_table(file) for file in tmp_path.glob("*.parquet")]
    assert len(files) > 3
    for file in files:
        points = np.column_stack([file.column(name).to_numpy() for name in names])
        places = order_of(points, levels)
        assert np.array_equal(places, np.sort(places))
        assert len(np.unique(places)) > 8
    assert_sound(spark, tmp_path, range(20_000))
