"""Conditions given as text: their time is that of the operation, in each of its queries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from qbeast_core import QbeastTable, write_table
from qbeast_core.errors import InvalidOptions
from qbeast_core.jvm.settings import changed_settings
from qbeast_core.spark.conditions import parse_condition
from tests.support.delta_log import last_version


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


STAR = "concat_ws(' ', *) like '%parquet%'"
"""True of the path of each file, which a change adds to the rows while it looks for files."""


@pytest.mark.parametrize(
    "change",
    [
        lambda table, _: table.delete(STAR),
        lambda table, _: table.update({"name": "'?'"}, "coalesce(* except (id)) is null"),
        lambda table, _: table.update({"name": "concat_ws('|', *)"}),
        lambda table, rows: table.replace_where(rows, "hash(*) > 0"),
        lambda table, _: table.delete("hash(${all.columns}) != 0"),
        lambda table, rows: table.merge(rows, "id", where="hash(source.*) != hash(target.*)"),
        lambda table, rows: table.merge(rows, "id", update={"name": "to_json(struct(source.*))"}),
        lambda table, rows: table.merge(rows, "id", insert={"name": "to_json(struct(*))"}),
    ],
)
def test_a_star_is_refused_as_by_delta(
    spark: SparkSession, tmp_path: Path, change: Callable[[QbeastTable, DataFrame], object]
) -> None:
    path = str(tmp_path)
    rows = spark.sql("select 1L id, 'ann' name union all select 2L, null")
    write_table(rows, path=path, columns_to_index=["id"])
    with (
        changed_settings(spark, {"all.columns": "*"}),
        pytest.raises(InvalidOptions, match=r"has a star \(\*\)"),
    ):
        change(QbeastTable.for_path(spark, path), rows)
    with pytest.raises(AnalysisException, match="INVALID_USAGE_OF_STAR"):
        DeltaTable.forPath(spark, path).delete(STAR)
    assert last_version(tmp_path) == 0
    # `*` is allowed as multiplication and inside texts.
    assert QbeastTable.for_path(spark, path).delete("id * 2 = 4 or name = '*'").rows_deleted == 1


def test_columns_named_by_a_pattern_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    write_table(spark.range(2), path=str(tmp_path), columns_to_index=["id"])
    table = QbeastTable.for_path(spark, str(tmp_path))
    with (
        changed_settings(spark, {"spark.sql.parser.quotedRegexColumnNames": "true"}),
        pytest.raises(InvalidOptions, match="has a star"),
    ):
        table.delete("hash(`i.*`) != 0")
    assert table.delete("`id` = 1").rows_deleted == 1
