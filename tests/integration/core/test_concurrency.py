"""Concurrent writers: every row is stored once, in the cube that the index describes."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pytest
from delta.exceptions import ConcurrentDeleteReadException
from pyspark import InheritableThread
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from qbeast_core import QbeastTable, failpoints, write_table
from qbeast_core.delta.catalog import Catalog
from qbeast_core.delta.operations import Operation
from qbeast_core.errors import CommitConflict, IndexMismatch, InvalidOptions, NotRegistered
from qbeast_core.locate.address import TableAddress
from qbeast_core.locate.open_table import WritableTable
from qbeast_core.locate.retry import MAX_ATTEMPTS
from tests.integration.core.other_threads import (
    PATIENCE_SECONDS,
    Meeting,
    Once,
    in_other_thread,
    run_in_parallel,
)
from tests.support.delta_log import last_version, live_adds, plain, revisions
from tests.support.hashed_rows import rows
from tests.support.invariants import assert_rows_in_their_cubes, assert_sound, assert_walkable


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    """A table of 2000 rows with a in 0..999."""
    write_table(
        rows(spark, 0, 2000), path=str(tmp_path), columns_to_index=["a", "b"], cube_size=150
    )
    return str(tmp_path)


def appends(
    spark: SparkSession, path: str, first: int, count: int, shift: int = 0
) -> Callable[[], Any]:
    """Appends rows in another session."""
    return lambda: write_table(rows(spark.newSession(), first, count, shift), path=path)


def test_two_appends_at_once_both_land(spark: SparkSession, path: str) -> None:
    with failpoints.at(failpoints.BEFORE_COMMIT, Meeting(2)):
        results = run_in_parallel(appends(spark, path, 2000, 300), appends(spark, path, 2300, 300))
    assert sorted(result.version for result in results) == [1, 2]
    assert {result.revision_id for result in results} == {1}
    assert_sound(spark, path, range(2600))
    assert_rows_in_their_cubes(spark, path)
    assert_walkable(spark, path)


def test_two_appends_that_both_need_a_revision_get_one_each(spark: SparkSession, path: str) -> None:
    with failpoints.at(failpoints.BEFORE_COMMIT, Meeting(2)):
        results = run_in_parallel(
            appends(spark, path, 2000, 300, 700), appends(spark, path, 2300, 300, -700)
        )
    assert sorted(result.revision_id for result in results) == [2, 3]
    assert all(result.new_revision for result in results)
    assert last_version(path) == 2
    ranges = {
        number: (found.transformations[0].minimum, found.transformations[0].maximum)
        for number, found in revisions(path).items()
        if number
    }
    first, second = ranges[2], ranges[3]
    # The one that came second planned again, from what the first had committed.
    assert second[0] <= first[0] and second[1] >= first[1] and second != first
    table = assert_sound(spark, path, range(2600), where="a > 1200 or a < -300")
    assert_rows_in_their_cubes(spark, path)
    assert table.sample(1.0, "a > 999").count() + table.sample(1.0, "a < 0").count() > 300


def test_two_first_writes_of_one_path_both_land(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")

    def create(first: int) -> Callable[[], Any]:
        return lambda: write_table(
            rows(spark.newSession(), first, 300), path=path, columns_to_index=["a"], cube_size=50
        )

    with failpoints.at(failpoints.BEFORE_COMMIT, Meeting(2)):
        results = run_in_parallel(create(0), create(300))
    assert sorted(result.version for result in results) == [0, 1]
    assert_sound(spark, path, range(600))


def test_an_append_beside_an_overwrite_lands_in_the_new_table(
    spark: SparkSession, path: str
) -> None:
    def replace() -> None:
        write_table(rows(spark.newSession(), 9000, 100), path=path, mode="overwrite")

    with failpoints.at(failpoints.BEFORE_COMMIT, Once(replace)):
        result = write_table(rows(spark, 2000, 300), path=path)
    assert result.version == 2
    assert_sound(spark, path, [*range(9000, 9100), *range(2000, 2300)])
    assert_rows_in_their_cubes(spark, path)


def test_an_append_to_an_index_that_changes_meanwhile_is_refused(
    spark: SparkSession, path: str
) -> None:
    def replace() -> None:
        new = rows(spark.newSession(), 0, 100)
        write_table(new, path=path, mode="overwrite", columns_to_index=["b"])

    with failpoints.at(failpoints.BEFORE_COMMIT, Once(replace)), pytest.raises(IndexMismatch):
        write_table(rows(spark, 2000, 300), path=path, columns_to_index=["a", "b"])
    assert last_version(path) == 1
    assert_sound(spark, path, range(100))


def test_an_overwrite_beside_an_append_replaces_what_it_did_not_see_or_fails(
    spark: SparkSession, path: str
) -> None:
    with failpoints.at(failpoints.BEFORE_COMMIT, Once(appends(spark, path, 2000, 300))):
        result = write_table(rows(spark, 5000, 200), path=path, mode="overwrite")
    assert result.version == 2
    assert_sound(spark, path, range(5000, 5200))


@pytest.mark.parametrize("mode", ["error", "ignore"])
@pytest.mark.parametrize("limited", [False, True], ids=["measured", "stored first"])
def test_a_table_that_another_writer_creates_meanwhile_is_not_replaced(
    spark: SparkSession, tmp_path: Path, mode: str, limited: bool
) -> None:
    path = str(tmp_path / "t")

    def create() -> None:
        rows(spark.newSession(), 0, 300).write.format("delta").save(path)

    given = rows(spark, 300, 200).limit(100) if limited else rows(spark, 300, 200)
    options: dict[str, Any] = {"path": path, "columns_to_index": ["a"], "mode": mode}
    with failpoints.at(failpoints.BEFORE_COMMIT, Once(create)):
        if mode == "error":
            with pytest.raises(InvalidOptions, match="exists; use mode"):
                write_table(given, **options)
        else:
            assert write_table(given, **options).rows == 0
    assert sorted(row.id for row in plain(spark, path).collect()) == list(range(300))


class Stopped(BaseException):
    """A process that ends after its commit."""


def stop() -> None:
    raise Stopped


def test_a_name_that_another_writer_takes_meanwhile_is_not_replaced(spark: SparkSession) -> None:
    """The other writer's table may not be registered yet."""
    spark.sql("create database if not exists meanwhile")
    options: dict[str, Any] = {"table": "meanwhile.t", "columns_to_index": ["a"], "mode": "error"}

    def create() -> None:
        with failpoints.at(failpoints.AFTER_COMMIT, stop), pytest.raises(Stopped):
            write_table(rows(spark.newSession(), 0, 300), **options)

    with (
        failpoints.at(failpoints.BEFORE_COMMIT, Once(create)),
        pytest.raises(InvalidOptions, match="exists; use mode"),
    ):
        write_table(rows(spark, 300, 200), **options)
    location = spark.sql("describe database meanwhile").where("info_name = 'Location'").first()
    assert plain(spark, f"{location.info_value}/t").count() == 300
    spark.sql("drop database meanwhile cascade")


def test_a_name_taken_during_the_write_raises_not_registered(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark.sql("create database if not exists taken")
    other = f"create table taken.t (x int) using delta location '{tmp_path / 'other'}'"
    with (
        failpoints.at(failpoints.BEFORE_COMMIT, Once(lambda: spark.newSession().sql(other))),
        pytest.raises(NotRegistered, match="another writer has created a table at"),
    ):
        write_table(
            rows(spark, 0, 300),
            table="taken.t",
            location=str(tmp_path / "own"),
            columns_to_index="a",
        )
    assert spark.table("taken.t").columns == ["x"]
    assert plain(spark, tmp_path / "own").count() == 300
    spark.sql("drop database taken cascade")


@pytest.mark.parametrize("name", ["away.t", "away.`2024`"])
def test_a_new_table_that_the_catalog_refuses_can_be_registered_as_the_error_says(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("the metastore is away")

    spark.sql("create database if not exists away")
    with monkeypatch.context() as patched:
        patched.setattr(Catalog, "register", refuse)
        with pytest.raises(NotRegistered, match="the metastore is away") as told:
            write_table(rows(spark, 0, 300), table=name, columns_to_index="a")
    statement = re.search(r"Run (CREATE TABLE .*), and do not repeat", str(told.value))
    assert statement is not None
    spark.sql(statement[1])
    assert QbeastTable.for_name(spark, name).sample(1.0).count() == 300
    spark.sql("drop database away cascade")


def test_tags_do_not_bring_back_a_file_that_another_writer_removes(
    spark: SparkSession, path: str
) -> None:
    table = WritableTable.begin(spark, TableAddress(path))
    (first, *_) = table.snapshot.files
    spark.sql(f"delete from delta.`{path}`")
    with pytest.raises(ConcurrentDeleteReadException):
        table.transaction.commit(Operation.OPTIMIZE, [], retags={0: first.tags})
    assert plain(spark, path).count() == 0


def test_an_optimize_of_a_revision_that_another_writer_replaces_has_nothing_to_do(
    spark: SparkSession, path: str
) -> None:
    for first in (2000, 2050):
        write_table(rows(spark, first, 50, shift=5000), path=path)

    def overwrite() -> None:
        write_table(
            rows(spark.newSession(), 0, 100), path=path, mode="overwrite", columns_to_index="a"
        )

    with failpoints.at(failpoints.BEFORE_COMMIT, Once(overwrite)):
        assert not QbeastTable.for_path(spark, path).optimize(2).changed
    assert_sound(spark, path, range(100))


def test_an_overwrite_of_an_empty_table_beside_an_append_is_done_after_it(
    spark: SparkSession, path: str
) -> None:
    QbeastTable.for_path(spark, path).delete("true")

    with failpoints.at(failpoints.BEFORE_COMMIT, Once(appends(spark, path, 2000, 300))):
        write_table(
            rows(spark, 5000, 200), path=path, mode="overwrite", columns_to_index=["b", "a"]
        )
    assert_sound(spark, path, range(5000, 5200))


def test_a_table_rewritten_from_its_own_rows_keeps_those_appended_meanwhile(
    spark: SparkSession, path: str
) -> None:
    """The rows are stored first, because the query has `first` in it."""

    with failpoints.at(failpoints.BEFORE_COMMIT, Once(appends(spark, path, 2000, 300))):
        write_table(plain(spark, path).dropDuplicates(["id"]), path=path, mode="overwrite")
    assert_sound(spark, path, range(2300))


FIXED_READS = {
    "overwrite": lambda path, rows: write_table(rows, path=path, mode="overwrite"),
    "merge": lambda path, rows: QbeastTable.for_path(rows.sparkSession, path).merge(rows, on="id"),
    "replace_where": lambda path, rows: QbeastTable.for_path(rows.sparkSession, path).replace_where(
        rows, "true"
    ),
    "replace_matching": lambda path, rows: QbeastTable.for_path(
        rows.sparkSession, path
    ).replace_matching(rows, on="id"),
}


@pytest.mark.parametrize("change", FIXED_READS.values(), ids=FIXED_READS)
def test_rows_of_an_earlier_version_do_not_replace_those_of_another_writer(
    spark: SparkSession, path: str, change: Any
) -> None:
    """`QbeastTable` reads one version, as `versionAsOf` does, and another attempt would, too."""
    table = QbeastTable.for_path(spark, path)
    of_version = spark.read.format("delta").option("versionAsOf", table.version).load(path)
    other = Once(lambda: QbeastTable.for_path(spark.newSession(), path).update({"a": "a + 1"}))
    for read in (table.dataframe(), of_version):
        version = last_version(path)
        with (
            failpoints.at(failpoints.BEFORE_COMMIT, other),
            pytest.raises(CommitConflict, match="read from an earlier version of it"),
        ):
            change(path, read)
        assert last_version(path) == version + 1
        other = Once(lambda: QbeastTable.for_path(spark.newSession(), path).delete("id = 7"))
    assert_sound(spark, path, (i for i in range(2000) if i != 7))


@pytest.mark.parametrize("change", [*FIXED_READS.values()][:2], ids=[*FIXED_READS][:2])
def test_cached_rows_do_not_replace_those_of_another_writer(
    spark: SparkSession, path: str, change: Any
) -> None:
    """Spark's cache does not notice the commits of other processes."""
    read = plain(spark, path).where("id >= 0").cache()
    read.count()
    other = Once(lambda: deltalake.DeltaTable(path).delete("id = 7"))
    try:
        with (
            failpoints.at(failpoints.BEFORE_COMMIT, other),
            pytest.raises(CommitConflict, match="read from an earlier version of it"),
        ):
            change(path, read)
    finally:
        read.unpersist()
    assert sorted(row.id for row in plain(spark, path).collect()) == [
        id_ for id_ in range(2000) if id_ != 7
    ]


def test_a_cache_of_other_rows_does_not_prevent_another_attempt(
    spark: SparkSession, path: str
) -> None:
    factors = spark.range(2000).selectExpr("id", "2 as factor").cache()
    factors.count()
    doubled = plain(spark, path).join(factors, "id").selectExpr("id", "a * factor as a", "b")
    other = Once(lambda: deltalake.DeltaTable(path).delete("id = 7"))
    try:
        with failpoints.at(failpoints.BEFORE_COMMIT, other):
            QbeastTable.for_path(spark, path).merge(doubled, on="id", insert=False)
    finally:
        factors.unpersist()
    assert other.happened
    assert_sound(spark, path, (i for i in range(2000) if i != 7))


def test_rows_of_an_earlier_version_can_be_appended_beside_another_writer(
    spark: SparkSession, path: str
) -> None:
    read = QbeastTable.for_path(spark, path).dataframe().where("id < 100").selectExpr("id", "a")
    before = plain(spark, path).count()
    with failpoints.at(failpoints.BEFORE_COMMIT, Once(appends(spark, path, 2000, 300))):
        write_table(read, path=path)
    assert plain(spark, path).count() == before + 400


@pytest.mark.parametrize("count", [100, 900])
def test_two_increments_at_once_append_each_row_once(
    spark: SparkSession, path: str, count: int
) -> None:
    """Each appends the rows after the last one that the table has."""

    def append() -> Any:
        own = spark.newSession()
        rows(own, 1900, 100 + count).createOrReplaceTempView("news")
        new = own.sql(f"select * from news where id > (select max(id) from delta.`{path}`)")
        return write_table(new, path=path)

    with failpoints.at(failpoints.BEFORE_COMMIT, Meeting(2)):
        results = run_in_parallel(append, append)
    assert sorted(result.rows for result in results) == [0, count]
    assert_sound(spark, path, range(2000 + count))


def test_a_merge_of_a_tables_own_rows_sees_those_appended_meanwhile(
    spark: SparkSession, path: str
) -> None:
    following = plain(spark, path).selectExpr("id + 2000 as id", "a", "b")
    with failpoints.at(failpoints.BEFORE_COMMIT, Once(appends(spark, path, 2000, 50))):
        result = QbeastTable.for_path(spark, path).merge(following, on="id")
    assert (result.rows_updated, result.rows_inserted) == (50, 2000)
    assert_sound(spark, path, range(4050))


def test_rows_replaced_by_a_tables_own_rows_are_those_of_the_replaced_version(
    spark: SparkSession, path: str
) -> None:
    table = QbeastTable.for_path(spark, path)
    kept = plain(spark, path).where("id % 2 = 0")
    with failpoints.at(failpoints.BEFORE_COMMIT, Once(appends(spark, path, 2000, 50))):
        table.replace_where(kept.dropDuplicates(["id"]), "id >= 0")
    assert_sound(spark, path, range(0, 2050, 2))
    with failpoints.at(failpoints.BEFORE_COMMIT, Once(appends(spark, path, 2000, 50))):
        table.replace_matching(plain(spark, path).withColumn("b", F.lit(7)), on="id")
    found = plain(spark, path).groupBy("b").count().where("b = 7").first()
    assert found["count"] == 1025 + 50


@pytest.mark.parametrize("appended", [5, 400])
def test_an_append_during_an_optimize_lands_and_stays_walkable(
    spark: SparkSession, path: str, appended: int
) -> None:
    for first in (2000, 2040, 2080):
        write_table(rows(spark, first, 40), path=path)

    meanwhile = Once(appends(spark, path, 3000, appended))
    with failpoints.at(failpoints.BEFORE_COMMIT, meanwhile):
        result = QbeastTable.for_path(spark, path).optimize()
    assert meanwhile.happened and result.changed
    assert_sound(spark, path, [*range(2120), *range(3000, 3000 + appended)])
    assert_rows_in_their_cubes(spark, path)
    assert_walkable(spark, path)


def test_an_optimize_during_an_append_keeps_the_tree_walkable(
    spark: SparkSession, path: str
) -> None:
    for first in (2000, 2040, 2080):
        write_table(rows(spark, first, 40), path=path)

    def optimize() -> None:
        assert QbeastTable.for_path(spark.newSession(), path).optimize().changed

    with failpoints.at(failpoints.BEFORE_COMMIT, Once(optimize)):
        write_table(rows(spark, 3000, 400), path=path)
    assert_sound(spark, path, [*range(2120), *range(3000, 3400)])
    assert_rows_in_their_cubes(spark, path)
    assert_walkable(spark, path)


def test_of_two_optimizes_one_does_the_work(spark: SparkSession, path: str) -> None:
    for first in (2000, 2040, 2080):
        write_table(rows(spark, first, 40), path=path)

    def optimize() -> Any:
        return QbeastTable.for_path(spark.newSession(), path).optimize()

    with failpoints.at(failpoints.BEFORE_COMMIT, Meeting(2)):
        results = run_in_parallel(optimize, optimize)
    assert sorted(result.changed for result in results) == [False, True]
    assert last_version(path) == 4
    assert_sound(spark, path, range(2120))


def test_a_conflict_on_every_attempt_is_an_error_and_writes_nothing(
    spark: SparkSession, path: str
) -> None:
    attempts = []

    def disturb() -> None:
        attempts.append(True)
        set_property(spark, path, str(len(attempts)))

    before = live_adds(path)
    with (
        failpoints.at(failpoints.BEFORE_COMMIT, lambda: in_other_thread(disturb)),
        pytest.raises(CommitConflict, match=f"{MAX_ATTEMPTS} attempts"),
    ):
        write_table(rows(spark, 2000, 300), path=path)
    assert len(attempts) == MAX_ATTEMPTS
    assert last_version(path) == MAX_ATTEMPTS
    assert live_adds(path) == before
    assert_sound(spark, path, range(2000))


def test_a_conflict_that_passes_leads_to_one_append(spark: SparkSession, path: str) -> None:
    with failpoints.at(failpoints.BEFORE_COMMIT, Once(lambda: set_property(spark, path, "x"))):
        result = write_table(rows(spark, 2000, 300), path=path)
    assert result.version == 2
    assert_sound(spark, path, range(2300))


def set_property(spark: SparkSession, path: str, value: str) -> None:
    spark.sql(f"alter table delta.`{path}` set tblproperties ('disturbed' = '{value}')")


def test_a_plain_append_meanwhile_does_not_conflict(spark: SparkSession, path: str) -> None:
    def append() -> None:
        rows(spark, 7000, 50).write.format("delta").mode("append").save(path)

    with failpoints.at(failpoints.BEFORE_COMMIT, Once(append)):
        assert write_table(rows(spark, 2000, 300), path=path).version == 2
    assert_sound(spark, path, [*range(2300), *range(7000, 7050)])


def test_readers_of_an_older_version_are_not_disturbed(spark: SparkSession, path: str) -> None:
    for first in (2000, 2040):
        write_table(rows(spark, first, 40), path=path)
    before = QbeastTable.for_path(spark, path)
    expected = sorted(before.sample(0.3).select("id").collect())
    counts = []

    def read() -> None:
        counts.append(QbeastTable.for_path(spark.newSession(), path).sample(0.3).count())

    with failpoints.at(failpoints.BEFORE_COMMIT, lambda: in_other_thread(read)):
        before.optimize()
    read()
    assert counts == [len(expected)] * len(counts) and len(counts) > 1
    assert sorted(before.sample(0.3).select("id").collect()) == expected


def test_ten_readers_during_an_optimize_count_the_same_rows(spark: SparkSession, path: str) -> None:
    for first in (2000, 2040, 2080):
        write_table(rows(spark, first, 40), path=path)
    everyone, is_done = Meeting(11), threading.Event()

    def look(session: SparkSession) -> list[tuple[int, int]]:
        table = QbeastTable.for_path(session, path)
        looks = [plain(session, path), table.sample(0.3), table.sample(0.5, "a < 300")]
        return [tuple(each.selectExpr("count(*)", "sum(id)").head()) for each in looks]

    def read() -> list[list[tuple[int, int]]]:
        session = spark.newSession()
        everyone()
        seen = [look(session)]
        while True:
            was_done = is_done.is_set()
            seen.append(look(session))
            if was_done:
                return seen

    def optimize() -> Any:
        try:
            with failpoints.at(failpoints.BEFORE_COMMIT, everyone):
                return QbeastTable.for_path(spark.newSession(), path).optimize()
        finally:
            is_done.set()

    before = look(spark)
    result, *seen = run_in_parallel(optimize, *[read] * 10)
    assert result.changed and before[0][0] == 2120
    assert len(seen) == 10 and min(map(len, seen)) > 1
    for looks in seen:
        assert looks == [before] * len(looks)


def test_threads_with_their_own_sessions_keep_their_settings(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Delta asks for the thread's active session; the write of one must not use another's."""
    zones = {"Asia/Tokyo": [], "America/Los_Angeles": []}
    meeting = Meeting(2)

    def write(zone: str) -> None:
        own = spark.newSession()
        own.conf.set("spark.sql.session.timeZone", zone)
        made = own.range(0, 200, 1, 1).selectExpr(
            "id", "cast('2024-01-01 00:00:00' as timestamp) + make_interval(0,0,0,0,id) as ts"
        )
        write_table(made, path=str(tmp_path / zone), columns_to_index=["ts"], cube_size=20)
        # PySpark's own answer is one for all threads.
        active = own._jvm.org.apache.spark.sql.classic.SparkSession.active()
        zones[zone].append(active.conf().get("spark.sql.session.timeZone"))

    with failpoints.at(failpoints.BEFORE_COMMIT, meeting):
        threads = [InheritableThread(target=write, args=(zone,)) for zone in zones]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_SECONDS)
    first = {
        zone: spark.read.format("delta")
        .load(str(tmp_path / zone))
        .selectExpr("min(unix_millis(ts))")
        for zone in zones
    }
    starts = {zone: found.head()[0] for zone, found in first.items()}
    assert starts["America/Los_Angeles"] - starts["Asia/Tokyo"] == 17 * 3_600_000
    assert zones == {zone: [zone] for zone in zones}
    for zone in zones:
        assert_sound(spark, tmp_path / zone, range(200))
