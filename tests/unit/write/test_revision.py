"""Which revision more rows belong to."""

from dataclasses import replace

import numpy as np
import pytest
from pyspark.sql import types

from qbeast_core.errors import IndexMismatch
from qbeast_core.model.column_stats import ColumnStats
from qbeast_core.model.datatypes import DataType
from qbeast_core.model.revision import Revision
from qbeast_core.model.transformation import (
    EmptyTransformation,
    LinearTransformation,
    NumericQuantiles,
    StringQuantiles,
    UnusableTransformation,
)
from qbeast_core.model.transformer import (
    HashTransformer,
    LinearTransformer,
    NumericQuantilesTransformer,
    StringHistogramTransformer,
    StringQuantilesTransformer,
    Transformer,
)
from qbeast_core.options import ALL
from qbeast_core.spark.statistics import Bounds, InputStatistics, RowSample
from qbeast_core.write.revision import (
    check_sample_key,
    continued_revision,
    continued_transformers,
    first_revision,
)

TRANSFORMERS = (LinearTransformer("a", DataType.LONG),)


def seen(minimum: int, maximum: int) -> InputStatistics:
    nothing = RowSample(np.empty((0, 1)), np.empty((0, 1), dtype=bool), np.empty(0, np.int32))
    return InputStatistics(10, (Bounds(minimum, maximum),), nothing)


FIRST = first_revision(TRANSFORMERS, seen(0, 100), table_id="t", cube_size=50)


def test_all_is_the_sample_key_of_a_table_that_names_all_of_its_columns() -> None:
    schema = types.StructType().add("a", "long").add("b", "string")
    named = replace(FIRST, sample_key=("a", "b"))
    check_sample_key(ALL, named, {}, schema, "t")
    for other in (FIRST, replace(FIRST, sample_key=("b", "a"))):
        with pytest.raises(IndexMismatch, match="the write asks for sample_key all"):
            check_sample_key(ALL, other, {}, schema, "t")


def test_rows_within_the_range_keep_the_revision() -> None:
    assert (
        continued_revision(FIRST, TRANSFORMERS, seen(5, 9), revision_id=3, cube_size=None) is FIRST
    )


def test_rows_beyond_the_range_begin_a_revision_of_the_unused_number() -> None:
    found = continued_revision(FIRST, TRANSFORMERS, seen(5, 900), revision_id=3, cube_size=None)
    (bounds,) = found.transformations
    assert (found.revision_id, bounds.minimum, bounds.maximum) == (3, 0, 900)


def test_a_given_range_makes_the_first_one_wider_and_never_narrower() -> None:
    wide = seen(0, 100).with_given([ColumnStats(-50, 60)])
    (transformation,) = first_revision(
        TRANSFORMERS, wide, table_id="t", cube_size=50
    ).transformations
    assert isinstance(transformation, LinearTransformation)
    assert (transformation.minimum, transformation.maximum) == (-50, 100)


QUANTILES = (
    NumericQuantilesTransformer("x", DataType.DOUBLE),
    StringQuantilesTransformer("s"),
)


def of_values(numbers: list[float], texts: list[str | None]) -> InputStatistics:
    sample = RowSample(
        np.array([[x, np.nan] for x in numbers]),
        np.array([[False, text is None] for text in texts]),
        np.zeros(len(numbers), np.int32),
        {1: texts},
    )
    bounds = (Bounds(min(numbers), max(numbers)), Bounds(None, None))
    return InputStatistics(len(numbers), bounds, sample)


def of_quantiles(statistics: InputStatistics) -> Revision:
    return first_revision(QUANTILES, statistics, table_id="t", cube_size=50)


def test_quantiles_are_those_of_the_rows_where_none_are_given() -> None:
    revision = of_quantiles(of_values([3.0, 1.0, 2.0], ["b", None, "a"]))
    assert revision.transformations == (
        NumericQuantiles((1.0, 2.0, 3.0), DataType.DOUBLE),
        StringQuantiles(("a", "b")),
    )
    points = of_values([1.0, 2.5], ["a", None]).sample.coordinates(revision)
    assert points.tolist() == [[0.0, 0.0], [0.75, 0.0]]


@pytest.mark.parametrize(
    "transformer",
    [StringQuantilesTransformer("s"), StringHistogramTransformer("s", DataType.STRING)],
)
def test_unsorted_quantiles_are_replaced_by_those_of_the_next_rows(
    transformer: Transformer,
) -> None:
    unsorted = UnusableTransformation({"quantiles": ["a", "！", "😀"]}, "they are not sorted")
    before = replace(
        FIRST,
        transformers=(QUANTILES[0], transformer),
        transformations=(NumericQuantiles((0.0, 9.0), DataType.DOUBLE), unsorted),
    )
    schema = types.StructType(
        [
            types.StructField("x", types.DoubleType()),
            types.StructField("s", types.StringType()),
        ]
    )
    continued = continued_transformers(before, None, schema, "t")
    assert continued == QUANTILES
    rows = of_values([3.0, 1.0], ["b", "a"])
    found = continued_revision(before, continued, rows, revision_id=2, cube_size=None)
    assert found.revision_id == 2
    assert found.transformations == (
        NumericQuantiles((0.0, 9.0), DataType.DOUBLE),
        StringQuantiles(("a", "b")),
    )


def test_given_quantiles_come_before_those_of_the_rows() -> None:
    rows = of_values([3.0, 1.0], ["b", "a"]).with_given(
        [ColumnStats(quantiles=(0.0, 9.0)), ColumnStats(quantiles=("k", "z"))]
    )
    assert of_quantiles(rows).transformations == (
        NumericQuantiles((0.0, 9.0), DataType.DOUBLE),
        StringQuantiles(("k", "z")),
    )


def test_more_rows_keep_the_quantiles_unless_others_are_given() -> None:
    first = of_quantiles(of_values([3.0, 1.0], ["b", "a"]))
    more = of_values([300.0, 100.0], ["z", "y"])
    assert continued_revision(first, QUANTILES, more, revision_id=2, cube_size=None) is first
    given = more.with_given([ColumnStats(quantiles=(0.0, 500.0)), ColumnStats()])
    found = continued_revision(first, QUANTILES, given, revision_id=2, cube_size=None)
    assert found.revision_id == 2
    assert found.transformations == (
        NumericQuantiles((0.0, 500.0), DataType.DOUBLE),
        StringQuantiles(("a", "b")),
    )


def test_a_column_without_two_values_waits_for_its_quantiles() -> None:
    first = of_quantiles(of_values([5.0, 5.0], [None, "a"]))
    assert first.transformations == (EmptyTransformation(), EmptyTransformation())
    same = of_values([5.0], ["b"])
    assert continued_revision(first, QUANTILES, same, revision_id=2, cube_size=None) is first
    more = of_values([5.0, 6.0], ["b", "c"])
    found = continued_revision(first, QUANTILES, more, revision_id=2, cube_size=None)
    assert found.transformations == (
        NumericQuantiles((5.0, 6.0), DataType.DOUBLE),
        StringQuantiles(("b", "c")),
    )


@pytest.mark.parametrize(
    ("old", "spark_type", "new"),
    [
        (LinearTransformer("a", DataType.INTEGER), types.IntegerType(), None),
        (
            LinearTransformer("a", DataType.INTEGER),
            types.LongType(),
            LinearTransformer("a", DataType.LONG),
        ),
        (
            HashTransformer("a", DataType.INTEGER),
            types.LongType(),
            HashTransformer("a", DataType.LONG),
        ),
        (
            LinearTransformer("a", DataType.INTEGER),
            types.StringType(),
            HashTransformer("a", DataType.STRING),
        ),
        (StringHistogramTransformer("a", DataType.STRING), types.StringType(), None),
        (
            HashTransformer("a", DataType.DATE),
            types.DateType(),
            LinearTransformer("a", DataType.DATE),
        ),
    ],
)
def test_a_column_of_another_type_keeps_its_kind_if_it_can(
    old: Transformer, spark_type: types.DataType, new: Transformer | None
) -> None:
    current = replace(FIRST, transformers=(old,))
    schema = types.StructType([types.StructField("a", spark_type)])
    assert continued_transformers(current, None, schema, "t") == (new or old,)


def test_a_revision_without_transformations_takes_nothing_from_the_old_ones() -> None:
    current = replace(FIRST, transformations=())
    found = continued_revision(current, TRANSFORMERS, seen(5, 9), revision_id=3, cube_size=None)
    (bounds,) = found.transformations
    assert (found.revision_id, bounds.minimum, bounds.maximum) == (3, 5, 9)
