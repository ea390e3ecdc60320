"""Rows lie in a file in the order that the library's numpy says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from qbeast_core import write_table
from qbeast_core.delta.jvm import Jvm
from qbeast_core.spark import columns
from qbeast_core.spark.catalyst import Catalyst
from qbeast_core.tree.curve import HilbertCurve
from qbeast_core.tree.path import PathLayout
from tests.integration.core.brute_force import assert_sound

STEPS = 4


def order_of(points: np.ndarray) -> np.ndarray:
    """The places of points float64[rows, n], int64[rows]: Hilbert's curve, then the path."""
    layout = PathLayout(points.shape[1])
    word = layout.path_words(points)[0]
    curve = HilbertCurve.of(layout.dimensions)
    if curve is None:
        return word
    levels = STEPS * curve.step_levels
    cells = np.minimum(np.floor(points.T * (1 << levels)), (1 << levels) - 1).astype(np.int64)
    bits_below = (layout.levels_per_word - levels) * layout.dimensions
    return curve.positions(cells, levels) << bits_below | word & (1 << bits_below) - 1


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4, 5])
def test_the_expression_agrees_with_numpy(spark: SparkSession, dimensions: int) -> None:
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
    layout = PathLayout(dimensions)
    cells = [columns.cell(F.col(name), layout) for name in names]
    place = columns.order(Catalyst(Jvm(spark)), cells, layout)
    found = np.array([row.place for row in rows.select(place.alias("place")).collect()])
    assert np.array_equal(found, order_of(points))
    assert len(np.unique(found)) > 690 or dimensions > 2


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_files_are_sorted_by_it(spark: SparkSession, tmp_path: Path, dimensions: int) -> None:
    rng = np.random.default_rng(7)
    points = rng.random((3000, 3))
    rows = spark.createDataFrame(
        [(i, *map(float, point)) for i, point in enumerate(points)], ["id", "x0", "x1", "x2"]
    )
    names = ["x0", "x1", "x2"][:dimensions]
    stats = {name: {"min": 0.0, "max": 1.0} for name in names}
    write_table(rows, path=str(tmp_path), columns_to_index=names, cube_size=400, column_stats=stats)
    files = [pq.read_table(file) for file in tmp_path.glob("*.parquet")]
    assert len(files) > 3
    for file in files:
        places = order_of(np.column_stack([file.column(name).to_numpy() for name in names]))
        assert np.array_equal(places, np.sort(places))
    assert_sound(spark, tmp_path, range(3000))
