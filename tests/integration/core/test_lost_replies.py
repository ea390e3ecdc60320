"""A commit whose reply is lost is made once and reported correctly."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.conf import RuntimeConfig

from qbeast_core import QbeastTable, convert_to_qbeast, migrate_format, write_table
from qbeast_core.delta.commit import Commit
from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.errors import (
    CommitStateUnknown,
    ExecutionFailed,
    IncompatibleTable,
    NoSpace,
    StorageRefused,
)
from tests.support.delta_log import actions, last_version, live_adds
from tests.support.faulty_store import (
    CONNECTION_LOST,
    DENIED,
    FULL,
    NOT_SENT,
    REPLY_LOST,
    STORAGE_LOST,
    FaultyStore,
    installed,
)
from tests.support.invariants import assert_sound
from tests.support.reference_tables import PLAIN, ROWS, copied

AFTER_THE_WRITE = pytest.mark.parametrize("fault", [REPLY_LOST, CONNECTION_LOST])


@pytest.fixture(scope="module")
def store(spark: SparkSession) -> Iterator[FaultyStore]:
    with installed(spark) as faulty:
        yield faulty


def rows(spark: SparkSession, first: int, last: int, factor: int = 1) -> DataFrame:
    return spark.range(first, last, 1, 1).selectExpr("id", f"id * {factor} as a", "0 as n")


def stored(spark: SparkSession, path: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.read.format("delta").load(path).collect())


@pytest.fixture
def path(spark: SparkSession, store: FaultyStore, tmp_path: Path) -> str:
    """A table of 100 rows, with the numbers 0..99 as `id` and `a`."""
    write_table(rows(spark, 0, 100), path=str(tmp_path / "t"), columns_to_index=["a"], cube_size=20)
    return str(tmp_path / "t")


@AFTER_THE_WRITE
def test_every_operation_is_done_once(
    spark: SparkSession, store: FaultyStore, tmp_path: Path, fault: str
) -> None:
    path = str(tmp_path / "t")
    name = f"lost_{fault.split()[0]}"
    expected: dict[int, int] = {}

    def done_once(operation: Callable[[], Any]) -> Any:
        before = last_version(path)
        with store.fails(fault):
            result = operation()
        assert last_version(path) == before + 1
        if result is not None:
            assert result.version == before + 1
        found = spark.read.format("delta").load(path)
        told = found.selectExpr("id", "n" if "n" in found.columns else "0").collect()
        assert sorted(map(tuple, told)) == sorted(expected.items())
        return result

    def table() -> QbeastTable:
        return QbeastTable.for_path(spark, path)

    expected |= dict.fromkeys(range(100), 0)
    options = {"columns_to_index": ["a"], "cube_size": 20}
    new = rows(spark, 0, 100)
    try:
        assert (
            done_once(
                lambda: write_table(new, table=f"default.{name}", location=path, **options)
            ).rows
            == 100
        )
        # The catalog knows it, as of any other table.
        assert spark.table(f"default.{name}").count() == 100
    finally:
        spark.sql(f"drop table if exists default.{name}")
    expected |= dict.fromkeys(range(100, 110), 0)
    within = rows(spark, 100, 110, factor=0)
    assert not done_once(lambda: write_table(within, path=path)).new_revision
    expected |= dict.fromkeys(range(110, 120), 0)
    beyond = rows(spark, 110, 120)
    appended = done_once(lambda: write_table(beyond, path=path))
    assert appended.new_revision and appended.revision_id == 2 and appended.rows == 10
    expected |= {id_: n + 1 for id_, n in expected.items()}
    assert done_once(lambda: table().update({"n": "n + 1"})).rows_updated == 120
    for id_ in range(10):
        del expected[id_]
    assert done_once(lambda: table().delete("id < 10")).rows_deleted == 10
    expected |= {id_: expected.get(id_, -1) + 1 for id_ in range(5, 15)}
    source = rows(spark, 5, 15)
    merged = done_once(lambda: table().merge(source, "id", update={"n": "target.n + 1"}))
    assert (merged.rows_updated, merged.rows_inserted) == (5, 5)
    for id_ in range(115, 120):
        del expected[id_]
    expected |= dict.fromkeys(range(110, 115), 0)
    newer = rows(spark, 110, 115)
    done_once(lambda: table().replace_where(newer, "id >= 110"))
    for first in (200, 215):
        write_table(rows(spark, first, first + 15, factor=0), path=path)
    expected |= dict.fromkeys(range(200, 230), 0)
    assert done_once(lambda: table().optimize()).changed
    assert_sound(spark, path, sorted(expected))
    expected = dict.fromkeys(range(300, 340), 0)
    done_once(lambda: write_table(rows(spark, 300, 340), path=path, mode="overwrite"))
    done_once(lambda: table().drop_columns("n"))
    assert_sound(spark, path, range(300, 340))


def test_an_append_is_in_one_version(spark: SparkSession, store: FaultyStore, path: str) -> None:
    """Delta would commit its files again, so streams and the change data feed would repeat rows."""
    with store.fails(REPLY_LOST):
        result = write_table(rows(spark, 100, 110, factor=0), path=path)
    assert result.version == last_version(path) == 1
    assert len(actions(path, 1, "add")) == result.files


@AFTER_THE_WRITE
def test_a_new_index_of_an_old_table_is_made_once(
    spark: SparkSession, store: FaultyStore, tmp_path: Path, fault: str
) -> None:
    delta, parquet = str(tmp_path / "delta"), str(tmp_path / "parquet")
    rows(spark, 0, 20).write.format("delta").save(delta)
    with store.fails(fault):
        converted = convert_to_qbeast(spark, f"delta.`{delta}`", "a")
    assert converted.changed and converted.version == last_version(delta) == 1

    rows(spark, 0, 20).write.parquet(parquet)
    # The first of two commits.
    with store.fails(fault):
        assert convert_to_qbeast(spark, f"parquet.`{parquet}`", "a").changed
    assert last_version(parquet) == 1
    assert stored(spark, parquet) == stored(spark, delta)

    legacy = copied(PLAIN, tmp_path)
    before = last_version(legacy)
    with store.fails(fault):
        migrated = migrate_format(spark, legacy)
    assert migrated.changed and migrated.version == last_version(legacy) == before + 1
    assert len(stored(spark, legacy)) == ROWS[PLAIN]
    assert not migrate_format(spark, legacy).changed


@AFTER_THE_WRITE
def test_mapped_columns_are_dropped_once(
    spark: SparkSession, store: FaultyStore, tmp_path: Path, fault: str
) -> None:
    path = str(tmp_path)
    write_table(
        rows(spark, 0, 20),
        path=path,
        columns_to_index=["a"],
        properties={"delta.columnMapping.mode": "name"},
    )
    with store.fails(fault):
        QbeastTable.for_path(spark, path).drop_columns("n")
    assert last_version(path) == 1
    assert stored(spark, path) == [(number, number) for number in range(20)]


def test_a_commit_is_found_before_one_that_conflicts_with_it(
    spark: SparkSession, store: FaultyStore, path: str
) -> None:
    """Delta sees only the conflict with the other writer, and would repeat the update."""
    metadata = actions(path, 0, "metaData")[0]
    metadata["configuration"]["disturbed"] = "yes"
    other = json.dumps({"metaData": metadata})
    with store.fails(REPLY_LOST, next_commit=other):
        result = QbeastTable.for_path(spark, path).update({"n": "n + 1"})
    assert (result.version, last_version(path)) == (1, 2)
    assert stored(spark, path) == [(number, number, 1) for number in range(100)]
    # The next write starts from the newest version, not from the one that was committed.
    assert write_table(rows(spark, 100, 101, factor=0), path=path).version == 3
    assert len(stored(spark, path)) == 101


def test_a_commit_that_may_still_land_is_an_error_of_its_own(
    spark: SparkSession, store: FaultyStore, path: str
) -> None:
    before = live_adds(path)
    with store.fails(NOT_SENT), pytest.raises(CommitStateUnknown) as raised:
        write_table(rows(spark, 100, 110), path=path)
    message = str(raised.value)
    assert "WRITE" in message and "connection reset" in message
    assert f"DESCRIBE HISTORY delta.`{TableSnapshot.load(spark, path).location}`" in message
    assert "of version 1 or later" in message and "\n" not in message
    assert last_version(path) == 0 and live_adds(path) == before
    assert write_table(rows(spark, 100, 110), path=path).version == 1


@pytest.mark.parametrize(("fault", "was_written"), [(STORAGE_LOST, True), (NOT_SENT, False)])
def test_a_numbered_write_can_be_repeated_when_its_commit_is_not_known(
    spark: SparkSession, store: FaultyStore, path: str, fault: str, was_written: bool
) -> None:
    def append() -> Any:
        new = rows(spark, 100, 110, factor=0)
        return write_table(new, path=path, txn_app_id="stream", txn_version=7)

    def update() -> Any:
        table = QbeastTable.for_path(spark, path)
        return table.update({"n": "n + 1"}, txn_app_id="stream", txn_version=8)

    for version, write in enumerate((append, update), 1):
        with pytest.raises(CommitStateUnknown), store.fails(fault):
            write()
        result = write()
        assert (result.repeated, result.version) == (was_written, version)
    assert stored(spark, path) == [(n, n if n < 100 else 0, 1) for n in range(110)]


def test_a_commit_is_found_by_what_the_error_says(
    spark: SparkSession, store: FaultyStore, path: str
) -> None:
    with (
        pytest.raises(CommitStateUnknown, match="storage is away") as raised,
        store.fails(STORAGE_LOST),
    ):
        QbeastTable.for_path(spark, path).update({"n": "n + 1"})
    told = re.search(r"txnId (\S+),", str(raised.value))
    assert told and actions(path, 1, "commitInfo")[0]["txnId"] == told.group(1)
    assert stored(spark, path) == [(number, number, 1) for number in range(100)]


def test_a_new_table_whose_commit_is_not_known_loses_no_rows(
    spark: SparkSession, store: FaultyStore, tmp_path: Path
) -> None:
    name, options = "default.not_known", {"columns_to_index": ["a"]}
    more = rows(spark, 100, 110)
    with pytest.raises(CommitStateUnknown) as unknown, store.fails(STORAGE_LOST):
        write_table(rows(spark, 0, 100), table=name, location=str(tmp_path / "t"), **options)
    with pytest.raises(IncompatibleTable) as refused:
        write_table(more, table=name, location=str(tmp_path / "t"), **options)
    statements = [
        re.search(r"run (CREATE TABLE .*?) (?:before|and) ", str(raised.value))
        for raised in (unknown, refused)
    ]
    assert statements[0] and statements[1] and statements[0][1] == statements[1][1]
    try:
        spark.sql(statements[0][1])
        write_table(more, table=name)
        assert_sound(spark, str(tmp_path / "t"), range(110))
        assert spark.table(name).count() == 110
    finally:
        spark.sql(f"drop table if exists {name}")


def test_a_connection_that_breaks_after_the_commit_does_not_undo_it(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = Commit.make

    def break_afterwards(commit: Commit, *args: Any) -> int:
        with monkeypatch.context() as patch:
            patch.setattr(RuntimeConfig, "set", broken)
            version = make(commit, *args)
        monkeypatch.setattr(TableSnapshot, "_key_of", broken)
        return version

    def broken(*_: object) -> None:
        raise Py4JNetworkError("Answer from Java side is empty")

    monkeypatch.setattr(Commit, "make", break_afterwards)
    result = write_table(rows(spark, 100, 110, factor=0), path=path)
    monkeypatch.undo()
    assert result.version == last_version(path) == 1
    assert_sound(spark, path, range(110))


def test_a_commit_that_was_refused_has_its_own_error(
    spark: SparkSession, store: FaultyStore, path: str
) -> None:
    def refused(error: type[ExecutionFailed], words: str) -> None:
        with pytest.raises(error, match=words) as raised:
            QbeastTable.for_path(spark, path).update({"n": "n + 1"})
        assert type(raised.value) is error

    with store.fails(DENIED):
        refused(StorageRefused, "_delta_log/.*Check that the user who runs Spark")
    with store.fails(FULL):
        refused(NoSpace, "No space left on device.*Free space")
    assert last_version(path) == 0


def test_what_fails_after_the_commit_does_not_undo_it(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "t"
    path.mkdir()
    # The directory of the manifests that Delta writes after each commit.
    (path / "_symlink_format_manifest").write_text("in the way")
    new = rows(spark, 0, 20)
    properties = {"delta.compatibility.symlinkFormatManifest.enabled": "true"}
    result = write_table(new, path=str(path), columns_to_index=["a"], properties=properties)
    assert result.version == last_version(path) == 0
    assert stored(spark, str(path)) == [(number, number, 0) for number in range(20)]
    assert "version 0, although the commit reported an error" in caplog.text


class Interrupted:
    """A transaction whose user loses patience."""

    def txnId(self) -> str:  # noqa: N802 - as in Delta
        return "this-one"

    def name(self) -> str:
        return "WRITE"

    def commit(self, *_: object) -> int:
        raise KeyboardInterrupt


def test_an_interrupt_passes_and_says_what_to_look_for(
    spark: SparkSession, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    snapshot = TableSnapshot.load(spark, path)
    commit = Commit(snapshot, None, Interrupted(), Interrupted())
    with pytest.raises(KeyboardInterrupt):
        commit.make([], {})
    assert "It is not known whether this WRITE" in caplog.text and "this-one" in caplog.text


def test_a_session_knows_the_version_of_its_last_commit(spark: SparkSession, path: str) -> None:
    """As after a commit of plain Delta."""
    key = "spark.databricks.delta.lastCommitVersionInSession"
    spark.conf.unset(key)
    result = write_table(rows(spark, 100, 110), path=path)
    assert int(spark.conf.get(key) or -1) == result.version
