"""A node's own session: what it begins with, and how its jobs are cancelled."""

import threading
from typing import Any

import pytest
from dbt.adapters.qbeast.credentials import QbeastCredentials
from dbt.adapters.qbeast.spark.cursor import Cursor
from dbt.adapters.qbeast.spark.handle import SessionHandle
from dbt.adapters.qbeast.spark.session import node_session, shared_session
from dbt_common.exceptions import DbtRuntimeError
from pyspark.errors import SparkRuntimeException
from pyspark.sql import SparkSession

ENDLESS = "select count(*) from range(0, 1000000000000000, 1, 2) where id % 7 = id % 11 - 20"


def handle(spark: SparkSession, name: str) -> SessionHandle:
    return SessionHandle(spark.newSession(), spark, name)


def test_cancel_ends_one_nodes_jobs_and_no_others(spark: SparkSession) -> None:
    cancelled, other = handle(spark, "cancelled"), handle(spark, "other")
    outcome: dict[str, Any] = {}
    at_work = threading.Event()

    def work(node: SessionHandle, sql: str) -> None:
        try:
            with node.running():
                if node is cancelled:
                    at_work.set()
                outcome[node.name] = node.frame(sql).collect()
        except Exception as error:
            outcome[node.name] = error

    endless = threading.Thread(target=work, args=(cancelled, ENDLESS))
    endless.start()
    at_work.wait()
    cancelled.cancel()
    work(other, "select sum(id) as total from range(100)")
    endless.join()

    assert isinstance(outcome["cancelled"], Exception)
    assert "cancelled" in str(outcome["cancelled"])
    assert outcome["other"][0].total == 4950
    with pytest.raises(DbtRuntimeError, match="cancelled was cancelled"), cancelled.running():
        pass


def test_a_statement_that_begins_while_its_node_is_cancelled_does_not_run(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = handle(spark, "node")
    looked_up = spark.sparkContext.getLocalProperty

    def cancel(key: str) -> Any:
        monkeypatch.undo()
        node.cancel()
        return looked_up(key)

    monkeypatch.setattr(spark.sparkContext, "getLocalProperty", cancel)
    with pytest.raises(DbtRuntimeError, match="node was cancelled"), node.running():
        pass


def test_a_callers_job_group_is_given_back(spark: SparkSession) -> None:
    context = spark.sparkContext
    context.setJobGroup("mine", "my work")
    node = handle(spark, "node")
    with node.running():
        assert context.getLocalProperty("spark.jobGroup.id") == node.job_group
    assert context.getLocalProperty("spark.jobGroup.id") == "mine"
    context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


def test_a_running_session_is_used_with_its_own_settings(spark: SparkSession) -> None:
    credentials = QbeastCredentials(schema="s", spark_config={"spark.sql.ansi.enabled": False})
    shared = shared_session(credentials)
    assert shared.spark is spark
    assert not shared.started_here
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    spark.sql("create or replace temporary view of_the_notebook as select 1")
    try:
        session = node_session(shared, credentials)
    finally:
        spark.conf.unset("spark.sql.session.timeZone")
        spark.catalog.dropTempView("of_the_notebook")
    assert session.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    assert session.conf.get("spark.sql.ansi.enabled") == "false"
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    assert not session.catalog.tableExists("of_the_notebook")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"warehouse": "/elsewhere"}, "warehouse /elsewhere, but the Spark session .* uses file:"),
        ({"catalog": "memory"}, "catalog memory, but the Spark session .* uses hive"),
        ({"master": "sc://host"}, "Spark Connect is not supported"),
    ],
)
def test_another_place_than_the_running_sessions_is_refused(
    spark: SparkSession, asked: dict[str, Any], told: str
) -> None:
    with pytest.raises(DbtRuntimeError, match=told):
        shared_session(QbeastCredentials(schema="s", **asked))


def test_a_cursor_continues_after_the_rows_that_it_has_fetched(spark: SparkSession) -> None:
    cursor = Cursor(handle(spark, "node"))

    def executed(rows: int) -> Cursor:
        cursor.execute(f"select id from range({rows})")
        return cursor

    executed(5)
    assert [row.id for row in cursor.fetchmany(2)] == [0, 1]
    first, second = cursor.fetchone(), cursor.fetchone()
    assert first is not None and second is not None
    assert (first.id, second.id) == (2, 3)
    assert [row.id for row in cursor.fetchall()] == [4]
    assert (cursor.fetchone(), cursor.fetchmany(1), cursor.fetchall()) == (None, [], [])
    assert [row.id for row in executed(3).fetchmany(10)] == [0, 1, 2]
    assert cursor.fetchmany(10) == []
    assert [row.id for row in executed(2).fetchall()] == [0, 1]
    assert executed(0).fetchone() is cursor.fetchone() is None


def test_a_statement_may_select_what_no_writer_takes(spark: SparkSession) -> None:
    cursor = Cursor(handle(spark, "node"))
    intervals = "make_interval(1) as a, array(make_interval(2)) as a, current_timestamp() as b"
    cursor.execute(f"select {intervals}")
    cursor.run()
    cursor.execute(f"select {intervals}, raise_error('run')")
    with pytest.raises(SparkRuntimeException, match="run"):
        cursor.run()
