"""Conditions given as text: their time is that of the operation, in each of its queries."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from qbeast_core.spark.conditions import parse_condition


@pytest.mark.parametrize(
    "condition",
    [
        "at < now()",
        "at < 'now'",
        "at < cast(' NOW ' as timestamp)",
        "at < to_timestamp('now')",
        "at < timestamp 'now'",
        "at < timestamp_ltz'now'",
        "at between 'yesterday' and 'now'",
        "at + interval 1 day between timestamp'2020-01-01' and now()",
        "nullif(at, now()) is null",
    ],
)
def test_a_condition_has_one_time(spark: SparkSession, condition: str) -> None:
    rows = spark.range(1).selectExpr("timestamp_seconds(id) as at")
    parsed = parse_condition(rows, condition, "where")
    first, second = (rows.select(parsed.column).columns for _ in range(2))
    assert first == second
    assert "now" not in first[0].lower()
