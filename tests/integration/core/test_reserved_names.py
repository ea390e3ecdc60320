"""Columns may have the names that Spark, Delta and this library use themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable, write_table
from tests.integration.core.brute_force import assert_sound, plain

NAMES = (
    "_metadata _change_type _commit_version _row_id _qbeast_weight _qbeast_file action before "
    "after updates moves times key0 block in_file low high first0 last0 path rows row file part "
    "cube source target value0 count min_weight max_weight weight depth outside"
).split()


@pytest.mark.parametrize("indexed", ["id", "_metadata,rows", "action,block"])
def test_every_operation_keeps_columns_of_such_names(
    spark: SparkSession, tmp_path: Path, indexed: str
) -> None:
    path, twin = str(tmp_path / "t"), str(tmp_path / "twin")
    columns = ["id", *(f"id % {i + 3} as {name}" for i, name in enumerate(NAMES))]

    def numbers(first: int, last: int) -> object:
        return spark.range(first, last).selectExpr(*columns)

    write_table(numbers(0, 200), path=path, columns_to_index=indexed, cube_size=20, sample_key="id")
    table = QbeastTable.for_path(spark, path)
    write_table(numbers(200, 260), path=path)
    table.merge(numbers(250, 270), on="id", where="target.rows = source.rows")
    table.update({"action": "action + 1", "_metadata": "before"}, "_metadata = 1")
    table.replace_matching(numbers(5, 9), on=["id", "block"])
    table.delete("rows = 2 and id < 20")
    table.optimize(revision_id="all")

    numbers(0, 270).write.format("delta").save(twin)
    spark.sql(
        f"update delta.`{twin}` set action = action + 1, _metadata = before where _metadata = 1"
    ).collect()
    spark.sql(f"delete from delta.`{twin}` where id between 5 and 8").collect()
    numbers(5, 9).write.format("delta").mode("append").save(twin)
    spark.sql(f"delete from delta.`{twin}` where rows = 2 and id < 20").collect()
    assert sorted(plain(spark, path).collect()) == sorted(plain(spark, twin).collect())
    now = QbeastTable.for_path(spark, path)
    assert now.check().ok
    half = plain(spark, twin).where(now.sample_condition(0.5))
    assert sorted(now.sample(0.5).collect()) == sorted(half.collect())
    assert_sound(spark, path)


def test_the_files_of_source_rows_may_be_kept(spark: SparkSession, tmp_path: Path) -> None:
    source, path = str(tmp_path / "source"), str(tmp_path / "t")
    spark.range(300).selectExpr("id", "id % 97 as a").repartition(3).write.parquet(source)
    rows = spark.read.parquet(source).selectExpr("*", "_metadata as _metadata")
    write_table(rows, path=path, columns_to_index="a", cube_size=50)
    write_table(rows, path=path)
    kept = QbeastTable.for_path(spark, path)
    assert kept.dataframe().select("_metadata.file_path").distinct().count() == 3
    assert kept.check().ok
    kept.delete("_metadata.file_size < 0 or id = 7")
    assert plain(spark, path).count() == 598


def test_a_change_feed_reserves_the_names_of_its_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, feed = str(tmp_path / "t"), {"delta.enableChangeDataFeed": "true"}
    rows = spark.range(5).selectExpr("id", "'x' as _change_type")
    with pytest.raises(Exception, match="ALREADY_CONTAINS_CDC_COLUMNS"):
        rows.write.format("delta").options(**feed).save(path)
    with pytest.raises(Exception, match="ALREADY_CONTAINS_CDC_COLUMNS"):
        write_table(rows, path=path, columns_to_index="id", properties=feed)
