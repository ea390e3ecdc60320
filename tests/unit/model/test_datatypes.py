"""Column types and their values as numbers (docs/format.md 4.1)."""

import datetime
import math
from decimal import Decimal

import numpy as np
import pytest

from qbeast_core.errors import CorruptMetadata, UnsupportedColumnType
from qbeast_core.model.datatypes import DataType, to_bound, to_ordinate

UTC = datetime.timezone.utc


@pytest.mark.parametrize(
    ("spark_type", "data_type"),
    [
        ("tinyint", DataType.INTEGER),
        ("smallint", DataType.INTEGER),
        ("int", DataType.INTEGER),
        ("bigint", DataType.LONG),
        ("float", DataType.FLOAT),
        ("double", DataType.DOUBLE),
        ("decimal(12,2)", DataType.DECIMAL),
        ("decimal(38,18)", DataType.DECIMAL),
        ("timestamp", DataType.TIMESTAMP),
        ("date", DataType.DATE),
        ("string", DataType.STRING),
    ],
)
def test_types_that_can_be_indexed(spark_type, data_type):
    assert DataType.of_spark(spark_type) is data_type
    assert DataType.of_name(data_type.value) is data_type


@pytest.mark.parametrize(
    "spark_type",
    [
        *("boolean", "timestamp_ntz", "binary", "variant", "void"),
        *("array<int>", "map<int,int>", "struct<a:int>"),
    ],
)
def test_other_types_are_refused_with_the_list(spark_type):
    with pytest.raises(UnsupportedColumnType, match=r"tinyint, .* string") as refused:
        DataType.of_spark(spark_type)
    assert spark_type in str(refused.value)


@pytest.mark.parametrize("name", ["ShortDataType", "integer", None, 3])
def test_unknown_stored_names_are_corrupt(name):
    with pytest.raises(CorruptMetadata, match="data type"):
        DataType.of_name(name)


@pytest.mark.parametrize(
    ("value", "data_type", "ordinate"),
    [
        (None, DataType.INTEGER, None),
        (7, DataType.INTEGER, 7.0),
        (2**63 - 1, DataType.LONG, 9.223372036854775807e18),
        (np.float32(0.1), DataType.FLOAT, 0.10000000149011612),
        (Decimal("12.34"), DataType.DECIMAL, 12.34),
        (datetime.date(1970, 1, 2), DataType.DATE, 86_400_000.0),
        (datetime.date(1969, 12, 31), DataType.DATE, -86_400_000.0),
        (datetime.datetime(1970, 1, 1, microsecond=1999, tzinfo=UTC), DataType.TIMESTAMP, 1.0),
        (
            datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
            DataType.TIMESTAMP,
            -1.0,  # floored, not cut off
        ),
        (
            datetime.datetime(1970, 1, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
            DataType.TIMESTAMP,
            0.0,
        ),
    ],
)
def test_ordinates(value, data_type, ordinate):
    assert to_ordinate(value, data_type) == ordinate


@pytest.mark.parametrize(
    ("value", "data_type"),
    [
        ("7", DataType.INTEGER),
        ("a", DataType.STRING),
        pytest.param(10**400, DataType.DOUBLE, id="huge"),
        ("2020-01-01", DataType.DATE),
        (datetime.datetime(2020, 1, 1), DataType.TIMESTAMP),
    ],
)
def test_values_without_an_ordinate_are_refused(value, data_type):
    with pytest.raises(ValueError, match=r"value|date|zone|large"):
        to_ordinate(value, data_type)


def test_bounds_have_the_stored_form():
    assert repr(to_bound(7, DataType.LONG)) == "7"
    assert repr(to_bound(7.0, DataType.INTEGER)) == "7"
    assert repr(to_bound(7, DataType.DOUBLE)) == "7.0"
    assert repr(to_bound(Decimal("7.76"), DataType.DECIMAL)) == "7.76"
    assert to_bound(0.1, DataType.FLOAT) == float(np.float32(0.1))
    assert repr(to_bound(2**62 + 1, DataType.LONG)) == str(2**62 + 1)
    assert repr(to_bound(datetime.date(2020, 1, 1), DataType.DATE)) == "1577836800000"


@pytest.mark.parametrize("value", [math.nan, math.inf, None, 1.5])
def test_bounds_of_integers_are_finite_and_whole(value):
    with pytest.raises(ValueError, match=r"bound|integer"):
        to_bound(value, DataType.INTEGER)
