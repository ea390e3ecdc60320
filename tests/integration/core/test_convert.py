"""convert_to_qbeast: tables get an index, their files stay as they are."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qbeast_core import (
    Catalog,
    ConvertResult,
    QbeastTable,
    check_convertible,
    convert_to_qbeast,
    quoted,
    write_table,
)
from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.errors import (
    ConstraintViolated,
    IncompatibleTable,
    IndexMismatch,
    InvalidOptions,
    NotAQbeastTable,
    QbeastError,
    UnknownColumn,
    UnsupportedColumnType,
)
from tests.support.delta_log import actions, configuration, last_version, live_adds, log_of, plain
from tests.support.invariants import assert_rows_in_their_cubes, assert_samples, assert_sound
from tests.support.reference_tables import REFERENCE

EMPTY = "io.qbeast.core.transform.Empty"


def rows(spark: SparkSession, first: int, count: int) -> DataFrame:
    return spark.range(first, first + count, 1, 2).selectExpr(
        "id", "cast(id * 37 % 1000 as int) as a", "concat('k', id * 11 % 301) as s"
    )


def files_below(path: object) -> dict[str, tuple[int, int]]:
    """Every data file with its size and its time of change."""
    found = [file for file in Path(str(path)).rglob("*.parquet") if "_delta_log" not in file.parts]
    return {str(file): (file.stat().st_size, file.stat().st_mtime_ns) for file in found}


def unset(spark: SparkSession, path: str, text: str) -> None:
    """Remove the properties whose names have this text."""
    keys = ", ".join(repr(key) for key in configuration(path) if text in key)
    spark.sql(f"alter table delta.`{path}` unset tblproperties ({keys})")


@pytest.fixture
def delta_table(spark: SparkSession, tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    rows(spark, 0, 1000).write.format("delta").save(path)
    return path


@pytest.fixture
def parquet_table(spark: SparkSession, tmp_path: Path) -> str:
    path = str(tmp_path / "some rows")
    rows(spark, 0, 1000).write.parquet(path)
    return path


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_a_table_by_path_is_converted_appended_to_and_optimized(
    spark: SparkSession, request: pytest.FixtureRequest, kind: str
) -> None:
    path = request.getfixturevalue(f"{kind}_table")
    before = files_below(path)
    result = convert_to_qbeast(spark, f"{kind}.`{path}`", "a,s", 200)
    assert result == ConvertResult(1, ("a", "s"), 200, len(before), 1000, True)
    assert str(result).startswith("indexed by a, s from now on; 1,000 rows in ")
    assert files_below(path) == before
    table = assert_sound(spark, path, range(1000), where="a < 300")
    assert len(table.files(0.01)) == len(before)  # none of them is indexed yet
    assert table.columns_to_index == ["a", "s"]
    assert table.revision_ids == [0]

    appended = write_table(rows(spark, 1000, 1000), path=path)
    assert (appended.revision_id, appended.new_revision) == (1, True)
    rows(spark, 2000, 200).write.format("delta").mode("append").save(path)
    table = assert_sound(spark, path, range(2200), where="a < 300")
    assert len(table.files(0.01)) < len(table.files())
    assert table.cube_size == 200

    optimized = table.optimize(revision_id="unindexed")
    assert optimized.rows == 1200
    table = assert_sound(spark, path, range(2200), where="a < 300")
    assert_rows_in_their_cubes(spark, path)
    assert all(file.revision_id == 1 for file in table.files())
    assert not table.optimize(revision_id="unindexed").changed


def test_optimize_alone_indexes_a_converted_table(spark: SparkSession, delta_table: str) -> None:
    convert_to_qbeast(spark, f"delta.`{delta_table}`", ["s", "a:linear"], 100)
    QbeastTable.for_path(spark, delta_table).optimize()
    table = assert_sound(spark, delta_table, range(1000), where="s = 'k11'")
    assert_rows_in_their_cubes(spark, delta_table)
    assert table.latest_revision.revision_id == 1
    assert len(table.files(0.05)) < len(table.files())


def test_the_commit_is_the_one_that_qbeast_spark_makes(
    spark: SparkSession, delta_table: str
) -> None:
    theirs = actions(REFERENCE / "staging", 1, "metaData")[0]["configuration"]
    convert_to_qbeast(spark, f"delta.`{delta_table}`", "a,s", 200)
    assert [next(iter(action)) for action in log_of(delta_table, 1)] == ["commitInfo", "metaData"]
    assert actions(delta_table, 1, "commitInfo")[0]["operation"] == "SET TBLPROPERTIES"
    ours = actions(delta_table, 1, "metaData")[0]["configuration"]
    own_words = {"columnsToIndex": "a,s", "cubeSize": "200", "tableFormat": "delta"}
    assert ours == {**ours, **own_words, "columnStats": ""}
    assert set(ours) == {*theirs, *own_words, "columnStats"}
    mine, original = (json.loads(each["qbeast.revision.0"]) for each in (ours, theirs))
    assert list(mine) == list(original)
    assert {**mine, "timestamp": 0, "tableID": ""} == {**original, "timestamp": 0, "tableID": ""}
    assert ours["qbeast.lastRevisionID"] == theirs["qbeast.lastRevisionID"] == "0"


def test_a_kind_of_index_that_was_asked_for_is_used_by_the_first_write(
    spark: SparkSession, delta_table: str
) -> None:
    convert_to_qbeast(spark, f"delta.`{delta_table}`", "A:hash,s", 200)
    assert configuration(delta_table)["columnsToIndex"] == "a:hashing,s"
    stored = json.loads(configuration(delta_table)["qbeast.revision.0"])
    assert [each["className"] for each in stored["columnTransformers"]] == [
        EMPTY + "Transformer"
    ] * 2
    write_table(rows(spark, 1000, 50), path=delta_table)
    kinds = [
        each.kind for each in QbeastTable.for_path(spark, delta_table).latest_revision.transformers
    ]
    assert kinds == ["hashing", "hashing"]
    assert_sound(spark, delta_table, range(1050))


def test_a_converted_table_can_be_rebuilt_by_the_columns_that_it_was_to_have(
    spark: SparkSession, delta_table: str
) -> None:
    convert_to_qbeast(spark, f"delta.`{delta_table}`", "a:hash,s", 200)
    write_table(rows(spark, 0, 30), path=delta_table, mode="overwrite")
    table = assert_sound(spark, delta_table, range(30))
    assert [each.kind for each in table.latest_revision.transformers] == ["hashing", "hashing"]


@pytest.mark.parametrize("provider", ["delta", "parquet"])
def test_a_table_of_the_catalog_keeps_its_name(spark: SparkSession, provider: str) -> None:
    name = f"default.converted_{provider}"
    rows(spark, 0, 500).write.format(provider).saveAsTable(name)
    try:
        result = convert_to_qbeast(spark, name, ["a"])
        assert (result.rows, result.columns, result.changed) == (500, ("a",), True)
        assert result.cube_size > 500  # chosen for a small table
        assert QbeastTable.is_qbeast(spark, name)
        assert spark.table(name).count() == 500
        write_table(rows(spark, 500, 100), table=name)
        table = QbeastTable.for_name(spark, name)
        table.optimize(revision_id="unindexed")
        table = QbeastTable.for_name(spark, name)
        assert table.check().ok
        assert sorted(row.id for row in table.dataframe().collect()) == list(range(600))
        assert all(file.revision_id for file in table.files())
        properties = {row.key for row in spark.sql(f"show tblproperties {name}").collect()}
        assert "qbeast.lastRevisionID" in properties
    finally:
        spark.sql(f"drop table {name}")


def test_columns_are_chosen_from_the_rows_that_the_table_has(
    spark: SparkSession, delta_table: str
) -> None:
    result = convert_to_qbeast(spark, delta_table, "auto:2", 200)
    assert (result.columns, result.changed) == (("id", "a"), True)
    assert "auto chose id, a of 3 columns, from 1,000 rows" in str(result)
    stored = configuration(delta_table)
    assert (stored["columnsToIndex"], stored["qbeast.automatic"]) == ("id,a", "columns_to_index")
    assert not convert_to_qbeast(spark, delta_table, "auto").changed
    write_table(rows(spark, 1000, 500), path=delta_table, columns_to_index="auto")
    QbeastTable.for_path(spark, delta_table).optimize(revision_id="unindexed")
    assert_sound(spark, delta_table, range(1500), where="a < 300")
    assert_rows_in_their_cubes(spark, delta_table)


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_a_sample_key_is_that_of_the_whole_table(
    spark: SparkSession, request: pytest.FixtureRequest, kind: str
) -> None:
    path = request.getfixturevalue(f"{kind}_table")
    before = sorted(Path(path).rglob("*"))
    with pytest.raises(UnknownColumn, match="sample key"):
        convert_to_qbeast(spark, f"{kind}.`{path}`", "a", 100, sample_key="nobody")
    assert sorted(Path(path).rglob("*")) == before
    assert convert_to_qbeast(spark, f"{kind}.`{path}`", "a", 100, sample_key=["ID"]).changed
    assert configuration(path)["qbeast.sampleKey"] == '["id"]'
    assert not convert_to_qbeast(spark, path, "a", sample_key="id").changed
    with pytest.raises(IndexMismatch, match=r"sample key id.*asks for sample_key s"):
        convert_to_qbeast(spark, path, "a", sample_key="s")
    QbeastTable.for_path(spark, path).optimize()
    write_table(rows(spark, 1000, 300), path=path)
    table = assert_sound(spark, path, range(1300), where="a < 300")
    assert_rows_in_their_cubes(spark, path)
    assert len(table.files(0.01)) < len(table.files())
    assert table.index_metrics().sample_key == ("id",)


def test_other_settings_of_the_table_stay(spark: SparkSession, delta_table: str) -> None:
    spark.sql(
        f"alter table delta.`{delta_table}` set tblproperties "
        "('delta.enableChangeDataFeed' = 'true', 'team.owner' = 'me')"
    )
    convert_to_qbeast(spark, delta_table, "a")
    stored = configuration(delta_table)
    assert (stored["delta.enableChangeDataFeed"], stored["team.owner"]) == ("true", "me")


def test_converting_again_does_nothing(spark: SparkSession, delta_table: str) -> None:
    first = convert_to_qbeast(spark, f"delta.`{delta_table}`", "a,s", 200)
    again = convert_to_qbeast(spark, delta_table, ["A", "s"])
    assert again == ConvertResult(first.version, ("a", "s"), 200, 0, 0, False)
    assert "already" in str(again)
    write_table(rows(spark, 1000, 10), path=delta_table)
    assert not convert_to_qbeast(spark, delta_table, "a,s", 200).changed
    for columns, size, match in (
        ("s,a", 200, "by a, s"),
        ("a", 200, "by a, s"),
        ("a,s", 7, "200"),
        ("a:quantiles,s", 200, "'a' as 'linear'; to index new rows as 'quantiles'"),
    ):
        with pytest.raises(IndexMismatch, match=match):
            convert_to_qbeast(spark, delta_table, columns, size)
    assert last_version(delta_table) == first.version + 1


def test_files_of_a_removed_index_do_not_count_as_files_of_the_next_one(
    spark: SparkSession, delta_table: str
) -> None:
    write_table(
        rows(spark, 0, 1000),
        path=delta_table,
        mode="overwrite",
        columns_to_index=["a:hash"],
        cube_size=50,
    )
    unset(spark, delta_table, "qbeast")
    convert_to_qbeast(spark, f"delta.`{delta_table}`", ["s:hash"])
    write_table(rows(spark, 1000, 200), path=delta_table)

    table = QbeastTable.for_path(spark, delta_table)
    assert {file.revision_id for file in table.files()} == {0, 2}
    where = "s = 'k11'"
    stored = plain(spark, delta_table).selectExpr("id", "hash(s)", where).collect()
    assert_samples(table, stored, [(0.1, None), (1.0, where)])
    source = rows(spark, 100, 20).withColumn("a", F.lit(7))
    assert table.merge(source, on=["id", "s"]).rows_inserted == 0
    assert QbeastTable.for_path(spark, delta_table).optimize().changed
    assert_sound(spark, delta_table, range(1200), where=where)


def test_an_indexed_table_that_no_write_accepts_is_not_already_converted(
    spark: SparkSession, delta_table: str
) -> None:
    convert_to_qbeast(spark, f"delta.`{delta_table}`", ["a"])
    spark.sql(f"alter table delta.`{delta_table}` cluster by (a)")
    version = last_version(delta_table)
    with pytest.raises(IncompatibleTable, match="CLUSTER BY NONE"):
        convert_to_qbeast(spark, f"delta.`{delta_table}`", ["a"])
    assert last_version(delta_table) == version


def test_an_empty_table_is_converted(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    rows(spark, 0, 0).write.format("delta").save(path)
    assert convert_to_qbeast(spark, path, "a", 50).rows == 0
    assert_sound(spark, path, [])
    write_table(rows(spark, 0, 200), path=path)
    assert_sound(spark, path, range(200))


def test_rows_are_counted_if_the_log_has_no_count(spark: SparkSession, parquet_table: str) -> None:
    spark.sql(f"convert to delta parquet.`{parquet_table}` no statistics")
    assert all("stats" not in add for add in live_adds(parquet_table).values())
    result = convert_to_qbeast(spark, f"parquet.`{parquet_table}`", "a", 100)
    assert (result.rows, result.version) == (1000, 1)
    QbeastTable.for_path(spark, parquet_table).optimize()
    assert_sound(spark, parquet_table, range(1000))


@pytest.mark.parametrize("kind", ["delta", "parquet"])
@pytest.mark.parametrize(
    ("columns", "size", "error", "match"),
    [
        ("b", "auto", UnknownColumn, "'id', 'a', 's'"),
        ("a,a", "auto", InvalidOptions, "twice"),
        ([], "auto", InvalidOptions, "0 columns"),
        ("a:sideways", "auto", InvalidOptions, "sideways"),
        ("s:linear", "auto", InvalidOptions, "linear"),
        ("a", 0, InvalidOptions, "cube_size 0"),
        ("a", "many", InvalidOptions, "'many'"),
    ],
)
def test_bad_options_change_nothing(
    spark: SparkSession,
    request: pytest.FixtureRequest,
    kind: str,
    columns: str,
    size: int | str,
    error: type[QbeastError],
    match: str,
) -> None:
    path = request.getfixturevalue(f"{kind}_table")
    before = sorted(Path(path).rglob("*"))
    with pytest.raises(error, match=match):
        convert_to_qbeast(spark, f"{kind}.`{path}`", columns, size)
    assert sorted(Path(path).rglob("*")) == before


def test_a_type_that_cannot_be_indexed_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(5).selectExpr("array(id) as a").write.format("delta").save(str(tmp_path))
    with pytest.raises(UnsupportedColumnType, match="array"):
        convert_to_qbeast(spark, str(tmp_path), "a")
    assert last_version(tmp_path) == 0


@pytest.mark.parametrize(
    ("table", "error", "match"),
    [
        ("", InvalidOptions, "names no table"),
        ("select 1", InvalidOptions, "names no table"),
        ("delta.`some/path`", InvalidOptions, "not absolute"),
        ("parquet.`file/path`", InvalidOptions, "not absolute"),
        ("delta.`/no/such/table`", NotAQbeastTable, "no Delta table at /no/such/table"),
        ("/no/such/table", NotAQbeastTable, "no Delta table"),
        ("parquet.`/no/such/table`", NotAQbeastTable, "no Parquet table"),
        ("default.no_such_table", NotAQbeastTable, "does not exist"),
    ],
)
def test_only_tables_can_be_converted(
    spark: SparkSession, table: str, error: type[QbeastError], match: str
) -> None:
    with pytest.raises(error, match=match):
        convert_to_qbeast(spark, table, "a")
    assert not Path("/no").exists()


@pytest.mark.parametrize(
    ("statement", "match"),
    [
        ("create view {} as select 1 as a", "is a view"),
        ("create table {} using csv as select 1 as a", "stored as csv"),
        ("create table {} using parquet partitioned by (b) as select 1 as a, 2 as b", "by b"),
        ("create table {} using delta partitioned by (b) as select 1 as a, 2 as b", "by b"),
    ],
)
def test_tables_of_other_kinds_are_refused(spark: SparkSession, statement: str, match: str) -> None:
    name = "default.not_for_conversion"
    spark.sql(statement.format(name))
    try:
        with pytest.raises(IncompatibleTable, match=match):
            convert_to_qbeast(spark, name, "a")
        assert not QbeastTable.is_qbeast(spark, name)
    finally:
        spark.sql(f"drop {'view' if 'view' in statement else 'table'} {name}")


def test_a_parquet_directory_without_its_format_is_recognized(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t[1]`")
    partitioned(spark, path, "parquet")
    for spelled in (path, f"delta.{quoted(path)}"):
        with pytest.raises(NotAQbeastTable, match="only Parquet files; to") as told:
            convert_to_qbeast(spark, spelled, "a")
        assert str(told.value).endswith(f" as parquet.{quoted(path)}")
        with pytest.raises(NotAQbeastTable, match="only Parquet files"):
            check_convertible(spark, spelled)


def test_a_parquet_table_without_files_is_not_said_to_be_missing(spark: SparkSession) -> None:
    name = "default.parquet_without_files"
    spark.sql(f"create table {name} (a bigint) using parquet")
    try:
        with pytest.raises(NotAQbeastTable, match=f"{name} is a Parquet table without files"):
            convert_to_qbeast(spark, name, "a")
    finally:
        spark.sql(f"drop table {name}")


def partitioned(spark: SparkSession, path: str, kind: str) -> None:
    rows(spark, 0, 20).selectExpr("*", "id % 2 as b").write.partitionBy("b").format(kind).save(path)


def test_the_advised_rewrite_keeps_what_rows_do_not_have(spark: SparkSession) -> None:
    name = "default.to_rewrite"
    spark.sql(
        f"create table {name} (id bigint not null, t timestamp default '2020-01-01 00:00:00', "
        "day date generated always as (cast(t as date)), "
        "number bigint generated by default as identity) using delta partitioned by (day) "
        "tblproperties ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    try:
        spark.sql(f"insert into {name} (id, t) select id, timestamp_seconds(id) from range(9)")
        with pytest.raises(IncompatibleTable, match=r"'overwrite', overwrite_schema=False\)"):
            convert_to_qbeast(spark, name, "id")
        before = spark.table(name)
        schema, given = before.schema, sorted(before.collect())
        write_table(
            before, table=name, mode="overwrite", overwrite_schema=False, columns_to_index="id"
        )
        assert spark.table(name).schema == schema and sorted(spark.table(name).collect()) == given
        (details,) = spark.sql(f"describe detail {name}").collect()
        assert details.partitionColumns == []
        with pytest.raises(ConstraintViolated):
            write_table(spark.sql("select cast(null as bigint) as id"), table=name)
        spark.sql(f"insert into {name} (id) values (10)")
        (new,) = spark.table(name).where("id = 10").collect()
        assert str(new.day) == "2020-01-01" and new.number not in {row.number for row in given}
    finally:
        spark.sql(f"drop table {name}")


def with_a_directory(spark: SparkSession, path: str, kind: str) -> None:
    rows(spark, 0, 20).write.format(kind).save(path)
    rows(spark, 20, 20).write.format(kind).save(f"{path}/more")


@pytest.mark.parametrize(
    ("kind", "make", "match"),
    [
        ("delta", partitioned, "partitioned by b"),
        ("parquet", partitioned, "partitioned by b"),
        ("parquet", with_a_directory, "subdirectories .more"),
    ],
)
def test_paths_with_partitions_or_directories_are_refused(
    spark: SparkSession,
    tmp_path: Path,
    kind: str,
    make: Callable[[SparkSession, str, str], None],
    match: str,
) -> None:
    path = str(tmp_path / "t=1")  # a directory above is no partition
    make(spark, path, kind)
    before = sorted(tmp_path.rglob("*"))
    for spelled in (path, f"{tmp_path}//t=1", f"{tmp_path}/other/../t=1/"):
        with pytest.raises(IncompatibleTable, match=match):
            convert_to_qbeast(spark, f"{kind}.`{spelled}`", "a")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_path_is_not_a_pattern(spark: SparkSession, tmp_path: Path) -> None:
    rows(spark, 0, 20).write.parquet(str(tmp_path / "t1"))
    with pytest.raises(NotAQbeastTable, match="no Parquet table"):
        convert_to_qbeast(spark, f"parquet.`{tmp_path}/t[1]`", "a")
    shutil.copytree(tmp_path / "t1", tmp_path / "t[1]")
    assert convert_to_qbeast(spark, f"parquet.`{tmp_path}/t[1]`", "a").changed


@pytest.mark.parametrize(
    ("clause", "properties", "match"),
    [
        ("cluster by (a)", "", "liquid clustering"),
        ("", "tblproperties ('delta.enableRowTracking' = 'true')", "row tracking"),
    ],
)
def test_features_that_an_index_would_not_keep_right_are_refused(
    spark: SparkSession, tmp_path: Path, clause: str, properties: str, match: str
) -> None:
    name = "default.with_feature"
    spark.sql(f"create table {name} (a int) using delta {clause} {properties}")
    try:
        with pytest.raises(IncompatibleTable, match=match):
            convert_to_qbeast(spark, name, "a")
    finally:
        spark.sql(f"drop table {name}")


def test_a_table_that_shares_its_files_is_refused(spark: SparkSession, delta_table: str) -> None:
    name = "default.cloned"
    spark.sql(f"create table {name} shallow clone delta.`{delta_table}`")
    try:
        with pytest.raises(IncompatibleTable, match="cloned from"):
            convert_to_qbeast(spark, name, "a")
    finally:
        spark.sql(f"drop table {name}")


def test_rows_that_arrive_meanwhile_are_kept(spark: SparkSession, delta_table: str) -> None:
    """A plain append between the check and the commit lands, and so does the conversion."""
    from qbeast_core.delta.transaction import Transaction

    commit = Transaction.commit
    arrived = []

    def late(self: Transaction, *given: object, **named: object) -> int:
        if not arrived:
            arrived.append(True)
            rows(spark, 1000, 10).write.format("delta").mode("append").save(delta_table)
        return commit(self, *given, **named)  # type: ignore[arg-type]

    Transaction.commit = late  # type: ignore[method-assign]
    try:
        convert_to_qbeast(spark, delta_table, "a", 100)
    finally:
        Transaction.commit = commit  # type: ignore[method-assign]
    assert_sound(spark, delta_table, range(1010))


def test_a_parquet_table_that_only_became_delta_is_converted_by_trying_again(
    spark: SparkSession, parquet_table: str
) -> None:
    """What a crash between Delta's conversion and ours leaves."""
    copy = parquet_table + " copied"
    shutil.copytree(parquet_table, copy)
    spark.sql(f"convert to delta parquet.`{copy}`")
    assert convert_to_qbeast(spark, f"parquet.`{copy}`", "a", 100).changed
    assert_sound(spark, copy, range(1000))
    assert TableSnapshot.load(spark, parquet_table).version == -1
    assert plain(spark, copy).count() == 1000


def test_a_conversion_that_ended_before_the_catalog_was_updated_is_finished(
    spark: SparkSession,
) -> None:
    """Delta's conversion makes the log first. Then it turns the catalog's entry into Delta's."""
    name = "default.half_converted"
    rows(spark, 0, 300).write.format("parquet").saveAsTable(name)
    try:
        location = Catalog(spark).find(name).location
        spark.sql(f"convert to delta parquet.`{location}`")
        assert Catalog(spark).find(name).provider == "parquet"
        assert convert_to_qbeast(spark, name, "a", 100).changed
        assert Catalog(spark).find(name).provider == "delta"
        QbeastTable.for_name(spark, name).delete("id < 100")
        assert sorted(row.id for row in spark.table(name).collect()) == list(range(100, 300))
        assert not convert_to_qbeast(spark, name, "a", 100).changed
    finally:
        spark.sql(f"drop table {name}")


def test_what_a_removed_index_left_is_not_part_of_the_next_one(
    spark: SparkSession, delta_table: str
) -> None:
    write_table(
        rows(spark, 0, 1000),
        path=delta_table,
        mode="overwrite",
        columns_to_index=["a"],
        sample_key="id",
        slices=True,
    )
    unset(spark, delta_table, "evision")
    convert_to_qbeast(spark, f"delta.`{delta_table}`", ["s:hash"])
    table = QbeastTable.for_path(spark, delta_table)
    assert table.revisions[-1].sample_key == ()
    assert {"qbeast.slices", "qbeast.sampleKey"}.isdisjoint(configuration(delta_table))
    write_table(rows(spark, 1000, 200), path=delta_table)
    assert QbeastTable.for_path(spark, delta_table).optimize().changed
    assert_sound(spark, delta_table, range(1200))


def test_an_index_without_the_number_of_its_last_revision_is_complete(
    spark: SparkSession, delta_table: str
) -> None:
    """docs/format.md 2.1"""
    write_table(rows(spark, 0, 1000), path=delta_table, mode="overwrite", columns_to_index=["a"])
    unset(spark, delta_table, "lastRevisionID")
    assert not convert_to_qbeast(spark, f"delta.`{delta_table}`", ["a"]).changed
    table = QbeastTable.for_path(spark, delta_table)
    assert [each for each in table.check().problems if "lastRevisionID is None" in each]
    assert table.delete("id < 10").rows_deleted == 10
    write_table(rows(spark, 1000, 200), path=delta_table, mode="overwrite")
    assert QbeastTable.for_path(spark, delta_table).check().ok
    assert_sound(spark, delta_table, range(1000, 1200))


def test_an_overwrite_needs_no_part_of_a_broken_index(
    spark: SparkSession, delta_table: str
) -> None:
    write_table(rows(spark, 0, 1000), path=delta_table, mode="overwrite", columns_to_index=["a"])
    write_table(rows(spark, 0, 1000), path=delta_table, mode="overwrite")
    broken = "set tblproperties ('qbeast.lastRevisionID' = '99')"
    spark.sql(f"alter table delta.`{delta_table}` {broken}")
    write_table(rows(spark, 0, 900), path=delta_table, mode="overwrite", columns_to_index=["a"])
    assert QbeastTable.for_path(spark, delta_table).check().ok
    assert_sound(spark, delta_table, range(900))
