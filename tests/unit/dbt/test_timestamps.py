"""Moments with the offset of the session's time zone, and the types that hold one."""

from datetime import datetime, timedelta

import pytest
from dbt.adapters.qbeast.spark.timestamps import aware, fetched_type
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)


@pytest.mark.parametrize(
    ("local", "offset_seconds", "text"),
    [
        ("2024-07-01 12:00:00.123456", 7200, "2024-07-01 12:00:00.123456+02:00"),
        ("2024-11-03 01:30:00", -5 * 3600, "2024-11-03 01:30:00-05:00"),
        ("1900-01-01 00:00:00", 1172, "1900-01-01 00:00:00+00:19:32"),
        ("1969-12-31 23:59:59.999999", 0, "1969-12-31 23:59:59.999999+00:00"),
        ("0001-01-01 00:00:00", 3600, "0001-01-01 00:00:00+01:00"),
        ("9999-12-31 23:59:59.999999", -3600, "9999-12-31 23:59:59.999999-01:00"),
    ],
)
def test_a_moment_keeps_its_local_time_and_names_its_offset(
    local: str, offset_seconds: int, text: str
) -> None:
    told = datetime.fromisoformat(local)
    since_1970 = told - datetime(1970, 1, 1) - timedelta(seconds=offset_seconds)
    moment = aware(told, since_1970 // timedelta(microseconds=1))
    assert str(moment) == text
    assert moment.utcoffset() == timedelta(seconds=offset_seconds)


def test_timestamps_are_found_inside_other_types_and_the_rest_stays() -> None:
    given = (
        StructType()
        .add("x", ArrayType(TimestampType(), containsNull=False))
        .add("y", MapType(TimestampType(), StructType().add("z", TimestampType())))
        .add("n", TimestampNTZType(), nullable=False)
        .add("d", ArrayType(DateType()))
    )
    found = fetched_type(given)
    assert found == (
        StructType()
        .add("x", ArrayType(TimestampNTZType(), containsNull=False))
        .add("y", MapType(StringType(), StructType().add("z", TimestampNTZType())))
        .add("n", TimestampNTZType(), nullable=False)
        .add("d", ArrayType(DateType()))
    )


@pytest.mark.parametrize(
    "key", [StringType(), IntegerType(), LongType(), DoubleType(), BooleanType()]
)
def test_a_key_that_json_can_express_stays(key: DataType) -> None:
    given = MapType(key, MapType(key, DateType()))
    assert fetched_type(given) == given


@pytest.mark.parametrize(
    "key", [DateType(), DecimalType(9, 2), StructType(), ArrayType(LongType())]
)
def test_a_key_that_json_cannot_express_becomes_a_text(key: DataType) -> None:
    assert fetched_type(MapType(key, key)) == MapType(StringType(), key)
