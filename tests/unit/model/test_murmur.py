"""Both hashes as the JVM computes them (docs/format.md 4.4 and 5.1)."""

import datetime
import math
from decimal import Decimal

import numpy as np
import pytest

from qbeast_core.model.murmur import scala_bytes_hash, spark_hash
from tests.unit.model.reference_vectors import VECTORS, python_value, sidecars, spark_types

UTC = datetime.timezone.utc
CASES = {
    "(1,'a') int,string": [(1, "int"), ("a", "string")],
    "(1L,'a')": [(1, "bigint"), ("a", "string")],
    "('a',1)": [("a", "string"), (1, "int")],
    "(null int,null string)": [(None, "int"), (None, "string")],
    "(null,'a')": [(None, "int"), ("a", "string")],
    "(1,null)": [(1, "int"), (None, "string")],
    "int 0": [(0, "int")],
    "int 1": [(1, "int")],
    "int -1": [(-1, "int")],
    "int 2147483647": [(2147483647, "int")],
    "bigint 1": [(1, "bigint")],
    "bigint -5": [(-5, "bigint")],
    "bigint 1234567890123": [(1234567890123, "bigint")],
    "float 1.5": [(1.5, "float")],
    "float -0.0": [(-0.0, "float")],
    "float 0.0": [(0.0, "float")],
    "double 1.5": [(1.5, "double")],
    "double 0.0": [(0.0, "double")],
    "double -0.0": [(-0.0, "double")],
    "double NaN": [(math.nan, "double")],
    "decimal(12,2) 12.34": [(Decimal("12.34"), "decimal(12,2)")],
    "decimal(12,2) -0.01": [(Decimal("-0.01"), "decimal(12,2)")],
    "decimal(38,2) 12.34": [(Decimal("12.34"), "decimal(38,2)")],
    "decimal(38,0) 12345678901234567890": [(Decimal("12345678901234567890"), "decimal(38,0)")],
    "date 2020-01-01": [(datetime.date(2020, 1, 1), "date")],
    "timestamp 2020-01-01 00:00:00.123456 UTC": [
        (datetime.datetime(2020, 1, 1, microsecond=123456, tzinfo=UTC), "timestamp")
    ],
    "string ''": [("", "string")],
    "string abc": [("abc", "string")],
    "string abcd": [("abcd", "string")],
    "string abcde": [("abcde", "string")],
    "string névé-é": [("névé-é", "string")],
    "boolean true": [(True, "boolean")],
}


def test_every_hash_of_the_reference_is_tested():
    assert CASES.keys() == VECTORS["hash_spark_murmur3_seed42"].keys()


@pytest.mark.parametrize("name", CASES)
def test_spark_hashes_equal_those_of_the_jvm(name):
    assert spark_hash(CASES[name]) == VECTORS["hash_spark_murmur3_seed42"][name]


@pytest.mark.parametrize(
    ("name", "revision"),
    [(name, key) for name, table in sidecars().items() for key in table.get("vectors", {})],
)
def test_weights_of_reference_rows(name, revision):
    table = sidecars()[name]
    types = spark_types(table)
    transformers = table["revisions"][revision]["columnTransformers"]
    columns = [transformer["columnName"] for transformer in transformers]
    for row in table["vectors"][revision]:
        values = [
            (python_value(value, types[column]), types[column])
            for value, column in zip(row["values"], columns, strict=True)
        ]
        assert spark_hash(values) == row["weight"]


def test_days_and_microseconds_stand_for_dates_and_timestamps():
    day, instant = datetime.date(1969, 12, 30), datetime.datetime(1969, 12, 30, 1, tzinfo=UTC)
    assert spark_hash([(day, "date")]) == spark_hash([(-2, "date")])
    micros = -2 * 86_400_000_000 + 3_600_000_000
    assert spark_hash([(instant, "timestamp")]) == spark_hash([(micros, "timestamp")])


def test_floats_hash_with_one_nan_and_one_zero():
    nan_with_payload = np.array([0xFFC00001], dtype=np.uint32).view(np.float32)[0]
    assert spark_hash([(nan_with_payload, "float")]) == spark_hash([(math.nan, "float")])
    assert spark_hash([(-0.0, "double")]) == spark_hash([(0.0, "double")])


@pytest.mark.parametrize(
    ("value", "spark_type"),
    [
        (2**31, "int"),
        (2**63, "bigint"),
        ("a", "int"),
        (1, "string"),
        ("a", "double"),
        (Decimal("0.001"), "decimal(12,2)"),
        (Decimal("NaN"), "decimal(12,2)"),
        (Decimal(10) ** 20, "decimal(12,2)"),
        ("12.34", "decimal(12,2)"),
        (datetime.datetime(2020, 1, 1), "timestamp"),
        (1, "map<int,int>"),
        (1, "timestamp_ntz"),
    ],
)
def test_values_that_are_not_of_the_type_are_refused(value, spark_type):
    with pytest.raises(ValueError, match=r"type|digits"):
        spark_hash([(value, spark_type)])


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"", -1579025880), (b"a", -185275570), (b"abc", 407458283), (b"abcd", -1200447635)],
)
def test_scala_hashes_equal_those_of_the_jvm(data, expected):
    assert scala_bytes_hash(data) == expected
