"""What the statistics in the log say of a column."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from pyspark.sql.types import (
    BooleanType,
    DecimalType,
    StringType,
    StructField,
    StructType,
)

from qbeast_core.delta.stored_statistics import StoredColumn, file_extremes, stored_columns
from qbeast_core.model.datatypes import DataType
from qbeast_core.tree.extremes import Extremes

UTC = timezone.utc


@pytest.mark.parametrize(
    ("data_type", "low", "high", "expected"),
    [
        (DataType.INTEGER, "-5", "7", (-5, 7)),
        (DataType.DOUBLE, "-0.5", '"NaN"', (-0.5, float("inf"))),
        (DataType.FLOAT, "100.2", "100.4", (float(np.float32(100.2)), float(np.float32(100.4)))),
        (DataType.DECIMAL, "0.10", "12345678901234567890.12", None),
        (DataType.DATE, '"2024-01-31"', '"2024-02-01"', (date(2024, 1, 31), date(2024, 2, 1))),
        (
            DataType.TIMESTAMP,
            '"2024-01-31T00:00:00.000Z"',
            '"2024-01-31T02:00:00.999+02:00"',
            # Delta stores the largest one rounded down to milliseconds.
            (datetime(2024, 1, 31, tzinfo=UTC), datetime(2024, 1, 31, 0, 0, 1, tzinfo=UTC)),
        ),
        (DataType.STRING, '"a"', '"b\ufffd"', ("a", "b\ufffd")),
    ],
)
def test_statistics_are_read_as_delta_means_them(
    data_type: DataType, low: str, high: str, expected: tuple[Any, Any] | None
) -> None:
    stats = f'{{"numRecords":3,"minValues":{{"p":{low}}},"maxValues":{{"p":{high}}}}}'
    (found,) = file_extremes(stats, {"a": StoredColumn("p", data_type)}).values()
    wanted = expected or (Decimal(low), Decimal(high))
    assert (found.minimum, found.maximum, found.only_nulls) == (*wanted, False)


@pytest.mark.parametrize(
    ("stored", "instant"),
    [
        # Berlin at +00:53:28, New York at -04:56:02, Accra at -00:00:52, Monrovia at -00:44:30
        ("1800-01-01T00:00:00.000+00:53", datetime(1799, 12, 31, 23, 6, 32, tzinfo=UTC)),
        ("1800-01-01T00:00:00.000-04:56", datetime(1800, 1, 1, 4, 56, 2, tzinfo=UTC)),
        ("1800-01-01T00:00:00.000Z", datetime(1800, 1, 1, 0, 0, 52, tzinfo=UTC)),
        ("1972-01-01T00:00:00.000-00:44", datetime(1972, 1, 1, 0, 44, 30, tzinfo=UTC)),
    ],
)
def test_a_time_with_an_offset_in_seconds_is_inside(stored: str, instant: datetime) -> None:
    """Delta's text has the offset without its seconds."""
    stats = f'{{"minValues":{{"a":"{stored}"}},"maxValues":{{"a":"{stored}"}}}}'
    (found,) = file_extremes(stats, {"a": StoredColumn("a", DataType.TIMESTAMP)}).values()
    assert found.minimum <= instant <= found.maximum
    assert found.maximum - found.minimum < timedelta(minutes=3)


def test_a_file_of_nulls_is_distinguished_from_one_without_statistics() -> None:
    nulls = '{"numRecords":3,"minValues":{},"maxValues":{},"nullCount":{"a":3}}'
    some = '{"numRecords":3,"nullCount":{"a":2}}'
    for stats, only_nulls in ((nulls, True), (some, False), ("", False)):
        found = file_extremes(stats, {"a": StoredColumn("a", DataType.LONG)})
        assert found == {"a": Extremes(only_nulls=only_nulls)}


def test_statistics_that_cannot_be_read_say_nothing() -> None:
    stats = '{"numRecords":3,"minValues":{"a":"x"},"maxValues":{"a":"2024-01-31T00:00:00"}}'
    found = file_extremes(stats, {"a": StoredColumn("a", DataType.TIMESTAMP)})
    assert found == {"a": Extremes()}


def test_a_column_without_nulls_is_known() -> None:
    stats = '{"numRecords":3,"minValues":{"a":1},"maxValues":{"a":2},"nullCount":{"a":0}}'
    found = file_extremes(stats, {"a": StoredColumn("a", DataType.LONG)})
    assert found == {"a": Extremes(1, 2, no_nulls=True)}


def test_a_minimum_that_ends_with_replaced_bytes_says_nothing() -> None:
    """Only a maximum can be a text that Delta shortened."""
    stats = '{"minValues":{"a":"b\ufffd"},"maxValues":{"a":"c\ufffd"}}'
    found = file_extremes(stats, {"a": StoredColumn("a", DataType.STRING)})
    assert found == {"a": Extremes(None, "c\ufffd")}


def test_a_number_of_32_bits_in_a_column_widened_to_double_is_inside() -> None:
    stats = '{"minValues":{"a":0.1},"maxValues":{"a":0.3}}'
    (found,) = file_extremes(stats, {"a": StoredColumn("a", DataType.DOUBLE)}).values()
    for number in (0.1, 0.3):
        assert found.minimum <= float(np.float32(number)) <= found.maximum
        assert found.minimum <= number <= found.maximum


@pytest.mark.parametrize(
    ("data_type", "stored"),
    [
        (DataType.STRING, '"a\ufffdb"'),
        (DataType.STRING, "1"),
        (DataType.LONG, "1.5"),
        (DataType.LONG, '"1"'),
        (DataType.LONG, "true"),
        (DataType.DOUBLE, "[]"),
        (DataType.DATE, '"+12024-01-31"'),
        (DataType.DATE, "5"),
        (DataType.TIMESTAMP, '"9999-12-31T23:59:59.999Z"'),
    ],
)
def test_a_value_of_another_kind_says_nothing(data_type: DataType, stored: str) -> None:
    stats = f'{{"minValues":{{"a":{stored}}},"maxValues":{{"a":{stored}}}}}'
    assert file_extremes(stats, {"a": StoredColumn("a", data_type)}) == {"a": Extremes()}


def test_columns_have_the_name_that_files_have_for_them() -> None:
    schema = StructType(
        [
            StructField("a", DecimalType(5, 2), metadata={"delta.columnMapping.physicalName": "p"}),
            StructField("b", StringType()),
            StructField("c", BooleanType()),
            StructField("d", StringType()),
        ]
    )
    assert stored_columns(schema, ["a", "b", "c", "x"]) == {
        "a": StoredColumn("p", DataType.DECIMAL),
        "b": StoredColumn("b", DataType.STRING),
    }
