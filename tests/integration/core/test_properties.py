"""Table properties mean what they mean to Delta, however they are spelled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable, write_table
from qbeast_core.errors import InvalidOptions
from tests.support.delta_log import configuration, last_version, plain
from tests.support.invariants import assert_sound


@pytest.mark.parametrize(
    "feed",
    [
        {"delta.ENABLEchangeDataFeed": "TRUE"},
        # The name that it had in early releases.
        {"delta.enableChangeDataCapture": "true"},
    ],
    ids=lambda feed: next(iter(feed)),
)
def test_a_change_feed_is_kept(spark: SparkSession, tmp_path: Path, feed: dict[str, str]) -> None:
    path = str(tmp_path)
    write_table(spark.range(100), path=path, columns_to_index="id", properties=feed)
    QbeastTable.for_path(spark, path).delete("id >= 90")
    read = spark.read.format("delta").option("readChangeFeed", True)
    changes = read.option("startingVersion", 1).load(path).groupBy("_change_type").count()
    assert [tuple(change) for change in changes.collect()] == [("delete", 10)]
    assert_sound(spark, path, range(90), fractions=[0.5])


def test_columns_are_mapped(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    rows = spark.range(100).selectExpr("id", "id * 2 as b")
    mapped = {"delta.COLUMNMAPPING.mode": "NAME"}
    write_table(rows, path=path, columns_to_index="id", properties=mapped)
    assert configuration(path)["delta.columnMapping.mode"] == "NAME"
    files = plain(spark, path).inputFiles()
    QbeastTable.for_path(spark, path).drop_columns("b")
    # Delta takes a mapped column out of the schema, without rewriting a file.
    assert plain(spark, path).inputFiles() == files
    assert plain(spark, path).columns == ["id"]


@pytest.mark.parametrize(
    "properties",
    [
        {"delta.noSuchProperty": "1"},
        {"delta.enableChangeDataFeed": " true "},
        # Delta finds these out by the columns of the table.
        {"delta.dataSkippingStatsColumns": "nope"},
        {"delta.dataSkippingStatsColumns": "m"},
    ],
    ids=lambda properties: next(iter(properties)),
)
def test_what_delta_does_not_take_is_refused(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str]
) -> None:
    with pytest.raises(InvalidOptions, match="Delta does not accept"):
        write_table(
            spark.range(10).selectExpr("id", "map('k', id) as m"),
            path=str(tmp_path / "t"),
            columns_to_index="id",
            properties=properties,
        )
    assert last_version(tmp_path / "t") == -1


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"qbeast.sampleKey": '["a"]'}, "may not set 'qbeast.sampleKey'.*sample_key"),
        ({"qbeast.revision.1": "{}"}, "may not set 'qbeast.revision.1'"),
        ({"columnsToIndex": "id"}, "may not set 'columnsToIndex'.*leave out"),
        ({"team": None}, "'team' to None; use a string, a number or a boolean"),
        ({1: "x"}, "the name 1, which is not a string"),
        ([("team", "us")], "must map names to values"),
    ],
    ids=str,
)
def test_properties_of_an_index_and_odd_ones_are_refused(
    spark: SparkSession, tmp_path: Path, properties: Any, words: str
) -> None:
    path = tmp_path / "t"
    with pytest.raises(InvalidOptions, match=words):
        write_table(spark.range(10), path=path, columns_to_index="id", properties=properties)
    assert last_version(path) == -1


def test_numbers_and_booleans_are_properties(spark: SparkSession, tmp_path: Path) -> None:
    given = {"delta.appendOnly": True, "delta.checkpointInterval": 7, "ratio": np.float64(0.5)}
    write_table(spark.range(10), path=tmp_path, columns_to_index="id", properties=given)
    stored = configuration(tmp_path)
    assert [stored[name] for name in given] == ["true", "7", "0.5"]


def test_no_commit_with_rows_maps_columns_or_drops_one_while_there_is_a_change_feed(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, plain_path = str(tmp_path / "t"), str(tmp_path / "plain")
    rows = spark.range(10).selectExpr("id", "id as b")
    mapped, fed = {"delta.columnMapping.mode": "name"}, {"delta.enableChangeDataFeed": "true"}
    words = "change data feed is on.*ALTER TABLE"
    with pytest.raises(Exception, match="DELTA_BLOCK_COLUMN_MAPPING_AND_CDC_OPERATION"):
        rows.write.format("delta").options(**mapped, **fed).save(plain_path)
    with pytest.raises(InvalidOptions, match=words):
        write_table(rows, path=path, columns_to_index="id", properties=mapped | fed)
    assert last_version(path) == -1
    # As the message says.
    for place in (path, plain_path):
        if place == path:
            write_table(rows, path=path, columns_to_index="id", properties=mapped)
        else:
            rows.write.format("delta").options(**mapped).save(plain_path)
        feed = "set tblproperties ('delta.enableChangeDataFeed' = 'true')"
        spark.sql(f"alter table delta.`{place}` {feed}").collect()
    other = rows.selectExpr("id", "b as c")
    with pytest.raises(Exception, match="DELTA_BLOCK_COLUMN_MAPPING_AND_CDC_OPERATION"):
        other.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(
            plain_path
        )
    with pytest.raises(InvalidOptions, match=words):
        write_table(other, path=path, mode="overwrite")
    assert last_version(path) == 1
    more = rows.selectExpr("id", "b", "id as c")
    more.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(plain_path)
    write_table(more, path=path, mode="overwrite")
    QbeastTable.for_path(spark, path).update({"c": "0"}, "id = 3")
    assert_sound(spark, path, range(10), fractions=[0.5])
    assert plain(spark, path).columns == plain(spark, plain_path).columns == ["id", "b", "c"]


def test_names_of_fields_that_delta_does_not_take_are_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.range(10).selectExpr("id", "named_struct('a b', id) as s")
    with pytest.raises(InvalidOptions, match="INVALID_CHARACTERS_IN_COLUMN_NAMES"):
        write_table(rows, path=str(tmp_path), columns_to_index="id")


def test_only_a_write_that_sets_properties_looks_at_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, wrong = str(tmp_path), {"delta.noSuchProperty": "1"}
    write_table(spark.range(10), path=path, columns_to_index="id")
    assert write_table(spark.range(10, 20), path=path, properties=wrong).version == 1
    assert write_table(spark.range(5), path=path, mode="ignore", properties=wrong).version == 1
    with pytest.raises(InvalidOptions, match="noSuchProperty"):
        write_table(spark.range(5), path=path, mode="overwrite", properties=wrong)
    assert_sound(spark, path, range(20), fractions=[0.5])
