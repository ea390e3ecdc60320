"""New, replaced and appended tables: their location, what they keep, the result of a write."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qbeast_core import QbeastTable, write_table
from qbeast_core.errors import (
    IncompatibleTable,
    IndexMismatch,
    InvalidOptions,
    NotAQbeastTable,
)
from qbeast_core.options import WriteMode
from qbeast_core.write import read_back as contents
from tests.support.delta_log import actions, configuration, last_version, live_adds, plain
from tests.support.invariants import assert_rows_in_their_cubes, assert_sound

pytestmark = pytest.mark.usefixtures("as_for_large_data")

_numbers = itertools.count()


@pytest.fixture
def name() -> str:
    """A table name that no other test has."""
    return f"default.written_{next(_numbers)}"


def events(spark: SparkSession, rows: int = 2000, first: int = 0) -> DataFrame:
    return spark.range(first, first + rows, 1, 2).selectExpr(
        "id", "id * 7919 % 2003 as a", "id * 104729 % 4001 / 4.0D as b", "'row ' || id as label"
    )


def test_a_new_table_by_path_is_one_commit_whose_result_is_true(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    result = write_table(
        events(spark), path=str(path), columns_to_index=["a", "b"], cube_size=200, user_metadata="m"
    )
    assert last_version(path) == result.version == 0
    adds = live_adds(path).values()
    assert result.rows == 2000
    assert result.files == len(adds) > 5
    assert result.bytes == sum(add["size"] for add in adds)
    assert (result.revision_id, result.new_revision) == (1, True)
    assert result.mode is WriteMode.OVERWRITE
    assert result.seconds > 0
    blocks = QbeastTable.for_path(spark, str(path)).blocks()
    assert result.cubes == blocks.where("elementCount > 0").select("cubeId").distinct().count()
    assert actions(path, 0, "commitInfo")[0]["userMetadata"] == "m"
    assert_sound(spark, path, range(2000), where="a < 500 and b > 300")
    assert_rows_in_their_cubes(spark, path)


def test_a_named_table_is_managed_and_everyone_finds_it(spark: SparkSession, name: str) -> None:
    result = write_table(
        events(spark), table=name, columns_to_index="a,b", cube_size=200, comment="it's ours"
    )
    assert result.version == 0
    described = {row.col_name: row.data_type for row in describe(spark, name)}
    assert described["Type"] == "MANAGED"
    assert described["Comment"] == "it's ours"
    assert described["Provider"] == "delta"
    assert spark.table(name).count() == 2000
    assert (
        spark.sql(f"select max(a) from {name} where label = 'row 5'").head()[0] == 5 * 7919 % 2003
    )
    table = QbeastTable.for_name(spark, name)
    location = table._table.snapshot.location
    assert_sound(spark, location.removeprefix("file:"), range(2000))
    spark.sql(f"drop table {name}")
    assert not Path(location.removeprefix("file:")).exists()


def describe(spark: SparkSession, name: str) -> list:
    return spark.sql(f"describe table extended {name}").collect()


def test_a_table_with_a_location_is_external(
    spark: SparkSession, name: str, tmp_path: Path
) -> None:
    place = tmp_path / "with space" / "t"
    write_table(events(spark), table=name, location=str(place), columns_to_index=["a"])
    assert {row.data_type for row in describe(spark, name) if row.col_name == "Type"} == {
        "EXTERNAL"
    }
    spark.sql(f"drop table {name}")
    assert_sound(spark, place, range(2000))


def test_an_append_by_name_writes_to_the_tables_location(
    spark: SparkSession, name: str, tmp_path: Path
) -> None:
    place = tmp_path / "t"
    write_table(events(spark), table=name, location=str(place), columns_to_index=["a", "b"])
    result = write_table(events(spark, 500, 2000), table=name, columns_to_index=["a", "b"])
    assert (result.version, result.mode, result.rows) == (1, WriteMode.APPEND, 500)
    assert spark.table(name).count() == 2500
    assert_sound(spark, place, range(2500))


@pytest.mark.parametrize("mode", ["error", "ignore"])
def test_a_renamed_table_is_not_replaced_by_a_new_one_of_its_old_name(
    spark: SparkSession, name: str, tmp_path: Path, mode: str
) -> None:
    place = str(tmp_path / "t")
    write_table(events(spark, 100), table=name, location=place, columns_to_index=["a"])
    write_table(events(spark, 100, 100), table=name)
    spark.sql(f"alter table {name} rename to {name}_renamed")
    with pytest.raises(IncompatibleTable, match=r"already holds rows.*was renamed or dropped"):
        write_table(events(spark, 5), table=name, location=place, mode=mode, columns_to_index=["a"])
    assert spark.table(f"{name}_renamed").count() == 200
    spark.sql(f"drop table {name}_renamed")


def test_a_name_in_backticks_is_one_table(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("create schema `select`")
    name = "`select`.`t_1`"
    write_table(events(spark, 100), table=name, columns_to_index=["a"])
    assert QbeastTable.is_qbeast(spark, name)
    assert QbeastTable.for_name(spark, name).sample(1.0).count() == 100
    spark.sql("drop schema `select` cascade")


def test_overwrite_replaces_rows_schema_and_index_and_keeps_history(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    write_table(events(spark), path=path, columns_to_index=["a", "b"], cube_size=300)
    write_table(events(spark, 10, 5000), path=path)
    other = spark.range(50).selectExpr("id", "id % 7 as k", "current_date() as day")
    result = write_table(
        other, path=path, mode="overwrite", columns_to_index=["k", "day"], cube_size=10
    )
    assert (result.version, result.revision_id, result.mode) == (2, 1, WriteMode.OVERWRITE)
    table = assert_sound(spark, path, range(50))
    assert (table.columns_to_index, table.cube_size, table.revision_ids) == (
        ["k", "day"],
        10,
        [0, 1],
    )
    assert plain(spark, path).columns == ["id", "k", "day"]
    assert spark.read.format("delta").option("versionAsOf", 0).load(path).count() == 2000
    removed = actions(path, 2, "remove")
    assert len(removed) > 2 and all(each["dataChange"] for each in removed)
    assert len({fields["id"] for v in (0, 2) for fields in actions(path, v, "metaData")}) == 1


def test_overwrite_without_columns_keeps_those_of_the_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    write_table(events(spark), path=path, columns_to_index="label,a:hash", cube_size=300)
    write_table(events(spark, 100), path=path, mode="overwrite")
    table = assert_sound(spark, path, range(100))
    assert [transformer.kind for transformer in table.latest_revision.transformers] == [
        "hashing",
        "hashing",
    ]
    assert configuration(path)["columnsToIndex"] == "label:hashing,a:hashing"


def test_properties_and_comment_are_kept_by_a_rebuild_and_replaced_when_given(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    options = {"path": path, "columns_to_index": ["a"], "mode": "overwrite"}
    first = {"team": "o'brien", "x": "1"}
    write_table(events(spark), properties=first, comment="it's ours", **options)
    write_table(events(spark), **options)
    assert {k: configuration(path).get(k) for k in ("team", "x")} == {"team": "o'brien", "x": "1"}
    assert actions(path, 1, "metaData")[0]["description"] == "it's ours"
    write_table(events(spark), properties={"x": "2"}, comment="", **options)
    assert {k: configuration(path).get(k) for k in ("team", "x")} == {"team": None, "x": "2"}
    assert "description" not in actions(path, 2, "metaData")[0]
    assert "qbeast.revision.1" in configuration(path)


def test_every_write_is_one_commit(spark: SparkSession, name: str) -> None:
    versions = [
        write_table(events(spark, 100), table=name, columns_to_index=["a"]).version,
        write_table(events(spark, 100, 100), table=name).version,
        write_table(events(spark, 100, 9000), table=name).version,
        write_table(events(spark, 100), table=name, mode="overwrite").version,
    ]
    assert versions == [0, 1, 2, 3]


def test_mode_error_refuses_and_mode_ignore_leaves_an_existing_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    options = {"path": path, "columns_to_index": ["a"]}
    assert write_table(events(spark, 10), mode="error", **options).rows == 10
    with pytest.raises(InvalidOptions, match="exists"):
        write_table(events(spark, 10), mode="error", **options)
    ignored = write_table(events(spark, 10), mode="ignore", **options)
    assert (ignored.rows, ignored.files, ignored.version) == (0, 0, 0)
    assert last_version(path) == 0


def test_append_to_a_delta_table_without_index_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    events(spark, 10).write.format("delta").save(path)
    with pytest.raises(NotAQbeastTable, match="overwrite"):
        write_table(events(spark, 10), path=path, columns_to_index=["a"])
    assert last_version(path) == 0
    assert write_table(events(spark, 10), path=path, mode="overwrite", columns_to_index=["a"])
    assert_sound(spark, path, range(10))


def test_a_partitioned_table_is_refused_for_append(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    write_table(events(spark, 10), path=path, columns_to_index=["a"])
    parted = events(spark, 10).selectExpr("id", "a", "b", "label")
    parted.write.format("delta").mode("overwrite").option("overwriteSchema", True).partitionBy(
        "label"
    ).save(path)
    if "qbeast.lastRevisionID" not in configuration(path):
        pytest.skip("Delta dropped the configuration on overwrite")
    before = last_version(path)
    with pytest.raises(IncompatibleTable, match="partition"):
        write_table(events(spark, 10), path=path)
    assert last_version(path) == before


@pytest.mark.parametrize("asked", [["b", "a"], ["a"], ["a", "b", "label"], ["a", "label"]])
def test_append_with_other_columns_is_a_mismatch(
    spark: SparkSession, tmp_path: Path, asked: list[str]
) -> None:
    path = str(tmp_path)
    write_table(events(spark, 50), path=path, columns_to_index=["a", "b"])
    with pytest.raises(IndexMismatch, match="mode='overwrite'"):
        write_table(events(spark, 50), path=path, columns_to_index=asked)
    assert last_version(path) == 0


def test_append_fills_a_missing_column_with_null(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    write_table(events(spark), path=path, columns_to_index=["a", "b"], cube_size=300)
    write_table(events(spark, 500, 2000).drop("b", "label"), path=path)
    assert plain(spark, path).where("b is null and label is null").count() == 500
    assert_sound(spark, path, range(2500), where="b is null")
    assert_rows_in_their_cubes(spark, path)


def test_append_of_an_unknown_column_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    write_table(events(spark, 50), path=path, columns_to_index=["a"])
    with pytest.raises(InvalidOptions, match="'extra'"):
        write_table(events(spark, 50).withColumn("extra", F.lit(1)), path=path)
    assert last_version(path) == 0


def test_appended_columns_match_by_name_in_any_order_and_case(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    write_table(events(spark), path=path, columns_to_index=["a", "b"], cube_size=300)
    shuffled = events(spark, 500, 2000).selectExpr("label as LABEL", "b as B", "a", "id as ID")
    write_table(shuffled, path=path, columns_to_index=["A", "B"])
    assert plain(spark, path).columns == ["id", "a", "b", "label"]
    assert_sound(spark, path, range(2500), where="b < 200")


def test_appended_values_are_cast_before_they_are_weighed(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    write_table(events(spark), path=path, columns_to_index=["a", "b"], cube_size=300)
    narrow = events(spark, 1000, 2000).selectExpr(
        "cast(id as int) id", "cast(a as int) a", "cast(b as float) b", "label"
    )
    write_table(narrow, path=path)
    assert plain(spark, path).dtypes[:3] == [("id", "bigint"), ("a", "bigint"), ("b", "double")]
    assert_sound(spark, path, range(3000), where="a = 77")
    assert_rows_in_their_cubes(spark, path)


def test_an_empty_append_commits_nothing(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    write_table(events(spark, 50), path=path, columns_to_index=["a"])
    result = write_table(events(spark, 0), path=path)
    assert (result.version, result.rows, result.files) == (0, 0, 0)
    assert last_version(path) == 0


def test_a_number_for_the_cube_size_opens_a_revision_and_auto_keeps_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    write_table(events(spark), path=path, columns_to_index=["a", "b"], cube_size=300)
    assert write_table(events(spark, 500, 2000), path=path, cube_size=300).revision_id == 1
    assert write_table(events(spark, 500, 2500), path=path).revision_id == 1
    changed = write_table(events(spark, 500, 3000), path=path, cube_size=150)
    assert (changed.revision_id, changed.new_revision) == (2, True)
    table = assert_sound(spark, path, range(3500))
    assert table.cube_size == 150
    assert configuration(path)["cubeSize"] == "150"


def test_rows_of_several_revisions_are_found_by_range_and_sample(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    write_table(events(spark), path=path, columns_to_index=["a", "b"], cube_size=300)
    far = events(spark, 1000, 2000).selectExpr("id", "a + 10000 as a", "-b as b", "label")
    assert write_table(far, path=path).revision_id == 2
    between = events(spark, 500, 3000).selectExpr("id", "a * 3 as a", "b", "label")
    assert write_table(between, path=path).new_revision is False
    table = assert_sound(spark, path, range(3500), where="a > 2000 and a < 11000")
    assert_rows_in_their_cubes(spark, path)
    above = {file.revision_id for file in table.files(0.5, "a > 10000")}
    assert above == {2}


def test_a_view_or_a_foreign_table_is_not_written_to(spark: SparkSession, name: str) -> None:
    spark.sql(f"create view {name} as select 1 as a")
    with pytest.raises(IncompatibleTable, match="view"):
        write_table(events(spark, 5), table=name, columns_to_index=["a"])
    spark.sql(f"drop view {name}")
    spark.sql(f"create table {name} using parquet as select 1 as a")
    with pytest.raises(IncompatibleTable, match="parquet"):
        write_table(events(spark, 5), table=name, columns_to_index=["a"], mode="overwrite")
    assert spark.table(name).count() == 1
    spark.sql(f"drop table {name}")


def test_only_names_of_tables_are_qbeast_tables(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_table(events(spark, 5), path=path, columns_to_index=["a"])
    spark.range(1).createOrReplaceGlobalTempView("seen_by_all")
    names = [
        f"delta.`{path}`",
        "global_temp.seen_by_all",
        "global_temp.x",
        "no_such_schema.t",
        "no_such_catalog.default.t",
        "a.b.c.d",
        "a b",
        "default.`a-b`",
        "",
    ]
    assert [name for name in names if QbeastTable.is_qbeast(spark, name)] == []
    spark.catalog.dropGlobalTempView("seen_by_all")


def test_only_an_indexed_table_is_a_qbeast_table(
    spark: SparkSession, name: str, tmp_path: Path
) -> None:
    assert not QbeastTable.is_qbeast(spark, name)
    with pytest.raises(NotAQbeastTable, match="does not exist"):
        QbeastTable.for_name(spark, name)
    with pytest.raises(NotAQbeastTable, match="no Delta table"):
        QbeastTable.for_path(spark, str(tmp_path / "nothing"))
    events(spark, 5).createOrReplaceTempView("some_view")
    assert not QbeastTable.is_qbeast(spark, "some_view")
    spark.catalog.dropTempView("some_view")
    events(spark, 5).write.format("delta").saveAsTable(name)
    assert not QbeastTable.is_qbeast(spark, name)
    with pytest.raises(NotAQbeastTable, match="without a Qbeast index"):
        QbeastTable.for_name(spark, name)
    spark.sql(f"drop table {name}")


def test_exactly_one_of_table_and_path_names_the_destination(spark: SparkSession) -> None:
    for wrong in ({}, {"table": "default.x", "path": "/tmp/never"}):
        with pytest.raises(InvalidOptions, match="exactly one"):
            write_table(events(spark, 5), columns_to_index=["a"], **wrong)


def test_a_strangers_table_at_a_managed_place_is_not_taken_over(
    spark: SparkSession, name: str
) -> None:
    location = spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")
    place = f"{location}/{name.removeprefix('default.')}"
    write_table(events(spark, 20), path=place, columns_to_index=["a"])
    for mode in ("append", "overwrite"):
        with pytest.raises(IncompatibleTable, match="already holds a Delta table"):
            write_table(events(spark, 5), table=name, columns_to_index=["a"], mode=mode)
    assert last_version(place) == 0


def test_an_object_sees_one_version_and_a_new_one_the_next(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    write_table(events(spark, 100), path=path, columns_to_index=["a"])
    before = QbeastTable.for_path(spark, path)
    write_table(events(spark, 100, 100), path=path)
    assert (before.version, before.sample(1.0).count(), before.dataframe().count()) == (0, 100, 100)
    assert QbeastTable.for_path(spark, path).dataframe().count() == 200


def test_the_cube_size_is_worked_out_where_it_is_left_open(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    result = write_table(events(spark), path=path, columns_to_index=["a"])
    table = QbeastTable.for_path(spark, path)
    assert result.files == 1  # small rows in small number
    assert table.cube_size > 2000
    assert configuration(path)["cubeSize"] == str(table.cube_size)
    assert write_table(events(spark, 10, 2000), path=path).revision_id == 1


@pytest.mark.parametrize("most_rows", [500, 499], ids=["by the driver", "by Spark"])
def test_files_whose_keys_collide_are_distinguished_by_their_names(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_rows: int
) -> None:
    monkeypatch.setattr(contents, "MAX_SAMPLE_ROWS", most_rows)
    monkeypatch.setattr(contents, "_KEY_SEEDS", 0)
    write_table(events(spark, 500), path=str(tmp_path), columns_to_index=["a"], cube_size=50)
    assert_sound(spark, tmp_path, range(500))
