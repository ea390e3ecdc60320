"""Operations that group rows need the keys of the groups, whatever the session's settings are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable, write_table
from qbeast_core.jvm.settings import changed_settings
from tests.support.invariants import assert_rows_in_their_cubes, assert_sound

COUNT = 30_000


@pytest.fixture
def without_keys(spark: SparkSession) -> Iterator[None]:
    """Spark's `groupBy` returns the aggregates alone."""
    with changed_settings(spark, {"spark.sql.retainGroupColumns": " FALSE"}):
        assert spark.range(3).groupBy("id").count().columns == ["count"]
        yield


@pytest.mark.usefixtures("without_keys")
def test_groups_have_their_keys(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    rows = spark.range(COUNT).selectExpr("id", "pmod(hash(id), 5) as kind", "id % 1000 as x")
    write_table(rows, path=path, columns_to_index=["id", "x"], cube_size=500)
    assert_rows_in_their_cubes(spark, path)
    table = QbeastTable.for_path(spark, path)
    estimated = table.estimate("count(*)", group_by="kind", tolerance=0.5)
    exact = table.estimate("count(*)", "id < 10", group_by="x", tolerance=0.5)
    assert sorted(group.group for group in estimated.groups) == [(kind,) for kind in range(5)]
    assert sorted(group.group for group in exact.groups) == [(x,) for x in range(10)]
    assert table.check().problems == ()
    assert table.delete("id between 10 and 19").rows_deleted == 10
    merged = table.merge(rows.where("id < 100").selectExpr("id", "kind", "-1L as x"), "id")
    assert (merged.rows_updated, merged.rows_inserted) == (90, 10)
    table.optimize()
    assert_sound(spark, path, range(COUNT))
