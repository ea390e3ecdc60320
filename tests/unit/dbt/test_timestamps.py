"""Moments that dbt fetches, and the types that hold one."""

import pytest
from dbt.adapters.qbeast.spark.timestamps import fetched_type, moment
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
    ("epoch_micros", "text"),
    [
        (0, "1970-01-01 00:00:00+00:00"),
        (-62135596800000000, "0001-01-01 00:00:00+00:00"),
        (253402300799999999, "9999-12-31 23:59:59.999999+00:00"),
    ],
)
def test_a_moment_is_exact(epoch_micros: int, text: str) -> None:
    assert str(moment(epoch_micros)) == text


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
