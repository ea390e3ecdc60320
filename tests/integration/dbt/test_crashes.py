"""A `dbt run` that is killed or interrupted: the next one finishes what it left."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.qbeast.impl import QbeastAdapter
from dbt.adapters.qbeast.spark.cursor import Cursor
from dbt.tests.util import run_dbt
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable, failpoints
from tests.integration.dbt.processes import TARGET, start
from tests.integration.dbt.projects import (
    comments,
    fractions_recorded,
    properties,
    versions,
    write_project,
)
from tests.support.delta_log import last_version, live_adds
from tests.support.invariants import assert_sound
from tests.support.killing import killed_process
from tests.support.views import temporary_views

MODEL = """
{{ config(materialized='incremental', columns_to_index='id', cube_size=50,
          incremental_strategy='merge', unique_key='id', optimize='always',
          persist_docs={'relation': true, 'columns': true}) }}
select id, '%s' as value from range(%d, %d)
"""
DESCRIPTIONS = """
models:
  - {name: orders, description: %(told)s, columns: [{name: id, description: %(told)s id}]}
"""


class Killed(BaseException):
    """The end of the process. It is no `Exception`, so that dbt does not handle it."""


def kill(*_: object, **__: object) -> None:
    raise Killed


def at_failpoint(name: str) -> Callable[[pytest.MonkeyPatch], Any]:
    return lambda _: failpoints.at(name, kill)


def at_method(name: str) -> Callable[[pytest.MonkeyPatch], Any]:
    """The kill instead of a method of the adapter that the macros call."""

    @contextmanager
    def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr(QbeastAdapter, name, kill)
            yield

    return installed


STEPS = {
    "before the commit": at_failpoint(failpoints.BEFORE_COMMIT),
    "before the registration": at_failpoint(failpoints.AFTER_COMMIT),
    "before the docs": at_method("qbeast_persist_docs"),
    "before the optimize": at_method("qbeast_optimize_after_run"),
}

BEFORE_THE_CATALOG = ("before the commit", "before the registration")


class TestKilledRuns:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            "orders.sql": MODEL % ("first", 0, 100),
            "schema.yml": DESCRIPTIONS % {"told": "one"},
        }

    def test_the_next_run_finishes_what_was_killed(
        self, project: Any, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table, models = f"{project.test_schema}.orders", Path(project.project_root, "models")
        rows: dict[int, str] = {}
        for told, first in (("one", 0), ("two", 60)):
            models.joinpath("orders.sql").write_text(MODEL % (told, first, first + 100))
            models.joinpath("schema.yml").write_text(DESCRIPTIONS % {"told": told})
            for step, killing in STEPS.items():
                with killing(monkeypatch), pytest.raises(Killed):
                    run_dbt(["run", "--single-threaded"])
                is_there = spark.catalog.tableExists(table)
                assert is_there == bool(rows or step not in BEFORE_THE_CATALOG), step
                if step == "before the commit" and rows:
                    assert {row.id: row.value for row in spark.table(table).collect()} == rows
            run_dbt(["run"])
            rows |= dict.fromkeys(range(first, first + 100), told)
            assert {row.id: row.value for row in spark.table(table).collect()} == rows
            assert comments(spark, table) == {"id": f"{told} id"}
            described = spark.sql(f"describe detail {table}").first()
            assert described.description == told
            path = described.location.removeprefix("file:")
            assert not QbeastTable.for_name(spark, table).optimize(dry_run=True).changed
            assert_sound(spark, path, list(rows))


EVENTS = """
{{ config(materialized='table', columns_to_index='id', cube_size=100) }}
select id from range(1000)
"""
OF_EVENTS = """
{{ config(materialized='KIND', tblproperties={'own': "it's"}) }} select id from {{ ref('events') }}
"""
OVERWRITTEN = """
{{ config(materialized='incremental', columns_to_index='id',
          incremental_strategy='insert_overwrite') }}
select id, 1 as other from {{ ref('events') }}
"""
SNAPSHOT = """
snapshots:
  - name: history
    relation: ref('events')
    config: {unique_key: id, strategy: check, check_cols: [id]}
"""
SAMPLED = ["--vars", "{qbeast_sample: 0.1}"]


class TestKilledRunsOnASample:
    """What reads a sample is marked by the statement that creates it, so no kill hides the mark."""

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, spark: SparkSession) -> dict[str, Any]:
        return {"type": "qbeast", "threads": 1, "allow_sampled_build": True}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            "events.sql": EVENTS,
            "plain.sql": OF_EVENTS.replace("KIND", "incremental"),
            "seen.sql": OF_EVENTS.replace("KIND", "view"),
            "overwritten.sql": OVERWRITTEN,
        }

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, Any]:
        return {"history.yml": SNAPSHOT}

    def test_a_kill_hides_no_sample(
        self, project: Any, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def of(name: str) -> tuple[int, str | None]:
            table = f"{project.test_schema}.{name}"
            return spark.table(table).count(), fractions_recorded(spark, table)

        run_dbt(["run", "-s", "events"])
        for name in ("plain", "seen", "history"):
            with killed_after(monkeypatch, "create or replace"), pytest.raises(Killed):
                run_dbt(["build", "-s", name, "--single-threaded", *SAMPLED])
            rows, mark = of(name)
            assert 0 < rows < 300 and mark == "0.1", name
        assert properties(spark, f"{project.test_schema}.plain")["own"] == "it's"
        for name in ("plain", "history"):
            (failed,) = run_dbt(["build", "-s", name], expect_pass=False)
            assert "was built from a sample of 10 percent" in failed.message
        # The other way round: the rows and the mark are replaced together.
        for name in ("plain", "seen"):
            with killed_after(monkeypatch, "create or replace"), pytest.raises(Killed):
                run_dbt(["run", "-s", name, "--full-refresh", "--single-threaded"])
            assert of(name) == (1000, None), name

        # An overwrite keeps the mark, in one commit. So does a table that loses a column.
        run_dbt(["run", "-s", "overwritten", *SAMPLED])
        before, table = of("overwritten"), f"{project.test_schema}.overwritten"
        assert before[1] == "0.1"
        run_dbt(["run", "-s", "overwritten", *SAMPLED])
        assert of("overwritten") == before and versions(spark, table) == 2
        QbeastTable.for_name(spark, table).drop_columns("other")
        assert of("overwritten") == before and versions(spark, table) == 3


@contextmanager
def killed_after(monkeypatch: pytest.MonkeyPatch, words: str) -> Iterator[None]:
    """The kill after the first statement with these words."""
    execute = Cursor.execute

    def then_kill(cursor: Cursor, sql: str, bindings: Any = None) -> None:
        execute(cursor, sql, bindings)
        if words in sql:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Cursor, "execute", then_kill)
        yield


ENDLESS = """
{{{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id', {index}) }}}}
select id from range(0, {{{{ var('rows', 10) }}}}, 1, 1) where id < 10
  or id = 10 and java_method('java.lang.System', 'setProperty', 'qbeast.tests.{name}', 'runs') = ''
  or reflect('java.lang.Thread', 'sleep', 50L) = ''
"""
NAMES = ("with_index", "plain")


class TestInterruptedRun:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        index = ("columns_to_index='id'", "file_format='delta'")
        return {
            f"{name}.sql": ENDLESS.format(name=name, index=given)
            for name, given in zip(NAMES, index, strict=True)
        }

    def test_ctrl_c_leaves_each_table_unchanged_and_no_view(
        self, project: Any, spark: SparkSession
    ) -> None:
        run_dbt(["run"])
        tables = [f"{project.test_schema}.{name}" for name in NAMES]
        before = [versions(spark, table) for table in tables]
        system: Any = spark._jvm.java.lang.System  # type: ignore[union-attr]
        for name in NAMES:
            system.clearProperty(f"qbeast.tests.{name}")

        done = threading.Event()

        def interrupt() -> None:
            while not done.wait(0.05):
                if all(system.getProperty(f"qbeast.tests.{name}") for name in NAMES):
                    os.kill(os.getpid(), signal.SIGINT)
                    return

        watching = threading.Thread(target=interrupt)
        watching.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                run_dbt(["run", "--threads", "2", "--vars", "{rows: 1000000000000000}"])
        finally:
            done.set()
            watching.join()
        assert [versions(spark, table) for table in tables] == before
        for table in tables:
            assert sorted(row.id for row in spark.table(table).collect()) == list(range(10))
        assert spark.sql(f"show views in {project.test_schema}").count() == 0
        assert temporary_views(spark) == []
        assert not list(spark.sparkContext.statusTracker().getActiveJobsIds())
        run_dbt(["run", "--vars", "{rows: 20}"])


@pytest.mark.usefixtures("no_process_left")
def test_a_dbt_killed_with_its_spark_leaves_what_the_next_one_finishes(tmp_path: Path) -> None:
    """The table is committed, but not in the catalog, which is on disk as is the lock."""
    write_project(tmp_path, TARGET, {"orders.sql": MODEL % ("one", 0, 100)})
    killed_process(
        Path(__file__).with_name("dbt_process.py"),
        json.dumps({"die_at": failpoints.AFTER_COMMIT, "directory": str(tmp_path), "dbt": ["run"]}),
    )
    place = tmp_path / "warehouse" / "s.db" / "orders"
    assert last_version(place) == 0
    told, _ = start(tmp_path, "run").communicate()
    assert "rebuilt 100 rows" in told
    assert last_version(place) == 1
    assert sum(json.loads(add["stats"])["numRecords"] for add in live_adds(place).values()) == 100
