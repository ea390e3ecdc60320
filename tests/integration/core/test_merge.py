"""A merge has the result of a merge in plain Python, and rewrites only files that need it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from qbeast_core import QbeastTable, failpoints, write_table
from qbeast_core.errors import AmbiguousMerge, InvalidOptions, ReplaceMismatch, UnknownColumn
from qbeast_core.jvm.settings import changed_settings
from qbeast_core.spark.keys import LONGEST_TEXT, key_condition
from tests.integration.core.merge_tables import (
    contents,
    create,
    files_holding,
    rows,
    upsert_by_delta,
)
from tests.integration.core.other_threads import Once
from tests.support.counters import counting
from tests.support.delta_log import actions, last_version, live_adds, plain
from tests.support.invariants import assert_rows_in_their_cubes, assert_sound, assert_walkable

pytestmark = pytest.mark.usefixtures("as_for_large_data")


def merged(
    before: Counter[tuple[Any, ...]], source: Mapping[int, tuple[Any, ...]]
) -> Counter[tuple[Any, ...]]:
    """An upsert by the first column, in plain Python."""
    known = {row[0] for row in before}
    after = Counter({source.get(row[0], row): count for row, count in before.items()})
    return after + Counter(row for key, row in source.items() if key not in known)


def test_an_upsert_rewrites_exactly_the_files_that_hold_a_key(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = create(spark, tmp_path)
    before, holding = contents(spark, path), files_holding(spark, path, "id in (3, 700, 701)")
    files = set(live_adds(path))
    wanted = {3: (3, 17, 900, "new"), 700: (700, 30, 20, "new"), 701: (701, 970, 30, "new")}
    wanted |= {i: (i, i % 900 + 20, 50, "in") for i in range(4000, 4020)}
    source = spark.createDataFrame(list(wanted.values()), "id long, a int, b int, s string")
    result = QbeastTable.for_path(spark, path).merge(source, "id")
    assert (result.rows_updated, result.rows_inserted, result.rows_deleted) == (3, 20, 0)
    assert {remove["path"] for remove in actions(path, 1, "remove")} == holding
    assert files - holding <= set(live_adds(path))
    assert contents(spark, path) == merged(before, wanted)
    assert (result.files_removed, result.version) == (len(holding), 1)
    assert not result.new_revision
    after = assert_sound(spark, path, [row[0] for row in merged(before, wanted).elements()])
    assert {file.revision_id for file in after.files()} == {1}
    assert_rows_in_their_cubes(spark, path)
    assert_walkable(spark, path)
    assert "3 updated" in str(result)


def cubes(spark: SparkSession, path: str) -> Counter[str]:
    blocks = QbeastTable.for_path(spark, path).blocks().collect()
    return Counter(cube for row in blocks for cube in [row.cubeId] * row.elementCount)


def test_rows_that_do_not_move_stay_in_their_cubes(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark, tmp_path)
    before = cubes(spark, path)
    source = spark.range(0, 400, 9).selectExpr("id", "'new' as s", "id as unknown")
    result = QbeastTable.for_path(spark, path).merge(source, "ID", insert=False)
    assert result.rows_updated == 45
    assert cubes(spark, path) == before
    assert plain(spark, path).where("s = 'new'").count() == 45
    assert_sound(spark, path, range(1500))
    assert_rows_in_their_cubes(spark, path)


@pytest.mark.parametrize("strangers", [0, 1])
def test_indexed_columns_that_are_set_to_what_they_are_move_no_row(
    spark: SparkSession, tmp_path: Path, strangers: int
) -> None:
    path = create(spark, tmp_path)
    before, in_cubes = contents(spark, path), cubes(spark, path)
    known = plain(spark, path).where("id % 9 = 0").withColumn("s", F.lit("new"))
    source = known.unionByName(rows(spark, 9000, strangers))
    wanted = {row[0]: tuple(row) for row in source.collect()}
    result = QbeastTable.for_path(spark, path).merge(source, "id")
    assert (result.rows_updated, result.rows_inserted) == (len(wanted) - strangers, strangers)
    assert contents(spark, path) == merged(before, wanted)
    # An inserted row may lower the weights of the cubes on its way by a little.
    assert (cubes(spark, path) - in_cubes).total() <= strangers * 20
    assert_sound(spark, path, [*range(1500), *range(9000, 9000 + strangers)])
    assert_rows_in_their_cubes(spark, path)


@pytest.mark.parametrize(
    ("value", "revision"), [("cast(rand() * 900 as int) + 50", 1), ("cast(source.id as int)", 2)]
)
def test_moved_rows_are_in_the_cubes_of_their_new_values(
    spark: SparkSession, tmp_path: Path, value: str, revision: int
) -> None:
    path = create(spark, tmp_path)
    source = spark.range(0, 1500, 3).select("id")
    result = QbeastTable.for_path(spark, path).merge(
        source, "id", update={"a": value, "s": "'moved'"}
    )
    assert (result.rows_updated, result.rows_inserted) == (500, 0)
    assert result.revision_id == revision
    assert plain(spark, path).where("s = 'moved'").count() == 500
    assert_sound(spark, path, range(1500))
    assert_rows_in_their_cubes(spark, path)


def test_a_random_indexed_value_counts_as_moving_the_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, asked = spark.range(0, 1500, 3).select("id"), []
    for value in ("target.a", "if(rand() < 2, target.a, 0)"):
        path = create(spark, tmp_path / str(len(asked)))
        with counting(spark) as counts:
            QbeastTable.for_path(spark, path).merge(source, "id", update={"a": value}, insert=False)
        asked.append(counts.jobs)
    assert asked[0] < asked[1], "it was not stored between measuring and writing"


def test_expressions_and_conditions_use_both_sides(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark, tmp_path)
    before = {row.id: row for row in plain(spark, path).collect()}
    source = spark.range(0, 3000, 3).selectExpr("id", "cast(id % 7 as int) as n")
    result = QbeastTable.for_path(spark, path).merge(
        source,
        ["id"],
        update={"s": "concat(DEST.s, SOURCE.n)", "b": "SOURCE.n"},
        insert={"id": "SOURCE.id", "a": "SOURCE.n * 100 + 50", "s": "'in'"},
        where=["DEST.a < 500 and SOURCE.id >= 0", "current_date() > date'2020-01-01'"],
        update_where="SOURCE.n > DEST.b % 3",
        insert_where="SOURCE.id >= 2000",
        source_alias="SOURCE",
        target_alias="DEST",
        user_metadata="told",
    )
    expected: Counter[tuple[Any, ...]] = Counter()
    updated = 0
    for id_, row in before.items():
        if id_ % 3 == 0 and row.a < 500 and id_ % 7 > row.b % 3:
            expected[(id_, row.a, id_ % 7, f"old{id_ % 7}")] += 1
            updated += 1
        else:
            expected[tuple(row)] += 1
    inserted = [i for i in range(0, 3000, 3) if i >= 2000]
    expected.update((i, i % 7 * 100 + 50, None, "in") for i in inserted)
    assert contents(spark, path) == expected
    assert (result.rows_updated, result.rows_inserted) == (updated, len(inserted))
    assert actions(path, 1, "commitInfo")[0]["userMetadata"] == "told"
    assert_sound(spark, path, [*range(1500), *inserted])
    assert_rows_in_their_cubes(spark, path)


def test_null_keys_match_nothing(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    data = [(1, None), (1, "x"), (None, "x"), (None, None), (2, "y")]
    table = spark.createDataFrame([(*row, 0) for row in data], "k int, t string, v int")
    write_table(table, path=path, columns_to_index=["k", "t"], cube_size=10)
    source = spark.createDataFrame([(*row, 1) for row in data], "k int, t string, v int")
    result = QbeastTable.for_path(spark, path).merge(source, ["k", "t"])
    assert (result.rows_updated, result.rows_inserted) == (2, 3)
    expected = Counter([(1, "x", 1), (2, "y", 1)])
    expected.update((k, t, v) for k, t in data if k is None or t is None for v in (0, 1))
    assert contents(spark, path) == expected


def test_two_source_rows_for_one_row_are_an_error(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark, tmp_path)
    twice = rows(spark, 7, 1).union(rows(spark, 7, 1)).union(rows(spark, 9000, 1))
    table = QbeastTable.for_path(spark, path)
    with pytest.raises(AmbiguousMerge, match="id 7"):
        table.merge(twice, "id")
    assert last_version(path) == 0
    # Rows that are only inserted, or of which one is left, are not.
    inserted = table.merge(twice.union(rows(spark, 9000, 1)), "id", update=False)
    assert (inserted.rows_inserted, inserted.files_removed) == (2, 0)
    numbered = twice.withColumn("n", F.monotonically_increasing_id())
    chosen = table.merge(numbered, "id", update={"s": "source.n"}, update_where="n = 0")
    assert (chosen.rows_updated, chosen.rows_inserted) == (1, 0)
    assert_sound(spark, path, [*range(1500), 9000, 9000])


def test_an_ambiguous_merge_reports_keys_of_any_name(spark: SparkSession, tmp_path: Path) -> None:
    path, key = str(tmp_path), "`count`"
    named = rows(spark, 0, 10).selectExpr(f"id as {key}", "a", "id as times")
    write_table(named, path=path, columns_to_index=["a"])
    source = named.where(f"{key} = 7").unionByName(named.where(f"{key} = 7"))
    with pytest.raises(AmbiguousMerge, match=r"2 rows.*with count 7, times 7;"):
        QbeastTable.for_path(spark, path).merge(source, ["count", "times"])


def test_errors_show_values_that_python_lacks(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    late = spark.sql("select id, date_add(date'9999-12-31', int(id)) day, 'a' s from range(1, 4)")
    write_table(late, path=path, columns_to_index=["id"], cube_size=10)
    table = QbeastTable.for_path(spark, path)
    with pytest.raises(AmbiguousMerge, match=r"2 rows.*with day \+10000-01-02, s 'a';"):
        table.merge(late.where("id = 2").union(late.where("id = 2")), ["day", "s"])
    with pytest.raises(ReplaceMismatch, match=r": id 3, day \+10000-01-03, s 'a'; replace_where"):
        table.replace_where(late.where("id = 3"), "id = 1")
    with pytest.raises(InvalidOptions, match=r"group_by day has a value.*cast\(day as string\)"):
        table.estimate("count(*)", group_by="day")
    groups = table.estimate("count(*)", group_by="cast(day as string)").groups
    assert groups[0].group == ("+10000-01-01",)


def test_a_key_with_a_collation_is_not_compared_as_python_does(
    spark: SparkSession, tmp_path: Path
) -> None:
    kind, path = "string collate utf8_lcase", str(tmp_path)
    letters = spark.sql(f"select id, cast(char(97 + id % 26) as {kind}) c from range(52)")
    source = spark.sql(f"select -1L id, cast(col1 as {kind}) c from values ('B'), ('a')")
    with changed_settings(spark, {"spark.databricks.delta.schema.typeCheck.enabled": "false"}):
        write_table(letters, path=path, columns_to_index=["id"])
        result = QbeastTable.for_path(spark, path).merge(source, "c")
    assert (result.rows_inserted, result.rows_updated) == (0, 4)
    known = key_condition(source, ["c"], letters.schema, "t")
    assert (
        known is not None and letters.alias("t").where(known).where("c in ('a', 'b')").count() == 4
    )


def test_keys_with_long_texts_skip_no_files(spark: SparkSession, tmp_path: Path) -> None:
    path, longest = str(tmp_path), LONGEST_TEXT
    keys = spark.sql(f"select id, concat(repeat('x', {longest - 2} + id), 'y') k from range(4)")
    write_table(keys, path=path, columns_to_index=["id"])
    short, cut = (key_condition(keys.where(f"id = {i}"), ["k"], keys.schema, "t") for i in (1, 2))
    assert short is not None and keys.alias("t").where(short).count() == 1
    assert cut is not None and keys.alias("t").where(cut).count() == 4
    result = QbeastTable.for_path(spark, path).merge(keys.selectExpr("id + 10 as id", "k"), "k")
    assert (result.rows_updated, result.rows_inserted) == (4, 0)


def test_keys_that_are_not_utf_8_skip_no_files(spark: SparkSession, tmp_path: Path) -> None:
    """With U+FFFD, the key seems to be above the first file's maximum. Only Delta understands `%`,
    so it compares the key with the files."""
    path, texts = str(tmp_path), (b"a\x80", "a\xe9".encode(), b"b")
    kept, above = (
        spark.createDataFrame(list(enumerate(part)), "id long, b binary")
        for part in (texts[:2], texts[2:])
    )
    for part in (kept, above.selectExpr("9L as id", "b")):
        stored = part.selectExpr("id", "cast(b as string) as s").coalesce(1)
        write_table(stored, path=path, columns_to_index=["id"])
    # A constant would become a filter of Parquet, which compares it as U+FFFD as well.
    source = kept.where("id = 0").selectExpr("id + 20 as id", "cast(b as string) as s")
    result = QbeastTable.for_path(spark, path).merge(source, "s", where="target.id % 2 = 0")
    assert (result.rows_updated, result.rows_inserted) == (1, 0)
    assert {row.id for row in plain(spark, path).collect()} == {1, 9, 20}


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_float_finds_the_whole_numbers_that_it_finds_in_plain_delta(
    spark: SparkSession, tmp_path: Path, ansi: str
) -> None:
    """Without ANSI mode, Spark compares them as floats, which lack the last digits."""
    indexed, twin = str(tmp_path / "t"), str(tmp_path / "twin")
    source = spark.sql("select float(16777216) id, 'new' s")
    for number in (16777217, 5):
        before = spark.sql(f"select {number}L id, 'old' s")
        write_table(before, path=indexed, columns_to_index=["id"])
        before.write.format("delta").mode("append").save(twin)
    with changed_settings(spark, {"spark.sql.ansi.enabled": ansi}):
        rows_before = spark.read.format("delta").load(twin).alias("t")
        matched = rows_before.join(source.alias("s"), F.expr("t.id = s.id"), "left_semi")
        known = key_condition(source, ["id"], rows_before.schema, "t")
        assert known is not None and matched.where(known).count() == matched.count()
        QbeastTable.for_path(spark, indexed).merge(source, "id")
        upsert_by_delta(spark, twin, source, "id")
    assert contents(spark, indexed) == contents(spark, twin)


@pytest.mark.parametrize("exact", [False, True])
def test_a_decimal_finds_the_rounded_keys_that_it_finds_in_plain_delta(
    spark: SparkSession, tmp_path: Path, exact: bool
) -> None:
    """Spark rounds decimals that together need more than 38 digits before it compares them."""
    indexed, twin = str(tmp_path / "t"), str(tmp_path / "twin")
    source = spark.sql(f"select 9L id, cast(10 as decimal({28 if exact else 38}, 0)) k, 'new' s")
    for number in ("10.4", "100.4"):
        before = spark.sql(f"select 1L id, cast({number} as decimal(38, 10)) k, 'old' s")
        write_table(before, path=indexed, columns_to_index=["id"])
        before.write.format("delta").mode("append").save(twin)
    result = QbeastTable.for_path(spark, indexed).merge(source, "k")
    assert result.rows_updated == (0 if exact else 1)
    upsert_by_delta(spark, twin, source, "k")
    assert contents(spark, indexed) == contents(spark, twin)


def test_values_beyond_the_range_make_a_revision(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark, tmp_path)
    source = rows(spark, 1400, 300, shift=3000)
    result = QbeastTable.for_path(spark, path).merge(source, "id")
    assert (result.rows_updated, result.rows_inserted) == (100, 200)
    assert (result.revision_id, result.new_revision) == (2, True)
    assert {add["tags"]["revision"] for add in actions(path, 1, "add")} >= {"2"}
    after = assert_sound(spark, path, range(1700), where="a > 3500 or b < 100")
    assert after.sample(1.0, "a >= 3000").count() == 300
    assert_rows_in_their_cubes(spark, path)
    assert_walkable(spark, path)


def test_an_older_revision_stays_walkable(spark: SparkSession, tmp_path: Path) -> None:
    """Its upper cubes lose the blocks that held their rows down (docs/format.md 8.3)."""
    path = create(spark, tmp_path)
    write_table(rows(spark, 1500, 170), path=path)  # lowers the weights of upper cubes
    write_table(rows(spark, 1670, 300, shift=2000), path=path)
    lowest = plain(spark, path).where("a < 1000").orderBy(F.hash("a", "b")).limit(30)
    ids = [row.id for row in lowest.select("id").collect()]
    source = spark.createDataFrame([(i, "new") for i in ids], "id long, s string")
    table = QbeastTable.for_path(spark, path)
    assert table.merge(source, "id", insert=False).rows_updated == 30
    assert_sound(spark, path, range(1970), where="a between 100 and 300")
    assert_rows_in_their_cubes(spark, path)
    assert_walkable(spark, path)


def test_files_without_an_index_are_found_and_end_indexed(
    spark: SparkSession, tmp_path: Path
) -> None:

    path = create(spark, tmp_path, **{"delta.enableDeletionVectors": "true"})
    rows(spark, 1500, 100).write.format("delta").mode("append").save(path)
    DeltaTable.forPath(spark, path).delete("id % 2 = 0 and id < 60 or id = 1501")
    assert any("deletionVector" in add for add in live_adds(path).values())
    table = QbeastTable.for_path(spark, path)
    source = rows(spark, 40, 10).union(rows(spark, 1500, 10)).withColumn("s", F.lit("new"))
    result = table.merge(source, "id")
    assert (result.rows_updated, result.rows_inserted) == (5 + 9, 5 + 1)
    gone = {i for i in range(60) if i % 2 == 0} - set(range(40, 50))
    left = sorted(set(range(1600)) - gone)
    assert sorted(row.id for row in plain(spark, path).collect()) == left
    assert plain(spark, path).where("s = 'new'").count() == 20
    after = QbeastTable.for_path(spark, path)
    assert all(file.revision_id == 1 for file in after.files())
    assert after.check().ok
    assert_walkable(spark, path)


def test_the_change_feed_records_what_happened(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark, tmp_path, **{"delta.enableChangeDataFeed": "true"})
    table = QbeastTable.for_path(spark, path)
    source = rows(spark, 1490, 20).selectExpr("id", "a", "b", "uuid() as s")
    table.merge(source, "id")
    table.update({"s": "'set'"}, "id = 5")
    table.delete("id = 6")
    table.replace_where(rows(spark, 7, 1).withColumn("s", F.lit("again")), "id = 7")
    table.replace_matching(rows(spark, 8, 1).withColumn("s", F.lit("again")), "id")
    told = spark.read.format("delta").option("readChangeFeed", "true")
    feed = told.option("startingVersion", 1).load(path)
    pre, post = "update_preimage", "update_postimage"
    counted = feed.groupBy("_commit_version", "_change_type").count().collect()
    assert {(row[0], row[1]): row[2] for row in counted} == {
        (1, pre): 10,
        (1, post): 10,
        (1, "insert"): 10,
        (2, pre): 1,
        (2, post): 1,
        (3, "delete"): 1,
        (4, "delete"): 1,
        (4, "insert"): 1,
        (5, "delete"): 1,
        (5, "insert"): 1,
    }
    # What the feed says is what the table has, also of values that are drawn.
    new = feed.where(f"_commit_version = 1 and _change_type != '{pre}'").select("id", "s")
    assert sorted(new.collect()) == sorted(
        plain(spark, path).where("id >= 1490").select("id", "s").collect()
    )


def test_a_merge_sees_what_another_writer_committed_first(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = create(spark, tmp_path)
    append = Once(lambda: write_table(rows(spark.newSession(), 1500, 100), path=path))
    source = rows(spark, 1400, 300).withColumn("s", F.lit("new"))
    with failpoints.at(failpoints.BEFORE_COMMIT, append):
        result = QbeastTable.for_path(spark, path).merge(source, "id")
    assert (append.happened, result.version) == (1, 2)
    assert (result.rows_updated, result.rows_inserted) == (200, 100)
    assert plain(spark, path).where("s = 'new'").count() == 300
    assert_sound(spark, path, range(1700))
    assert_walkable(spark, path)


@pytest.mark.parametrize("keys", ["few", "many"])
def test_keys_in_a_narrow_range_touch_few_files(
    spark: SparkSession, tmp_path: Path, keys: str
) -> None:
    path, count = str(tmp_path), 40_000
    table = spark.range(0, count, 1, 2).selectExpr("id as k", "uuid() as t")
    written = write_table(table, path=path, columns_to_index=["k"], cube_size=64)
    assert written.files >= 500
    size = sum(add["size"] for add in live_adds(path).values())
    step = 1 if keys == "few" else 4  # up to a thousand keys are listed
    first = 17_000
    source = spark.range(first * step, first * step + count // 100 * step, 1, 1).selectExpr(
        f"cast(id / {step} as bigint) as k", "'new' as t", "id as n"
    )
    holding = files_holding(spark, path, f"k between {first} and {first + count // 100 - 1}")
    result = QbeastTable.for_path(spark, path).merge(
        source, "k", update_where=f"source.n % {step} = 0"
    )
    assert result.rows_updated == count // 100
    assert {remove["path"] for remove in actions(path, 1, "remove")} == holding
    assert result.bytes_removed <= 0.05 * size
    assert result.bytes_read <= 0.1 * size
    assert math.isclose(result.bytes_added, result.bytes_removed, rel_tol=0.9)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"on": []}, InvalidOptions, "on names no column"),
        ({"on": "ident"}, UnknownColumn, "'ident'"),
        ({"on": "id", "update": ["x"]}, UnknownColumn, "'x'"),
        ({"on": "id", "update": {"s": "nowhere + 1"}}, InvalidOptions, "nowhere"),
        ({"on": "id", "insert": {"s": "target.s"}}, InvalidOptions, "target"),
        ({"on": "id", "update": {"s": "'x'", "S": "'y'"}}, InvalidOptions, "as 's' and as 'S'"),
        ({"on": "id", "where": "rand() < 0.5"}, InvalidOptions, "not deterministic"),
        ({"on": "id", "where": "target.id in (select 1)"}, InvalidOptions, "subquery"),
        ({"on": "id", "where": "no such"}, InvalidOptions, "is not valid"),
        ({"on": "id", "where": ""}, InvalidOptions, "''"),
        ({"on": "id", "insert_where": "target.a > 5"}, InvalidOptions, "target"),
        ({"on": "id", "update": False, "insert": False}, InvalidOptions, "nothing"),
        ({"on": "id", "update": {}, "insert": {}}, InvalidOptions, "nothing"),
        (
            {"on": "id", "update_where": "newer(source.a, target.a)"},
            InvalidOptions,
            "update_where is not valid: .*PYTHON_UDF_IN_ON_CLAUSE",
        ),
        ({"on": "id", "source_alias": "T", "target_alias": "t"}, InvalidOptions, "the same name"),
    ],
)
def test_an_impossible_merge_is_rejected_before_anything_is_read(
    spark: SparkSession,
    unchanged: str,
    options: dict[str, Any],
    error: type[Exception],
    message: str,
) -> None:
    spark.udf.register("newer", lambda ours, others: ours > others, "boolean")
    failing = rows(spark, 0, 5).withColumn("s", F.expr("raise_error('the source was read')"))
    with pytest.raises(error, match=message):
        QbeastTable.for_path(spark, unchanged).merge(failing, **options)
    assert last_version(unchanged) == 0


def test_keys_of_types_that_spark_cannot_compare_are_rejected_before_anything_is_read(
    spark: SparkSession, unchanged: str
) -> None:
    read = "raise_error('the source was read')"
    failing = rows(spark, 0, 5).withColumn("id", F.expr(f"array(cast({read} as bigint))"))
    table = QbeastTable.for_path(spark, unchanged)
    for change in (table.merge, table.replace_matching):
        with pytest.raises(InvalidOptions, match=r"on=\['id'\] is not valid: .*DATATYPE_MISMATCH"):
            change(failing, "id")
    assert last_version(unchanged) == 0


@pytest.fixture(scope="module")
def unchanged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    return create(spark, tmp_path_factory.mktemp("unchanged"))


def test_nothing_to_merge_writes_nothing(spark: SparkSession, unchanged: str) -> None:
    table = QbeastTable.for_path(spark, unchanged)
    assert not table.merge(rows(spark, 0, 0), "id").changed
    assert not table.merge(rows(spark, 5000, 10), "id", insert=False).changed
    assert last_version(unchanged) == 0
