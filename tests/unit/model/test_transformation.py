"""Coordinates, and when data need another transformation (docs/format.md 3.6 and 4)."""

import datetime
import json
import math
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest

from qbeast_core.errors import CorruptMetadata
from qbeast_core.model.datatypes import DataType
from qbeast_core.model.json_text import to_json_text
from qbeast_core.model.revision import Revision
from qbeast_core.model.transformation import (
    EmptyTransformation,
    HashTransformation,
    IdentityToZero,
    IdentityTransformation,
    LinearTransformation,
    NullToZero,
    NumericQuantiles,
    StringHistogram,
    StringQuantiles,
    draw_hash_null_value,
    draw_null_value,
    range_transformation,
    transformation_from_json,
)
from tests.support.oracles import cube_containing, point_of
from tests.unit.model.reference_vectors import VECTORS, python_value, sidecars, spark_types

INTEGER, LONG, DOUBLE, FLOAT = DataType.INTEGER, DataType.LONG, DataType.DOUBLE, DataType.FLOAT
UTC = datetime.timezone.utc


def middle(minimum, maximum, data_type):
    """A null value in the middle of the range."""
    return (minimum + maximum) // 2


# ---------------------------------------------------------------- coordinates as in the JVM


@pytest.mark.parametrize("case", VECTORS["linear"], ids=lambda c: f"{c['type']}-{c['value']}")
def test_linear_coordinates_equal_those_of_the_jvm(case):
    data_type = DataType(case["type"])
    transformation = LinearTransformation(case["min"], case["max"], case["null"], data_type)
    text = case["value"]
    if text == "None":
        value = None
    elif data_type is DataType.TIMESTAMP:
        value = datetime.datetime.fromisoformat(text).replace(tzinfo=UTC)
    else:
        value = {INTEGER: int, DOUBLE: float, DataType.DECIMAL: Decimal}[data_type](text)
    assert transformation.transform(value) == case["x"]


HASHED = VECTORS["hash_transformation(nullValue=-1809672334)"]


@pytest.mark.parametrize("case", HASHED, ids=lambda c: repr(c["value"]))
def test_hash_coordinates_equal_those_of_the_jvm(case):
    transformation = HashTransformation(-1809672334)
    assert transformation.transform(case["value"]) == case["x"]
    if case["value"] == "12.34":
        assert transformation.transform(Decimal("12.34")) == case["x"]


def quantile_cases():
    for case in VECTORS["quantiles"]:
        if isinstance(case["x"], float):
            yield pytest.param(case, id=f"{case['quantiles'][0]}-{case['value']}")


@pytest.mark.parametrize("case", quantile_cases())
def test_quantile_coordinates_equal_those_of_the_jvm(case):
    text = case["value"]
    if isinstance(case["quantiles"][0], str):
        assert StringQuantiles(tuple(case["quantiles"])).transform(text) == case["x"]
        return
    data_type, value = DOUBLE, None if text == "None" else text
    if value is not None and " " in value:
        data_type = DataType.TIMESTAMP
        value = datetime.datetime.fromisoformat(value).replace(tzinfo=UTC)
    elif value is not None:
        value = float(value)
    assert NumericQuantiles(tuple(case["quantiles"]), data_type).transform(value) == case["x"]


@pytest.mark.parametrize("case", VECTORS["histogram"], ids=lambda c: repr(c["value"]))
def test_histogram_coordinates_equal_those_of_the_jvm(case):
    assert StringHistogram(tuple(case["h"])).transform(case["value"]) == case["x"]


@pytest.mark.parametrize(
    ("name", "revision_id"),
    [(name, key) for name, table in sidecars().items() for key in table.get("vectors", {})],
)
def test_points_and_cubes_of_reference_rows(name, revision_id):
    table = sidecars()[name]
    types = spark_types(table)
    revision = Revision.from_json_text(json.dumps(table["revisions"][revision_id]))
    for row in table["vectors"][revision_id]:
        values = [
            python_value(value, types[column])
            for value, column in zip(row["values"], revision.columns, strict=True)
        ]
        point = point_of(revision, values)
        assert list(point) == row["point"]
        for depth, text in enumerate(row.get("cubes", ()), start=1):
            assert cube_containing(point, depth).text == text


# ------------------------------------------------------------------------------ missing values


def test_numbers_without_a_place_have_an_end():
    linear = LinearTransformation(-5.0, 5.0, 1.0, DOUBLE)
    quantiles = NumericQuantiles((0.0, 1.0, 2.0), DOUBLE)
    for transformation in (linear, quantiles):
        assert transformation.transform(math.nan) == 1.0
        assert transformation.transform(math.inf) == 1.0
        assert transformation.transform(-math.inf) == 0.0
    # Ranges that doubles cannot measure: the ends are still ordered, and nothing is NaN.
    wide = LinearTransformation(-1.7e308, 1.7e308, 0.0, DOUBLE)
    assert (wide.transform(-1.7e308), wide.transform(1.7e308)) == (0.0, 1.0)
    narrow = LinearTransformation(0.0, 5e-324, 0.0, DOUBLE)
    assert narrow.transform(5e-324) == 1.0
    close = LinearTransformation(2**60, 2**60 + 1, 2**60, LONG)
    assert close.transform(2**60 + 1) == 1.0


@pytest.mark.parametrize(
    "transformation",
    [
        IdentityTransformation(7, INTEGER),
        IdentityTransformation(None, DOUBLE),
        EmptyTransformation(),
        IdentityToZero(7),
        NullToZero(),
    ],
)
@pytest.mark.parametrize("value", [7, 8, None, "x"])
def test_constant_coordinates(transformation, value):
    assert transformation.transform(value) == 0.0


def test_a_float_column_is_hashed_by_its_own_text():
    transformation = HashTransformation(0)
    assert transformation.transform(np.float32(0.1)) == transformation.transform("0.1")
    assert transformation.transform(float(np.float32(0.1))) == transformation.transform(
        "0.10000000149011612"
    )
    revision = Revision.from_json_text(
        '{"revisionID":1,"timestamp":1,"tableID":"","desiredCubeSize":1,"columnTransformers":'
        '[{"className":"io.qbeast.core.transform.HashTransformer","columnName":"f",'
        '"dataType":"FloatDataType"}],"transformations":'
        '[{"className":"io.qbeast.core.transform.HashTransformation","nullValue":0}]}'
    )
    assert point_of(revision, [float(np.float32(0.1))]) == (transformation.transform("0.1"),)


@pytest.mark.parametrize("value", [datetime.date(2020, 1, 1), True, [1]])
def test_what_the_format_cannot_hash_is_refused(value):
    with pytest.raises(ValueError, match="hashed"):
        HashTransformation(0).transform(value)


def test_values_of_another_type_are_refused():
    with pytest.raises(ValueError, match="string"):
        StringQuantiles(("a", "b")).transform(1)
    with pytest.raises(ValueError, match="Integer"):
        LinearTransformation(0, 9, 1, INTEGER).transform("1")


@pytest.mark.parametrize("quantiles", [(0.0, 10.0, 50.0), (1.0, 1.0, 1.0, 2.0, 2.0, 3.0)])
def test_knots_describe_the_whole_function(quantiles):
    transformation = NumericQuantiles(quantiles, DOUBLE)
    knots, m = transformation.knots(), len(quantiles) - 1
    for knot in knots:
        assert transformation.transform(knot.value) == knot.at
    for low, high in pairwise(knots):
        value = low.value + (high.value - low.value) * 0.3
        rank = round(low.after * m)
        expected = (rank + (value - low.value) / (high.value - low.value)) / m
        assert transformation.transform(value) == expected


def test_knots_of_texts():
    transformation = StringQuantiles(("a", "b", "b", "b", "c"))
    for knot in transformation.knots():
        assert transformation.transform(knot.value) == knot.at
        assert transformation.transform(knot.value + "-") == knot.after


@pytest.mark.parametrize(
    "build",
    [
        lambda: LinearTransformation(5, 5, 5, INTEGER),
        lambda: LinearTransformation(6, 5, 5, INTEGER),
        lambda: LinearTransformation(1, 5, 5, DataType.STRING),
        lambda: NumericQuantiles((1.0,), DOUBLE),
        lambda: NumericQuantiles((2.0, 1.0), DOUBLE),
        lambda: NumericQuantiles((1.0, math.nan), DOUBLE),
        lambda: StringQuantiles(("b", "a")),
        lambda: StringQuantiles(()),
        lambda: StringHistogram(("b", "a")),
    ],
)
def test_impossible_transformations_are_refused(build):
    with pytest.raises(ValueError, match=r"need|cannot|ascending|finite"):
        build()


# ------------------------------------------------------------------------------------------- JSON


P = '{"className":"io.qbeast.core.transform.'


@pytest.mark.parametrize(
    "text",
    [
        P + 'LinearTransformation","minNumber":0,"maxNumber":9999,"nullValue":177,'
        '"orderedDataType":"IntegerDataType"}',
        P + 'LinearTransformation","minNumber":0,"maxNumber":9999,'
        '"orderedDataType":"IntegerDataType"}',
        P + 'LinearTransformation","minNumber":0.33333334,"maxNumber":499.66666,'
        '"nullValue":255.50566,"orderedDataType":"FloatDataType"}',
        P + 'LinearTransformation","minNumber":0.0,"maxNumber":1.0E20,'
        '"nullValue":0.8836329781120158,"orderedDataType":"DecimalDataType"}',
        P + 'LinearTransformation","minNumber":-18489600000,"maxNumber":46224000000,'
        '"nullValue":25579560169,"orderedDataType":"DateDataType"}',
        P + 'IdentityTransformation","identityValue":7,"orderedDataType":"IntegerDataType"}',
        P + 'IdentityTransformation","identityValue":null,"orderedDataType":"DoubleDataType"}',
        P + 'HashTransformation","nullValue":-1809672334}',
        P + 'CDFNumericQuantilesTransformation","quantiles":[0.0,10.0,399.0],'
        '"dataType":"DoubleDataType"}',
        P + 'CDFStringQuantilesTransformation","quantiles":["a_1","z_9","é"]}',
        P + 'EmptyTransformation"}',
        P + 'StringHistogramTransformation","histogram":["a","m","z"]}',
        P + 'IdentityToZeroTransformation","identityValue":7}',
        P + 'NullToZeroTransformation$"}',
        P + 'CDFNumericQuantilesTransformation","quantiles":[0.0,399.0,10.0],'
        '"dataType":"DoubleDataType"}',
        P + 'CDFStringQuantilesTransformation","quantiles":["a","！","😀"]}',
        P + 'StringHistogramTransformation","histogram":["a","！","😀"]}',
        P + 'IdentityTransformation$"}',
        P + 'HashTransformation","nullValue":"ᅐ7"}',
    ],
)
def test_json_that_is_read_is_written_unchanged(text):
    assert to_json_text(transformation_from_json(json.loads(text)).to_json()) == text


@pytest.mark.parametrize("seen", [EmptyTransformation(), StringQuantiles(("a", "b"))])
def test_quantiles_in_the_order_of_utf8_are_read_but_place_no_rows(seen):
    """qbeast-spark sorts strings by their UTF-8 bytes, and searches them by their UTF-16 units."""
    text = P + 'CDFStringQuantilesTransformation","quantiles":["a","！","😀"]}'
    read = transformation_from_json(json.loads(text))
    with pytest.raises(CorruptMetadata, match=r"no row can be placed.*！.*not in ascending order"):
        read.transform("a")
    assert read.is_superseded_by(seen)
    assert read.merged_with(seen, middle) is seen


def test_bounds_of_a_float_column_are_read_as_floats():
    read = transformation_from_json(
        json.loads(
            P + 'LinearTransformation","minNumber":0.33333334,"maxNumber":499.66666,'
            '"nullValue":1.0,"orderedDataType":"FloatDataType","later":1}'
        )
    )
    assert (read.minimum, read.maximum) == (0.3333333432674408, 499.6666564941406)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        "null",
        '{"className":"io.qbeast.core.transform.Learned"}',
        '{"className":7}',
        P + 'LinearTransformation","minNumber":0,"maxNumber":1,"nullValue":0}',
        P + 'LinearTransformation","minNumber":0,"maxNumber":1,"nullValue":"0",'
        '"orderedDataType":"IntegerDataType"}',
        P + 'LinearTransformation","minNumber":"0","maxNumber":1,"nullValue":0,'
        '"orderedDataType":"IntegerDataType"}',
        P + 'LinearTransformation","minNumber":0.5,"maxNumber":1,"nullValue":0,'
        '"orderedDataType":"IntegerDataType"}',
        P + 'LinearTransformation","minNumber":9,"maxNumber":1,"nullValue":0,'
        '"orderedDataType":"IntegerDataType"}',
        P + 'LinearTransformation","minNumber":0,"maxNumber":1,"nullValue":0,'
        '"orderedDataType":"ShortDataType"}',
        P + 'IdentityTransformation","identityValue":"x","orderedDataType":"LongDataType"}',
        P + 'HashTransformation","nullValue":7.5}',
        P + 'HashTransformation"}',
        P + 'CDFNumericQuantilesTransformation","quantiles":["a","b"],"dataType":"DoubleDataType"}',
        P + 'CDFNumericQuantilesTransformation","quantiles":[],"dataType":"DoubleDataType"}',
        P + 'CDFStringQuantilesTransformation","quantiles":[1,2]}',
        P + 'IdentityToZeroTransformation","identityValue":null}',
    ],
)
def test_broken_json_is_corrupt_metadata(text):
    with pytest.raises(CorruptMetadata):
        transformation_from_json(json.loads(text))


# ------------------------------------------------------------------------- superseding and merging


LINEAR = LinearTransformation(0, 100, 7, INTEGER)
EMPTY = EmptyTransformation()
HASH = HashTransformation(5)
QUANTILES = NumericQuantiles((0.0, 1.0), DOUBLE)
TEXTS = StringQuantiles(("a", "b"))


def identity(value, data_type=INTEGER):
    return IdentityTransformation(value, data_type)


def linear(minimum, maximum):
    return LinearTransformation(minimum, maximum, middle(minimum, maximum, INTEGER), INTEGER)


@pytest.mark.parametrize(
    ("was", "seen"),
    [
        (LINEAR, LinearTransformation(0, 100, 50, INTEGER)),
        (LINEAR, LinearTransformation(10, 20, 12, INTEGER)),
        (LINEAR, identity(0)),
        (LINEAR, identity(100)),
        (LINEAR, identity(None)),
        (LINEAR, EMPTY),
        (identity(7), identity(7)),
        (identity(7), identity(None)),
        (identity(None), identity(None)),
        (identity(7), EMPTY),
        (identity(2**60, LONG), identity(2**60 + 1, LONG)),  # one double
        (HASH, HashTransformation(6)),
        (HASH, EMPTY),
        (QUANTILES, QUANTILES),
        (QUANTILES, EMPTY),
        (TEXTS, StringQuantiles(("a", "b"))),
        (TEXTS, EMPTY),
        (EMPTY, EMPTY),
        (StringHistogram(("a", "b")), StringHistogram(("a", "b"))),
        (IdentityToZero(7), identity(7)),
        (IdentityToZero(7), identity(None)),
        (NullToZero(), identity(None)),
        (NullToZero(), EMPTY),
    ],
)
def test_data_that_fit_change_nothing(was, seen):
    assert not was.is_superseded_by(seen)
    assert was.merged_with(seen, middle) is was


@pytest.mark.parametrize(
    ("was", "seen", "merged"),
    [
        (LINEAR, linear(-10, 50), linear(-10, 100)),
        (LINEAR, linear(50, 101), linear(0, 101)),
        (LINEAR, linear(-1, 101), linear(-1, 101)),
        (LINEAR, identity(101), linear(0, 101)),
        (LINEAR, identity(-1), linear(-1, 100)),
        (LINEAR, HASH, HASH),
        (
            LINEAR,
            LinearTransformation(1.0, 2.0, 1.5, DOUBLE),
            LinearTransformation(1.0, 2.0, 1.5, DOUBLE),
        ),
        (identity(7), identity(9), linear(7, 9)),
        (identity(9), identity(7), linear(7, 9)),
        (identity(None), identity(9), identity(9)),
        (identity(50), LINEAR, LINEAR),
        (identity(101), LINEAR, linear(0, 101)),
        (identity(None), LINEAR, LINEAR),
        (identity(7), TEXTS, TEXTS),
        (HASH, LINEAR, LINEAR),
        (
            QUANTILES,
            NumericQuantiles((0.0, 2.0), DOUBLE),
            NumericQuantiles((0.0, 2.0), DOUBLE),
        ),
        (TEXTS, StringQuantiles(("a", "c")), StringQuantiles(("a", "c"))),
        (TEXTS, HASH, HASH),
        (EMPTY, LINEAR, LINEAR),
        (IdentityToZero(7), identity(9), linear(7, 9)),
        (IdentityToZero(101), LINEAR, linear(0, 101)),
        (NullToZero(), identity(9), identity(9)),
        (NullToZero(), LINEAR, LINEAR),
        (StringHistogram(("a", "b")), TEXTS, TEXTS),
    ],
)
def test_data_that_do_not_fit_are_taken_in(was, seen, merged):
    assert was.is_superseded_by(seen)
    assert was.merged_with(seen, middle) == merged


@pytest.mark.parametrize(
    ("minimum", "maximum", "data_type", "expected"),
    [
        (0, 100, INTEGER, linear(0, 100)),
        (5, 5, INTEGER, identity(5)),
        (None, None, INTEGER, identity(None)),
        (5, None, INTEGER, identity(5)),
        (2**60, 2**60 + 1, LONG, identity(2**60, LONG)),
        (
            datetime.date(1970, 1, 1),
            datetime.date(1970, 1, 3),
            DataType.DATE,
            LinearTransformation(0, 172_800_000, 86_400_000, DataType.DATE),
        ),
        (
            Decimal("0.5"),
            Decimal("9.5"),
            DataType.DECIMAL,
            LinearTransformation(0.5, 9.5, 5.0, DataType.DECIMAL),
        ),
    ],
)
def test_transformation_of_a_range(minimum, maximum, data_type, expected):
    assert range_transformation(minimum, maximum, data_type, middle) == expected


# ------------------------------------------------------------------------------------ null values


@pytest.mark.parametrize(
    ("minimum", "maximum", "data_type"),
    [
        (0, 1, INTEGER),
        (-(2**31), 2**31 - 1, INTEGER),
        (-(2**63), 2**63 - 1, LONG),
        (-1.7e308, 1.7e308, DOUBLE),
        (0.0, 5e-324, DOUBLE),
        (float(np.float32(-3.4e38)), float(np.float32(3.4e38)), FLOAT),
        (float(np.float32(0.1)), float(np.nextafter(np.float32(0.1), np.float32(1))), FLOAT),
    ],
)
def test_null_values_are_of_the_type_and_in_the_range(minimum, maximum, data_type):
    for revision_id in range(1, 50):
        value = draw_null_value("c", revision_id, minimum, maximum, data_type)
        assert minimum <= value <= maximum
        assert isinstance(value, int) == data_type.is_whole
        if data_type is FLOAT:
            assert float(np.float32(value)) == value


def test_null_values_depend_on_where_they_are_used_and_on_nothing_else():
    def drawn(column, revision_id):
        return draw_null_value(column, revision_id, 0, 10**9, LONG)

    assert drawn("c", 1) == drawn("c", 1)
    assert len({drawn("c", 1), drawn("c", 2), drawn("d", 1), drawn("1:c", 1)}) == 4
    assert draw_hash_null_value("c", 1) == draw_hash_null_value("c", 1)
    drawn_hashes = {draw_hash_null_value("c", k) for k in range(100)}
    assert len(drawn_hashes) == 100
    assert all(-(2**31) <= value < 2**31 for value in drawn_hashes)
    # Any change here would change what a retried write stores.
    assert (drawn("c", 1), draw_hash_null_value("c", 1)) == (
        721343112,
        950661430,
    )
