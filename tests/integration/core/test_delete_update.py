"""Delete, update and replace change the right rows, rewrite only their files, keep the index."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from qbeast_core import QbeastTable, convert_to_qbeast, write_table
from qbeast_core.errors import IncompatibleTable, InvalidOptions, ReplaceMismatch, UnknownColumn
from qbeast_core.jvm.settings import changed_settings
from qbeast_core.model.weight import weight_of_fraction
from qbeast_core.spark.conditions import parse_condition
from tests.integration.core.merge_tables import contents, create, files_holding, rows
from tests.support.counters import counting
from tests.support.delta_log import actions, last_version, plain
from tests.support.invariants import assert_rows_in_their_cubes, assert_sound, assert_walkable


def test_a_delete_keeps_the_index_of_what_is_left(spark: SparkSession, tmp_path: Path) -> None:
    """Upper cubes lose rows and blocks, and no sample loses a row that is left."""
    path = create(spark, tmp_path)
    write_table(rows(spark, 1500, 170), path=path)
    condition = f"hash(a, b) < {weight_of_fraction(0.03)} and id % 3 = 0 or b < 20"
    gone = {row.id for row in plain(spark, path).where(condition).collect()}
    holding = files_holding(spark, path, condition)
    result = QbeastTable.for_path(spark, path).delete(condition)
    assert result.rows_deleted == len(gone) > 10
    assert {remove["path"] for remove in actions(path, 2, "remove")} == holding
    left = [i for i in range(1670) if i not in gone]
    after = assert_sound(spark, path, left)
    assert {file.revision_id for file in after.files()} == {1}
    assert_rows_in_their_cubes(spark, path)
    assert_walkable(spark, path)


def test_a_condition_that_is_null_deletes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    data = spark.createDataFrame([(1, 1), (2, None), (3, 3)], "id long, a int")
    write_table(data, path=path, columns_to_index=["id"], cube_size=10)
    table = QbeastTable.for_path(spark, path)
    assert table.delete("a > 2 and now() > timestamp'2020-01-01'").rows_deleted == 1
    assert table.update({"a": "a + id"}, "a < 5").rows_updated == 1
    assert contents(spark, path) == {(1, 2): 1, (2, None): 1}
    assert not table.delete("a > 1000").changed
    assert table.delete("true").rows_deleted == 2
    assert plain(spark, path).count() == 0
    assert [action["operation"] for action in actions(path, 3, "commitInfo")] == ["DELETE"]
    write_table(data, path=path)
    assert_sound(spark, path, [1, 2, 3])


@pytest.fixture(scope="module")
def dated_tables(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """An indexed table of 40 rows and a plain one."""
    directory = tmp_path_factory.mktemp("dated")
    ours, twin = directory / "ours", directory / "twin"
    data = spark.range(40).selectExpr(
        "id",
        "array('a_b', 'a!b', 'a1', 'b2')[id % 4] as b",
        "array(id * 100000000) as n",
        "named_struct('at', date_add(date'2020-01-01', cast(id * 200 as int))) as s",
    )
    write_table(data, path=ours, columns_to_index=["id"], cube_size=10)
    data.write.format("delta").save(str(twin))
    return ours, twin


@pytest.mark.parametrize(
    "condition",
    [
        "b ilike 'A!_%' escape '!'",
        "b like any ('a!%', 'b%')",
        r"b rlike '^a\d$'",
        "exists(n, x -> timestamp_seconds(x) < now())",
        "s.at < current_date()",
        "s.at < 'today'",
        "s.at between date'2020-01-01' and current_date()",
        "s.at < date'today'",
        "exists(n, x -> timestamp_seconds(x) < to_timestamp('now'))",
        "cast(now() as bigint) > n[0]",
    ],
)
@pytest.mark.parametrize("escaped", [False, True], ids=["usual", "escaped"])
def test_a_condition_on_the_time_means_what_it_means_to_delta(
    spark: SparkSession,
    tmp_path: Path,
    dated_tables: tuple[Path, Path],
    condition: str,
    escaped: bool,
) -> None:
    ours, twin = (shutil.copytree(each, tmp_path / each.name) for each in dated_tables)
    if not escaped:
        condition = condition.replace("\\", "\\\\")
    where = f"{condition} and now() > timestamp'2020-01-01'"
    settings = {
        "spark.sql.parser.escapedStringLiterals": str(escaped).lower(),
        "spark.sql.timestampType": "TIMESTAMP_NTZ" if escaped else "TIMESTAMP_LTZ",
    }
    with changed_settings(spark, settings):
        changed = QbeastTable.for_path(spark, ours).delete(where).rows_deleted
        spark.sql(f"delete from delta.`{twin}` where {where}")
        left, expected = ({row.id for row in plain(spark, each).collect()} for each in (ours, twin))
        assert left == expected
        assert changed == 40 - len(left) and 0 < len(left) < 40


def test_the_repeated_hour_at_the_end_of_summer_time_is_not_ambiguous(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The text of a time in the session's zone would name the first of two hours."""
    zone = {"spark.sql.session.timeZone": "America/New_York"}
    second = "timestamp_seconds(1793514600)"
    with changed_settings(spark, zone):
        hours = spark.range(1).selectExpr(f"{second} as at")
        condition = "at = make_timestamp(2026, 11, 1, 1, 30, 0, 'America/New_York')"
        first = spark.sql(f"select {condition} as same from (select {second} as at)").first().same
        column = parse_condition(hours, f"at <= {second} and at < now()", "where").column
        assert not first and hours.where(column).count() == 1


def test_random_vectors_are_drawn_once(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark, tmp_path, **{"delta.enableChangeDataFeed": "true"})
    secret = "base64(aes_encrypt(cast(id as string), '0000111122223333'))"
    QbeastTable.for_path(spark, path).update({"s": secret}, "id < 20")
    feed = spark.read.option("readChangeFeed", "true").option("startingVersion", 1)
    changes = feed.format("delta").load(path).where("_change_type = 'update_postimage'")
    stored = plain(spark, path).where("id < 20")
    assert stored.select("s").distinct().count() == 20
    assert {*changes.select("id", "s").collect()} == {*stored.select("id", "s").collect()}


def test_an_update_of_an_indexed_column_moves_the_rows(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark, tmp_path)
    before = {row.id: tuple(row) for row in plain(spark, path).collect()}
    result = QbeastTable.for_path(spark, path).update({"A": "999 - a", "s": "'up'"}, "b > 900")
    moved = {
        i: (i, 999 - a, b, "up") if b > 900 else (i, a, b, s) for i, a, b, s in before.values()
    }
    assert contents(spark, path) == dict.fromkeys(moved.values(), 1)
    assert result.rows_updated == sum(b > 900 for _, _, b, _ in before.values())
    assert_sound(spark, path, range(1500), where="a < 100 and b > 900")
    assert_rows_in_their_cubes(spark, path)
    assert_walkable(spark, path)


def test_rows_that_an_update_moves_beyond_the_range_are_found(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = create(spark, tmp_path)
    assert QbeastTable.for_path(spark, path).update({"a": "a + 5000"}, "id < 20").rows_updated == 20
    table = assert_sound(spark, path, range(1500), where="a > 4000")
    assert table.sample(1.0, where="a > 4000").count() == 20


@pytest.mark.parametrize("has_feed", [False, True])
def test_random_values_are_computed_once(
    spark: SparkSession, tmp_path: Path, has_feed: bool
) -> None:
    path = create(spark, tmp_path, **{"delta.enableChangeDataFeed": str(has_feed).lower()})
    asked = []
    for value in ("'drawn'", "concat('drawn', rand())"):
        with counting(spark) as counts:
            result = QbeastTable.for_path(spark, path).update({"s": value}, "id % 10 = 0")
        assert result.rows_updated == 150
        asked.append(counts.jobs)
    # They are stored only if the change data feed reads them too.
    assert (asked[1] > asked[0]) == has_feed
    written = plain(spark, path).where("s like 'drawn%'")
    assert written.count() == written.select("s").distinct().count() == 150
    if has_feed:
        feed = spark.read.option("readChangeFeed", True).option("startingVersion", 2)
        after = feed.format("delta").load(path).where("_change_type = 'update_postimage'")
        assert after.select("id", "s").exceptAll(written.select("id", "s")).count() == 0
        assert after.count() == 150
    assert_sound(spark, path, range(1500))


def test_replacing_takes_one_commit(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark, tmp_path)
    table = QbeastTable.for_path(spark, path)
    gone = {row.id for row in plain(spark, path).where("a between 100 and 199").collect()}
    new = rows(spark, 5000, 400).where("a between 100 and 199")
    added = {row.id for row in new.collect()}
    result = table.replace_where(new, "a between 100 and 199")
    assert (result.rows_deleted, result.rows_inserted) == (len(gone), len(added))
    assert last_version(path) == 1
    assert_sound(spark, path, (set(range(1500)) - gone) | added, where="a < 150")
    with pytest.raises(ReplaceMismatch, match=r"'a between .*: id \d+, a 700, "):
        stranger = new.limit(1).withColumn("a", F.lit(700))
        table.replace_where(stranger, "a between 100 and 199")
    twice = rows(spark, 0, 3).union(rows(spark, 0, 3)).union(rows(spark, 7000, 2))
    result = table.replace_matching(twice, "id", where="target.id > 0")
    present = len({1, 2} - gone)
    assert (result.rows_deleted, result.rows_inserted) == (present, 8)
    left = [i for i in range(3, 1500) if i not in gone] + ([] if 0 in gone else [0])
    assert_sound(spark, path, [*left, *added, *[0, 1, 2] * 2, 7000, 7001])
    assert_rows_in_their_cubes(spark, path)
    assert_walkable(spark, path)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda t, df: t.delete("nowhere = 1"), InvalidOptions, "nowhere"),
        (lambda t, df: t.delete("id in (select 1)"), InvalidOptions, "subquery"),
        (lambda t, df: t.delete("rand() > 0.5"), InvalidOptions, "not deterministic"),
        (lambda t, df: t.delete(""), InvalidOptions, "where ''"),
        (lambda t, df: t.delete("later(id) > 5"), InvalidOptions, "defined in SQL"),
        (lambda t, df: t.update({}), InvalidOptions, "{}"),
        (lambda t, df: t.update({"x": "1"}), UnknownColumn, "'x'"),
        (lambda t, df: t.update({"a": "x"}), InvalidOptions, "x"),
        (lambda t, df: t.update({"a": "1", "A": "2"}), InvalidOptions, "as 'a' and as 'A'"),
        (lambda t, df: t.replace_where(df.withColumn("x", df.id), "a > 1"), InvalidOptions, "'x'"),
        (lambda t, df: t.replace_matching(df, "x"), UnknownColumn, "'x'"),
    ],
)
def test_bad_input_is_rejected(
    spark: SparkSession, unchanged: str, change: Any, error: type[Exception], message: str
) -> None:
    spark.sql("create temporary function later(x bigint) returns bigint return x + 1")
    try:
        with pytest.raises(error, match=message):
            change(QbeastTable.for_path(spark, unchanged), rows(spark, 0, 5))
    finally:
        spark.sql("drop temporary function later")
    assert last_version(unchanged) == 0


@pytest.mark.parametrize(
    "value", ["row_number() over (order by {}id)", "max({}id)", "explode(array({}id, 2))"]
)
def test_a_value_of_several_rows_is_refused_as_by_delta(
    spark: SparkSession, unchanged: str, value: str
) -> None:
    table, source = QbeastTable.for_path(spark, unchanged), rows(spark, 0, 5)
    of_source = value.format("source.")
    for refused in (
        lambda: table.update({"a": value.format("")}),
        lambda: table.merge(source, "id", update={"a": of_source}),
        lambda: table.merge(source, "id", insert={"id": "source.id", "a": of_source}),
    ):
        with pytest.raises(InvalidOptions, match=r"is not valid: \["):
            refused()
    with pytest.raises(AnalysisException):
        spark.sql(f"update delta.`{unchanged}` set a = {value.format('')}")
    assert last_version(unchanged) == 0


@pytest.fixture(scope="module")
def unchanged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    return create(spark, tmp_path_factory.mktemp("unchanged"))


def test_generated_columns_are_left_to_delta(spark: SparkSession, tmp_path: Path) -> None:
    from delta.tables import DeltaTable

    path = str(tmp_path)
    builder = DeltaTable.create(spark).location(path).addColumn("id", "BIGINT")
    builder.addColumn("twice", "BIGINT", generatedAlwaysAs="id * 2").execute()
    spark.sql(
        f"alter table delta.`{path}` set tblproperties "
        "('qbeast.lastRevisionID' = '0', 'qbeast.revision.0' = '"
        '{"revisionID":0,"timestamp":0,"tableID":"t","desiredCubeSize":10,"columnTransformers":'
        '[{"className":"io.qbeast.core.transform.LinearTransformer","columnName":"id",'
        '"dataType":"LongDataType"}],"transformations":[]}\')'
    )
    with pytest.raises(IncompatibleTable, match="twice"):
        QbeastTable.for_path(spark, path).update({"id": "id + 1"})


def test_files_whose_names_differ_in_their_escapes_are_not_confused(
    spark: SparkSession, tmp_path: Path
) -> None:
    directory = tmp_path / "t"
    directory.mkdir()
    for name, first, count in (("a b", 1, 2), ("a%20b", 10, 5), ("a%2520b", 20, 5)):
        written = tmp_path / f"of {first}"
        spark.range(first, first + count, 1, 1).write.parquet(str(written))
        (file,) = written.glob("*.parquet")
        file.rename(directory / f"{name}.parquet")
    convert_to_qbeast(spark, f"parquet.`{directory}`", "id")
    table = QbeastTable.for_path(spark, directory)
    assert table.delete("id in (1, 12, 21)").rows_deleted == 3
    assert table.update({"id": "-id"}, "id = 11").rows_updated == 1
    ids = {row.id for row in plain(spark, directory).collect()}
    assert ids == {2, 10, -11, 13, 14, 20, 22, 23, 24}
