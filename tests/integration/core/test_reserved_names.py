"""Columns may have the names that Spark, Delta and this library use themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable, write_table
from tests.support.delta_log import actions, plain
from tests.support.invariants import assert_sound

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


@pytest.mark.parametrize("kind", ["hidden in the source", "text"])
def test_a_column_may_be_called_metadata(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    source, path, twin = (str(tmp_path / name) for name in ("source", "t", "twin"))
    rows = spark.range(0, 300, 1, 3).selectExpr("id", "id % 97 as a")
    given = rows.selectExpr("*", "concat('x', id) as _metadata")
    if kind != "text":
        rows.write.parquet(source)
        given = spark.read.parquet(source).select("*", "_metadata")
    write_table(given, path=path, columns_to_index="a", cube_size=50)
    given.write.format("delta").save(twin)
    write_table(given, path=path)
    given.write.format("delta").mode("append").save(twin)
    table, text = QbeastTable.for_path(spark, path), "_metadata"
    if kind != "text":
        text = "_metadata.file_path"
    assert table.delete(f"{text} is null or id = 7").rows_deleted == 2
    spark.sql(f"delete from delta.`{twin}` where id = 7").collect()

    ours, theirs = plain(spark, path), plain(spark, twin)
    assert ours.columns == theirs.columns == ["id", "a", "_metadata"]
    assert [field.metadata for field in ours.schema] == [{}] * 3
    stored = json.loads(actions(path, 0, "metaData")[0]["schemaString"])
    assert [field["metadata"] for field in stored["fields"]] == [{}] * 3
    assert sorted(ours.selectExpr("id", text).collect()) == sorted(
        theirs.selectExpr("id", text).collect()
    )
    assert QbeastTable.for_path(spark, path).check().ok


def test_a_change_feed_reserves_the_names_of_its_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, feed = str(tmp_path / "t"), {"delta.enableChangeDataFeed": "true"}
    rows = spark.range(5).selectExpr("id", "'x' as _change_type")
    with pytest.raises(Exception, match="ALREADY_CONTAINS_CDC_COLUMNS"):
        rows.write.format("delta").options(**feed).save(path)
    with pytest.raises(Exception, match="ALREADY_CONTAINS_CDC_COLUMNS"):
        write_table(rows, path=path, columns_to_index="id", properties=feed)
