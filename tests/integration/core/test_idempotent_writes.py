"""A write with an application's number is done once, as by plain Delta."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from qbeast_core import QbeastTable, RewriteResult, WriteResult, failpoints, write_table
from qbeast_core.errors import IncompatibleTable, InvalidOptions
from qbeast_core.jvm.settings import changed_settings
from tests.integration.core.other_threads import Meeting, Once, run_in_parallel
from tests.support.delta_log import actions, last_version, plain
from tests.support.invariants import assert_sound
from tests.support.views import viewed

APP_ID, VERSION = "spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion"
AUTO_RESET = f"{VERSION}.autoReset.enabled"
STREAM = "a-stream"

Result = WriteResult | RewriteResult


def rows(spark: SparkSession, first: int, last: int) -> DataFrame:
    return spark.range(first, last, 1, 1).selectExpr("id", "id * 2 as a")


def recorded(path: str) -> list[list[tuple[str, int]]]:
    """The applications' numbers that each commit records."""
    return [
        [(each["appId"], each["version"]) for each in actions(path, version, "txn")]
        for version in range(last_version(path) + 1)
    ]


def stored(spark: SparkSession, path: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in plain(spark, path).collect())


@contextmanager
def in_session(spark: SparkSession, version: int, **more: str) -> Iterator[None]:
    with changed_settings(spark, {APP_ID: STREAM, VERSION: str(version), **more}):
        yield


@pytest.fixture
def source(spark: SparkSession) -> Iterator[DataFrame]:
    source = rows(spark, 5, 25)
    with viewed(source):
        yield source


def test_every_operation_is_done_once_as_by_plain_delta(
    spark: SparkSession, source: DataFrame, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, twin = str(tmp_path / "indexed"), str(tmp_path / "twin")
    caplog.set_level(logging.INFO, "qbeast_core")

    def table() -> QbeastTable:
        return QbeastTable.for_path(spark, path)

    def write(df: DataFrame, mode: str = "append") -> Callable[..., Result]:
        return lambda **txn: write_table(df, path=path, mode=mode, columns_to_index=["id"], **txn)

    def delta(df: DataFrame, mode: str = "append", **options: str) -> Callable[[], object]:
        return lambda: df.write.format("delta").mode(mode).options(**options).save(twin)

    def sql(text: str) -> Callable[[], object]:
        return lambda: spark.sql(text.replace("twin", f"delta.`{twin}`")).collect()

    new = rows(spark, 0, 3)
    steps: list[tuple[Callable[..., Result], Callable[[], object]]] = [
        (write(rows(spark, 0, 20)), delta(rows(spark, 0, 20))),
        (write(rows(spark, 20, 22)), delta(rows(spark, 20, 22))),
        (write(rows(spark, 0, 0)), delta(rows(spark, 0, 0))),
        (
            lambda **txn: table().merge(source, "id", update={"a": "target.a + 1"}, **txn),
            sql(
                "merge into twin t using source s on t.id = s.id when matched then update "
                "set a = t.a + 1 when not matched then insert *"
            ),
        ),
        (
            lambda **txn: table().update({"a": "a + 1"}, "id < 10", **txn),
            sql("update twin set a = a + 1 where id < 10"),
        ),
        # Nothing to do, which the table records too.
        (
            lambda **txn: table().merge(source.where("id < 0"), "id", **txn),
            sql(
                "merge into twin t using (select * from source where id < 0) s on t.id = s.id "
                "when matched then update set * when not matched then insert *"
            ),
        ),
        (
            lambda **txn: table().update({"a": "a + 1"}, "id = 77", **txn),
            sql("update twin set a = a + 1 where id = 77"),
        ),
        (lambda **txn: table().delete("a > 40", **txn), sql("delete from twin where a > 40")),
        (
            lambda **txn: table().replace_where(new, "id < 5", **txn),
            delta(new, "overwrite", replaceWhere="id < 5"),
        ),
        (write(rows(spark, 0, 9), "overwrite"), delta(rows(spark, 0, 9), "overwrite")),
    ]
    for number, (ours, of_delta) in enumerate(steps):
        done = ours(txn_app_id=STREAM, txn_version=number)
        assert (done.version, done.repeated) == (number, False)
        with in_session(spark, number):
            of_delta()
            of_delta()
        assert not caplog.messages
        for earlier in {number, 0}:
            again = ours(txn_app_id=STREAM, txn_version=earlier)
            assert (again.version, again.repeated) == (number, True)
            assert str(again).endswith("the table already has this transaction")
            logged = f"Transaction {earlier} of the application {STREAM!r} is skipped"
            assert logged in caplog.text and f"number {number}" in caplog.text
            caplog.clear()
        assert stored(spark, path) == stored(spark, twin)
    matching = table().replace_matching(new, "id", txn_app_id=STREAM, txn_version="100")
    assert matching.rows_deleted == 3 and not matching.repeated
    again = table().replace_matching(new, "id", txn_app_id=STREAM, txn_version=100)
    assert again.repeated and not again.changed
    # Another application has its own numbers.
    assert not table().delete("id = 0", txn_app_id="another", txn_version=0).repeated
    assert recorded(path)[:-2] == recorded(twin) == [[(STREAM, n)] for n in range(len(steps))]
    assert recorded(path)[-2:] == [[(STREAM, 100)], [("another", 0)]]
    assert_sound(spark, path, range(1, 9))


def test_a_repeated_write_computes_nothing_and_checks_nothing_else(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    write_table(rows(spark, 0, 5), path=path, columns_to_index=["id"])
    table, txn = QbeastTable.for_path(spark, path), {"txn_app_id": STREAM, "txn_version": 3}
    table.delete("id = 0", **txn)
    broken = rows(spark, 0, 5).selectExpr("id", "raise_error('computed')", "1 as unknown")
    for mode in ("append", "overwrite", "error"):
        assert write_table(broken, path=path, mode=mode, **txn).repeated
    assert table.merge(broken, "id", **txn).repeated
    assert table.replace_where(broken, "id = 1", **txn).repeated
    assert table.replace_matching(broken, "id", **txn).repeated
    assert table.update({"unknown": "1"}, **txn).repeated
    # What is wrong whatever the table has is still an error.
    with pytest.raises(InvalidOptions, match="txn_version"):
        table.delete("id = 1", txn_app_id=STREAM, txn_version=-1)
    with pytest.raises(InvalidOptions, match="set both"):
        write_table(broken, path=path, txn_version=3)
    assert last_version(path) == 1


def test_writers_of_one_application_do_not_write_twice(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)

    def append() -> WriteResult:
        return write_table(
            rows(spark.newSession(), 0, 30),
            path=path,
            columns_to_index=["id"],
            txn_app_id=STREAM,
            txn_version=1,
        )

    # Both find that the table does not exist yet.
    with failpoints.at(failpoints.BEFORE_COMMIT, Meeting(2)):
        results = run_in_parallel(append, append)
    assert sorted(result.repeated for result in results) == [False, True]
    assert {result.version for result in results} == {0}
    # An append conflicts with no other append, but with one of the same application.
    table = QbeastTable.for_path(spark, path)

    def add(first: int, version: int) -> WriteResult:
        new = rows(spark.newSession(), first, first + 1)
        return write_table(new, path=path, txn_app_id=STREAM, txn_version=version)

    for others, own in ((3, 2), (4, 5)):
        other = Once(partial(add, 30, others))
        with failpoints.at(failpoints.BEFORE_COMMIT, other):
            assert add(40, own).repeated == (own < others)
    changing = Once(lambda: table.update({"a": "0"}, "id = 1", txn_app_id=STREAM, txn_version=6))
    with failpoints.at(failpoints.BEFORE_COMMIT, changing):
        assert table.merge(rows(spark, 0, 50), "id", txn_app_id=STREAM, txn_version=6).repeated
    assert [row for row in stored(spark, path) if row[0] in (1, 30, 40)] == [
        (1, 0),
        (30, 60),
        (30, 60),
        (40, 80),
    ]


def test_a_new_table_that_was_not_registered_is_registered_by_the_repetition(
    spark: SparkSession, tmp_path: Path
) -> None:
    name, place = "default.once", str(tmp_path / "t")

    def write(version: int, mode: str = "append") -> WriteResult:
        return write_table(
            rows(spark, 0, 5),
            table=name,
            location=place,
            mode=mode,
            columns_to_index=["id"],
            txn_app_id=STREAM,
            txn_version=version,
        )

    def fail() -> None:
        raise RuntimeError("cut off")

    with failpoints.at(failpoints.AFTER_COMMIT, fail), pytest.raises(RuntimeError):
        write(1)
    assert not spark.catalog.tableExists(name)
    # Another number may be of other rows.
    with pytest.raises(IncompatibleTable, match="already holds rows"):
        write(2)
    try:
        result = write(1)
        assert (result.repeated, result.version) == (True, 0)
        assert spark.table(name).count() == 5
        assert write(2).version == 1
        assert spark.table(name).count() == 10
    finally:
        spark.sql(f"drop table if exists {name}")


def test_settings_of_the_session_number_writes_as_in_plain_delta(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, twin = str(tmp_path / "indexed"), str(tmp_path / "twin")
    with in_session(spark, 1):
        for _ in range(2):
            write_table(rows(spark, 0, 5), path=path, columns_to_index=["id"])
            rows(spark, 0, 5).write.format("delta").mode("append").save(twin)
        table = QbeastTable.for_path(spark, path)
        assert table.delete("id = 1").repeated
        # An argument counts more, and what changes no row has no number.
        assert not table.delete("id = 1", txn_app_id="another", txn_version=0).repeated
        table.optimize()
        table.drop_columns("a")
    assert recorded(path)[0] == recorded(twin)[0] == [(STREAM, 1)]
    assert recorded(path)[1] == [("another", 0)] and not any(recorded(path)[2:])
    assert spark.read.format("delta").load(path).count() == 4
    for number, is_repeated in ((2, False), (2, True)):
        with in_session(spark, number, **{AUTO_RESET: "true"}):
            assert table.delete("id = 2").repeated == is_repeated
            assert spark.conf.get(VERSION, None) is None
        with in_session(spark, number, **{AUTO_RESET: "true"}):
            spark.sql(f"delete from delta.`{twin}` where id = 2").collect()
            assert spark.conf.get(VERSION, None) is None
    with (
        changed_settings(spark, {APP_ID: STREAM}),
        pytest.raises(InvalidOptions, match=f"{APP_ID} is set without {VERSION}"),
    ):
        table.delete("id = 3")
