"""The points of sampled rows in the space of a revision."""

import warnings

import numpy as np

from qbeast_core.model.datatypes import DataType
from qbeast_core.model.transformation import LinearTransformation
from qbeast_core.model.transformer import LinearTransformer
from qbeast_core.spark.statistics import Bounds, InputStatistics, RowSample
from qbeast_core.tree.path import PathLayout
from qbeast_core.write.revision import first_revision

LARGEST = float(np.finfo(np.float64).max)


def test_sampled_rows_have_the_cells_of_their_values_even_if_their_range_is_too_wide() -> None:
    values = [-LARGEST, -1.0, 0.0, 1.0, LARGEST, -np.inf, np.inf]
    numbers = np.array(values)[:, np.newaxis]
    sample = RowSample(numbers, np.isnan(numbers), np.zeros(len(values), np.int32))
    statistics = InputStatistics(len(values), (Bounds(-LARGEST, LARGEST),), sample)
    transformer = LinearTransformer("x", DataType.DOUBLE)
    revision = first_revision((transformer,), statistics, table_id="t", cube_size=50)
    (transformation,) = revision.transformations
    assert isinstance(transformation, LinearTransformation)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        points = sample.coordinates(revision)

    layout = PathLayout(1)
    alone = np.array([[transformation.transform(value)] for value in values])
    np.testing.assert_array_equal(layout.cells(points), layout.cells(alone))
