"""`merge_schema` adds columns and fields to a table as Delta's `mergeSchema` does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaMergeBuilder, DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from qbeast_core import QbeastTable, failpoints, write_table
from qbeast_core.delta.schema_merge import MERGE_SETTING
from qbeast_core.errors import CommitConflict, IndexMismatch, InvalidOptions, UnknownColumn
from qbeast_core.jvm.settings import changed_settings
from tests.integration.core.other_threads import Once
from tests.support.delta_log import actions, last_version, plain
from tests.support.invariants import assert_samples, assert_sound
from tests.support.views import viewed

FIRST = (
    "id, named_struct('x', id) s, array(named_struct('x', id)) l, map('k', named_struct('x', id)) m"
)
WIDENING = {"delta.enableTypeWidening": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}


class Twins:
    """An indexed table and a plain one, which get the same rows."""

    def __init__(
        self, spark: SparkSession, directory: Path, columns: str, properties: dict[str, str]
    ) -> None:
        self.spark = spark
        self.indexed, self.plain = str(directory / "indexed"), str(directory / "plain")
        self.next = 0
        rows = self.rows(columns, 5)
        self.write(rows, columns_to_index=["id"], properties=properties)
        rows.write.format("delta").options(**properties).save(self.plain)

    def rows(self, columns: str, count: int = 2) -> DataFrame:
        self.next += count
        return self.spark.sql(f"select {columns} from range({self.next - count}, {self.next})")

    def write(self, rows: DataFrame, **options: Any) -> Any:
        return write_table(rows, path=self.indexed, **options)

    def delta(self, rows: DataFrame, mode: str = "append", **options: str) -> None:
        writer = rows.write.format("delta").mode(mode).option("mergeSchema", "true")
        writer.options(**options).save(self.plain)

    def get(self, columns: str, count: int = 2, **options: Any) -> Any:
        """Append the rows to both tables."""
        rows = self.rows(columns, count)
        result = self.write(rows, merge_schema=True, **options)
        self.delta(rows, **options)
        self.assert_alike()
        return result

    def refuse(self, columns: str, words: str) -> None:
        """Check that both tables refuse the rows."""
        rows, before = self.rows(columns), last_version(self.indexed)
        with pytest.raises(Exception, match="DELTA_"):
            self.delta(rows)
        with pytest.raises(InvalidOptions, match=words) as raised:
            self.write(rows, merge_schema=True)
        assert "\n" not in str(raised.value)
        assert last_version(self.indexed) == before

    def assert_alike(self) -> None:
        ours, theirs = plain(self.spark, self.indexed), plain(self.spark, self.plain)
        assert ours.schema == theirs.schema
        assert sorted(map(str, ours.collect())) == sorted(map(str, theirs.collect()))
        assert self.type_changes(self.indexed) == self.type_changes(self.plain)

    @staticmethod
    def type_changes(path: str) -> list[Any]:
        """The type changes of each column in the newest metadata."""
        found: list[Any] = []
        for version in range(last_version(path) + 1):
            for metadata in actions(path, version, "metaData"):
                fields = json.loads(metadata["schemaString"])["fields"]
                found = [each["metadata"].get("delta.typeChanges") for each in fields]
        return found


def test_columns_and_fields_are_added_at_the_end(spark: SparkSession, tmp_path: Path) -> None:
    twins = Twins(spark, tmp_path, FIRST, {})
    more = twins.rows("id, 1 as new")
    with pytest.raises(InvalidOptions, match=r"'new'.*merge_schema=True"):
        twins.write(more)
    twins.get("'b' as B, id as ID, 1 as a")
    # Fields in another order and another case, of which some are missing.
    twins.get(
        """named_struct('y', 1, 'X', id) as S, id, map('k', named_struct('w', 1, 'x', id)) m,
        array(named_struct('z', 1, 'y', named_struct('u', 2))) l, 'c' as b"""
    )
    twins.get("id, array(named_struct('y', named_struct('v', 3, 'u', 4))) l")
    # A column that is never null in the data can be null in the table, which has older rows.
    twins.get("id, coalesce(id, 1) as never_null")
    twins.get("id, 1 as of_no_row", count=0)
    assert not twins.write(twins.rows("id", 0), merge_schema=True).files
    twins.get("id, 'x' as b", mode="overwrite")
    twins.get("id, 1 as z", mode="overwrite")
    assert_sound(spark, twins.indexed)
    version = last_version(twins.indexed)
    known = plain(spark, twins.indexed).select("id", "z")
    assert twins.write(known, merge_schema=True).version == version + 1
    assert not actions(twins.indexed, version + 1, "metaData")
    rows = twins.rows("id, 1 as only")
    twins.write(rows, mode="overwrite", merge_schema=True, overwrite_schema=True)
    twins.delta(rows, "overwrite", overwriteSchema="true")
    twins.assert_alike()


def test_what_delta_does_not_merge_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    twins = Twins(spark, tmp_path, f"{FIRST}, 1 as n", {})
    twins.refuse("id, 1 as `a b`", "merge_schema cannot add .*INVALID_CHARACTERS")
    twins.refuse("id, 1 as s", "'s' is int in the query and struct")
    twins.refuse("id, named_struct('x', id, 'y', 1, 'Y', 2) as s", "DUPLICATE_COLUMNS|more than")
    twins.refuse("id, map('k', named_struct('x', array(1))) as m", "'m.value.x' is array<int>")
    with pytest.raises(IndexMismatch, match="an append cannot change the columns"):
        twins.write(twins.rows("id, 1 as y"), merge_schema=True, columns_to_index=["y"])
    with pytest.raises(InvalidOptions, match="merge_schema must be true or false, got 'yes'"):
        twins.write(twins.rows("id"), merge_schema="yes")
    # Other types are stored as the table's, as by INSERT.
    twins.write(twins.rows("cast(id as int) id, 5L n, 1 as new"), merge_schema=True)
    assert dict(plain(spark, twins.indexed).dtypes)["n"] == "int"
    with pytest.raises(Exception, match="CAST_OVERFLOW"):
        twins.write(twins.rows("id, 5000000000L n, 1 as newer"), merge_schema=True)
    assert last_version(twins.indexed) == 1


def test_types_are_widened_as_delta_widens_them(spark: SparkSession, tmp_path: Path) -> None:
    first = """cast(id as int) id, cast(id as smallint) a, named_struct('x', 1) s, array(1) l,
        1.25BD d, 1 f, 1 checked"""
    twins = Twins(spark, tmp_path, first, WIDENING | MAPPED)
    for path in (twins.indexed, twins.plain):
        spark.sql(f"alter table delta.`{path}` add constraint c check (checked > 0)").collect()
    twins.get("cast(id as int) id, 5000000000 + id as a, 1 as `a b`, 2 as checked")
    twins.get(
        """cast(id as int) id, named_struct('x', 5000000000 + id, 'y', 2) s, 2 as checked,
        array(5000000000L) l, cast(123456.125 as decimal(12, 3)) d"""
    )
    twins.refuse("cast(id as int) id, 5000000000L as checked", "merge_schema cannot add")
    assert_sound(spark, twins.indexed, where="a > 5")
    # The indexed column: rows of other files are not indexed until `optimize` rewrites them.
    twins.get("5000000000 + id as id, 2 as checked, 3 as last")
    table = QbeastTable.for_path(spark, twins.indexed)
    assert table.check().unindexed_files == len(table.files()) - 1
    assert table.sample(1.0, "id > 5000000000").count() == 2
    table.optimize()
    twins.assert_alike()
    assert_sound(spark, twins.indexed)


def test_rows_with_a_wider_sample_key_join_no_tree_of_other_weights(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    rows = spark.sql("select id, cast(id * 7 % 1000 as int) as k from range(0, 400, 1, 1)")
    options = {"columns_to_index": ["id"], "sample_key": ["k"], "cube_size": 30}
    write_table(rows, path=path, properties=WIDENING, **options)
    wider = spark.sql("select id, id * 7 % 1000 as k from range(0, 400, 1, 1)")
    result = write_table(wider, path=path, merge_schema=True)
    assert result.new_revision and dict(plain(spark, path).dtypes)["k"] == "bigint"
    table = QbeastTable.for_path(spark, path)
    assert 0 < table.check().unindexed_files < len(table.files())
    weighed = plain(spark, path).selectExpr("id", "hash(k)", "id < 50").collect()
    samples = [(0.1, None), (0.5, None), (0.5, "id < 50")]
    assert_samples(table, [tuple(row) for row in weighed], samples)
    table.optimize()
    assert_sound(spark, path, [*range(400), *range(400)], where="id < 50")


def test_slices_and_chosen_columns_go_with_new_columns(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    none = spark.sql("select id, 1 as a from range(0)")
    write_table(none, path=path, columns_to_index="auto:2", slices=True)
    # The first rows choose the columns, also among those that they bring.
    rows = spark.sql("select id, 1 as a, id * 7 % 300 as new from range(300)")
    result = write_table(rows, path=path, merge_schema=True)
    assert result.column_choice and "new" in str(result.column_choice)
    more = spark.sql("select id, 2 as a, id as newer from range(300, 400)")
    write_table(more, path=path, merge_schema=True)
    stored = spark.read.format("delta").load(path)
    assert stored.columns == ["id", "a", "new", "newer", "_qbeast_slice"]
    table = assert_sound(spark, path, range(400), where="new < 50")
    below = stored.where("_qbeast_slice >= 1").count()
    assert below == table.sample(0.5).count()


def test_a_setting_of_the_session_adds_columns_where_it_does_so_in_plain_delta(
    spark: SparkSession, tmp_path: Path
) -> None:
    fed = {"delta.enableChangeDataFeed": "true"}
    twins = Twins(spark, tmp_path, "id, 1 as a, named_struct('x', 1) as s", fed)
    table = QbeastTable.for_path(spark, twins.indexed)

    def source(columns: str) -> DataFrame:
        return spark.sql(f"select id, {columns} from range(3, 9)")

    def plain_merge(rows: DataFrame) -> DeltaMergeBuilder:
        target = DeltaTable.forPath(spark, twins.plain).alias("target")
        return target.merge(rows.alias("source"), "target.id = source.id")

    def plain_write(rows: DataFrame, mode: str, **options: str) -> None:
        rows.write.format("delta").mode(mode).options(**options).save(twins.plain)

    with changed_settings(spark, {MERGE_SETTING: "true"}):
        rows = twins.rows("id, named_struct('y', id) as s, 7 as appended")
        twins.write(rows)
        plain_write(rows, "append")
        twins.assert_alike()

        rows = source("2 as a, named_struct('X', 5, 'z', 'z', 'Y', id) as s, id as merged")
        assert table.merge(rows, on="id").rows_updated == 4
        plain_merge(rows).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        twins.assert_alike()

        # Only what a merge sets is added.
        rows = source("3 as listed, 'x' as computed, 4 as ignored")
        table.merge(rows, on="id", update=["LISTED"], insert=False)
        plain_merge(rows).whenMatchedUpdate(set={"listed": "source.listed"}).execute()
        twins.assert_alike()
        table.merge(
            rows, on="id", update={"computed": "source.computed || source.id"}, insert=False
        )
        set_to = {"computed": "source.computed || source.id"}
        plain_merge(rows).whenMatchedUpdate(set=set_to).execute()
        twins.assert_alike()
        assert "ignored" not in plain(spark, twins.indexed).columns
        with pytest.raises(UnknownColumn, match="'strange'"):
            table.merge(rows, on="id", update={"strange": "source.listed"})

        rows = source("5 as replaced")
        table.replace_where(rows, "id >= 3")
        plain_write(rows, "overwrite", replaceWhere="id >= 3")
        twins.assert_alike()
        feeds = []
        for path in (twins.indexed, twins.plain):
            feed = spark.read.format("delta").option("readChangeFeed", "true")
            changes = feed.option("startingVersion", 2).load(path).drop("_commit_timestamp")
            feeds.append(sorted(map(str, changes.collect())))
        assert feeds[0] == feeds[1] and len(feeds[0]) > 20

        rows = source("6 as overwritten")
        twins.write(rows, mode="overwrite")
        plain_write(rows, "overwrite")
        twins.assert_alike()
        assert_sound(spark, twins.indexed)
        table.replace_matching(source("8 as matched").where("id > 5"), on="id")
        found = plain(spark, twins.indexed).where("matched = 8 and overwritten is null")
        assert (found.count(), plain(spark, twins.indexed).count()) == (3, 6)
        assert_sound(spark, twins.indexed)

        for options in ({}, {"mode": "overwrite", "overwrite_schema": False}):
            with pytest.raises(InvalidOptions, match="'refused'"):
                twins.write(source("9 as refused"), merge_schema=False, **options)
        twins.write(source("9 as only"), mode="overwrite", overwrite_schema=True)
        assert plain(spark, twins.indexed).columns == ["id", "only"]
    version = last_version(twins.indexed)
    table.merge(source("1 as only, 2 as ignored"), on="id")
    assert last_version(twins.indexed) == version + 1
    table.merge(source("1 as only, 2 as asked_for"), on="id", merge_schema=True)
    assert plain(spark, twins.indexed).columns == ["id", "only", "asked_for"]


def test_a_merge_widens_the_column_that_places_rows(spark: SparkSession, tmp_path: Path) -> None:
    twins = Twins(spark, tmp_path, "cast(id as int) id, 1 as a", WIDENING)
    twins.get("cast(id as int) + 100 as id, 1 as a")
    rows = spark.sql("select explode(array(2L, 3L, 5000000000L)) as id, 2 as a, 3 as new")
    QbeastTable.for_path(spark, twins.indexed).merge(rows, on="id", merge_schema=True)
    merge = DeltaTable.forPath(spark, twins.plain).alias("t").merge(rows.alias("s"), "t.id = s.id")
    every = merge.withSchemaEvolution().whenMatchedUpdateAll().whenNotMatchedInsertAll()
    every.execute()
    twins.assert_alike()
    table = QbeastTable.for_path(spark, twins.indexed)
    assert table.check().unindexed_files == 1
    assert (
        table.sample(1.0, "id > 2").count() == plain(spark, twins.indexed).where("id > 2").count()
    )
    table.optimize()
    assert_sound(spark, twins.indexed, where="id > 2")


def test_rows_that_are_read_back_have_columns_of_nulls_without_a_type(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Delta for Spark 4.0 leaves them out, as later releases do with this setting."""
    path, rows = str(tmp_path), spark.sql("select id, null as v from range(10)")
    with changed_settings(
        spark, {"spark.databricks.delta.createDataFrame.dropNullColumns": "true"}
    ):
        write_table(rows, path=path, columns_to_index="id", sample_key="all")
        write_table(rows, path=path)
    table = QbeastTable.for_path(spark, path)
    assert table.latest_revision.sample_key == ("id", "v")
    assert table.check().ok and table.sample(1.0).count() == 20


def test_columns_of_nulls_without_a_type_are_as_in_plain_delta(
    spark: SparkSession, tmp_path: Path
) -> None:
    twins = Twins(spark, tmp_path, "id, null as never", {})
    twins.get("id, null as nothing")
    twins.get("id, named_struct('x', null, 'y', 1) as s")
    # Delta for Spark 4.0 reads rows without their columns and fields of type void.
    (metadata,) = actions(twins.indexed, 1, "metaData")
    types = {each["name"]: each["type"] for each in json.loads(metadata["schemaString"])["fields"]}
    assert types["nothing"] == "void"
    indexed = QbeastTable.for_path(spark, twins.indexed)
    as_delta = DeltaTable.forPath(spark, twins.plain)
    indexed.update({"id": "id + 100"}, where="nothing is null and id = 6")
    as_delta.update("id = 6", {"id": expr("id + 100")})
    twins.assert_alike()
    indexed.delete("s.y = 1 and id % 2 = 0")
    as_delta.delete("s.y = 1 and id % 2 = 0")
    twins.assert_alike()
    indexed.optimize()
    twins.assert_alike()
    twins.refuse("id, named_struct('x', null) as t", "'t'.*cast")
    twins.refuse("id, array(null) as t", r"'t\.element'.*cast")
    with pytest.raises(InvalidOptions, match=r"'m\.value'.*cast"):
        rows = twins.rows("id, map('k', null) as m")
        write_table(rows, path=str(tmp_path / "other"), columns_to_index=["id"])
    assert last_version(str(tmp_path / "other")) == -1
    # The table's type stays, also where plain Delta lets the first value decide on it.
    with pytest.raises(InvalidOptions, match="'nothing' is string in the query and void in"):
        twins.write(twins.rows("id, 'x' as nothing"), merge_schema=True)
    assert_sound(spark, twins.indexed)


def test_another_writer_may_add_the_columns_first(spark: SparkSession, tmp_path: Path) -> None:
    twins = Twins(spark, tmp_path, FIRST, MAPPED)
    rows, others = twins.rows("id, 1 as one, 2 as new"), twins.rows("id, 5L as new")
    other = Once(lambda: twins.write(others, merge_schema=True))
    with failpoints.at(failpoints.BEFORE_COMMIT, other):
        result = twins.write(rows, merge_schema=True)
    assert (other.happened, result.version) == (1, 2)
    # The second write stores its values as the type that the first one added.
    twins.delta(others)
    twins.delta(rows.withColumn("new", rows.new.cast("bigint")))
    twins.assert_alike()
    assert_sound(spark, twins.indexed)


def test_a_merge_that_only_adds_columns_says_so(spark: SparkSession, tmp_path: Path) -> None:
    write_table(spark.range(10), path=tmp_path, columns_to_index="id")
    table, empty = (
        QbeastTable.for_path(spark, tmp_path),
        spark.range(0).selectExpr("id", "1 as new"),
    )
    added = table.merge(empty, "id", merge_schema=True)
    assert added.changed and added.version == 1
    assert str(added) == "no row changed, but columns were added or widened"
    again = table.merge(empty, "id", merge_schema=True)
    assert (again.changed, again.version, str(again)) == (False, 1, "no row changed")


def test_a_replacement_by_no_rows_adds_columns_to_a_table_with_a_change_feed(
    spark: SparkSession, tmp_path: Path
) -> None:
    ours, twin = str(tmp_path / "ours"), str(tmp_path / "twin")
    feed = {"delta.enableChangeDataFeed": "true"}
    write_table(spark.range(10), path=ours, columns_to_index="id", properties=feed)
    spark.range(10).write.format("delta").options(**feed).save(twin)
    empty = spark.range(0).selectExpr("id", "1 as extra")
    QbeastTable.for_path(spark, ours).replace_where(empty, "true", merge_schema=True)
    writer = empty.write.format("delta").mode("overwrite")
    writer.option("replaceWhere", "true").option("mergeSchema", "true").save(twin)
    left, expected = (spark.read.format("delta").load(path) for path in (ours, twin))
    assert left.schema == expected.schema
    assert left.count() == expected.count() == 0
    changes = spark.read.format("delta").option("readChangeFeed", "true")
    deleted = changes.option("startingVersion", 1).load(ours)
    assert deleted.where("_change_type = 'delete'").count() == 10


@pytest.mark.parametrize("merge_schema", [False, True])
@pytest.mark.parametrize(
    ("change", "columns", "value"),
    [
        ("drop column z", ["id", "y"], None),
        ("rename column z to zz", ["id", "zz", "y"], None),
        ("alter column z set default 7", ["id", "z", "y"], 7),
    ],
)
def test_columns_that_the_rows_lack_are_those_of_the_commit(
    spark: SparkSession,
    tmp_path: Path,
    change: str,
    columns: list[str],
    value: int | None,
    merge_schema: bool,
) -> None:
    path = str(tmp_path)
    features = MAPPED | {"delta.feature.allowColumnDefaults": "supported"}
    old = spark.range(9).selectExpr("id", "2 z", "3 y")
    write_table(old, path=path, columns_to_index="id", properties=features)
    other = Once(lambda: spark.sql(f"alter table delta.`{path}` {change}"))
    with failpoints.at(failpoints.BEFORE_COMMIT, other):
        rows = spark.range(9, 12).selectExpr("id", "4 y")
        write_table(rows, path=path, merge_schema=merge_schema)
    assert other.happened
    table = plain(spark, path)
    assert table.columns == columns
    if columns[1] != "y":
        assert {row[1] for row in table.where("id >= 9").collect()} == {value}
    assert_sound(spark, path)


def test_a_condition_of_a_replacement_is_met_by_the_defaults_of_the_commit(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    features = {"delta.feature.allowColumnDefaults": "supported"}
    old = spark.range(9).selectExpr("id", "2 z")
    write_table(old, path=path, columns_to_index="id", properties=features)
    change = f"alter table delta.`{path}` alter column z set default 7"
    with failpoints.at(failpoints.BEFORE_COMMIT, Once(lambda: spark.sql(change))):
        QbeastTable.for_path(spark, path).replace_where(spark.range(5), "id < 9")
    assert {row.z for row in plain(spark, path).collect()} == {7}


def test_fields_that_the_rows_lack_are_not_filled_for_other_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    old = spark.range(9).selectExpr("id", "named_struct('x', 1, 'y', 2) s")
    write_table(old, path=path, columns_to_index="id", properties=MAPPED)
    other = Once(lambda: spark.sql(f"alter table delta.`{path}` drop column s.y"))
    with (
        failpoints.at(failpoints.BEFORE_COMMIT, other),
        pytest.raises(CommitConflict, match="another writer changed the columns"),
    ):
        rows = spark.range(9, 12).selectExpr("id", "named_struct('x', 1) s")
        write_table(rows, path=path, merge_schema=True)
    assert plain(spark, path).count() == 9


@pytest.mark.parametrize(
    ("options", "on", "matched"),
    [
        ({"where": "extra > 50"}, "and extra > 50", "then update set *"),
        ({"update_where": "extra > 50"}, "", "and extra > 50 then update set *"),
        (
            {"update": {"a": "extra + 1", "extra": "extra"}},
            "",
            "then update set a = extra + 1, extra = source.extra",
        ),
    ],
)
def test_names_that_only_the_source_has_stay_its_own(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any], on: str, matched: str
) -> None:
    twins = Twins(spark, tmp_path, "id, cast(id as int) a", {})
    source = spark.sql("select id, cast(id as int) a, cast(id * 10 as int) extra from range(3, 8)")
    QbeastTable.for_path(spark, twins.indexed).merge(
        source, "id", insert=False, merge_schema=True, **options
    )
    with viewed(source):
        spark.sql(
            f"merge with schema evolution into delta.`{twins.plain}` target using source "
            f"on target.id = source.id {on} when matched {matched}"
        )
    twins.assert_alike()


def test_a_condition_of_a_replacement_may_name_a_column_that_it_adds(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    feed = {"delta.enableChangeDataFeed": "true"}
    write_table(spark.range(9), path=path, columns_to_index="id", properties=feed)
    source = spark.range(3, 6).selectExpr("id", "id + 1 as extra")
    table = QbeastTable.for_path(spark, path)
    table.replace_matching(source, "id", where="extra > 5", merge_schema=True)
    expected = [*((i, None) for i in range(9) if i != 5), (3, 4), (4, 5), (5, 6)]
    assert sorted(map(str, map(tuple, plain(spark, path).collect()))) == sorted(map(str, expected))
    assert_sound(spark, path)
