"""Exactly the rows below the limit are in a sample, from files of our own and of others."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from qbeast_core import QbeastTable, write_table
from qbeast_core.model.weight import fraction_of_weight, weight_of_fraction
from tests.integration.core.merge_tables import rows
from tests.support.delta_log import plain


def test_a_row_at_the_limit_is_not_in_the_sample(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    write_table(rows(spark, 0, 200), path=path, columns_to_index=["a", "b"], cube_size=30)
    rows(spark, 200, 20).write.format("delta").mode("append").save(path)
    table = QbeastTable.for_path(spark, path)
    read = plain(spark, path).selectExpr("id", "hash(a, b) as weight", "a < 400 as few").collect()
    limit = next(
        row.weight
        for row in sorted(read, key=lambda row: row.weight)[60:]
        if weight_of_fraction(fraction_of_weight(row.weight)) == row.weight
    )
    fraction = fraction_of_weight(limit)
    expected = sorted(row.id for row in read if row.weight < limit)
    assert 60 <= len(expected) < 220

    by_condition = plain(spark, path).where(table.sample_condition(fraction)).select("id")
    assert sorted(row.id for row in by_condition.collect()) == expected
    assert sorted(row.id for row in table.sample(fraction).select("id").collect()) == expected
    few = sorted(row.id for row in read if row.weight < limit and row.few)
    assert sorted(row.id for row in table.sample(fraction, "a < 400").collect()) == few
