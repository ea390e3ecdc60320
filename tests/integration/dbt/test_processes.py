"""dbt as a process of its own on the embedded default: lock, Ctrl-C, what survives, no Java."""

import re
import signal
from pathlib import Path

import pytest

from tests.integration.core.brute_force import last_version
from tests.integration.dbt.processes import TARGET, read_until, start
from tests.integration.dbt.projects import write_project

pytestmark = pytest.mark.usefixtures("no_process_left")

FIRST = "{{ config(materialized='qbeast', columns_to_index='id') }} select id from range(100)"
ENDLESS = """
{{ config(materialized='qbeast', columns_to_index='id') }}
-- depends_on: {{ ref('first') }}
select id from range(0, {{ var('rows', 10) }}, 1, 2) where id < 10 or id % 7 = id % 11 - 20
"""
WITHOUT_END = ("--vars", "{rows: 1000000000000000}")
COUNTS = """
select (select count(*) from {{ ref('first') }}) as first,
    (select count(*) from {{ ref('endless') }}) as endless
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_project(tmp_path, TARGET, {"first.sql": FIRST, "endless.sql": ENDLESS})
    return tmp_path


def without_java(tmp_path: Path) -> dict[str, str]:
    return {"PATH": str(tmp_path), "JAVA_HOME": ""}


def test_without_java_one_line_says_what_to_install(project: Path) -> None:
    told, _ = start(project, "run", **without_java(project)).communicate()
    (line,) = [line for line in told.splitlines() if "Java" in line]
    assert "Spark needs Java, but none is on the PATH: install Java 17 or 21" in line


def test_the_warehouse_is_in_the_project_wherever_dbt_starts(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    shop = ("--project-dir", str(project), "--profiles-dir", str(project))
    told, _ = start(elsewhere, "run", "--select", "first", *shop).communicate()
    assert "rebuilt 100 rows" in told
    warehouse = project / "warehouse"
    assert (warehouse / "s.db" / "first").is_dir()
    assert (warehouse / "metastore_db").is_dir()
    told, _ = start(elsewhere, "debug", *shop).communicate()
    assert f"warehouse: {warehouse}\n" in told  # of the profile
    assert f"warehouse: file:{warehouse}\n" in told  # of the session
    assert list(elsewhere.iterdir()) == []


def test_lock_interruption_and_survival_beside_another_project(
    project: Path, tmp_path: Path
) -> None:
    told, _ = start(project, "run").communicate()
    assert "rebuilt 10 rows" in told

    running = start(project, "run", *WITHOUT_END)
    lines = read_until(running.stdout, "START sql qbeast model s.endless")
    assert any("Starting Spark" in line for line in lines)
    assert not any("WARN" in line or ":: " in line for line in lines)  # Spark's and Ivy's noise

    # How far it is comes in lines of dbt's own, between the others.
    lines += read_until(running.stdout, " tasks, ")
    assert re.search(r"model\.demo\.endless: [a-z ]+, \d+ of \d+ tasks, \d+ s", lines[-1])
    assert [line for line in lines if not re.match(r"\d\d:\d\d:\d\d ", line)] == []

    # Told by the lock, not by Spark: this one would not even find a Java.
    second, _ = start(project, "run", **without_java(project)).communicate()
    assert f"is in use by process {running.pid} " in second
    assert "wait for that process to end" in second
    assert "Found" not in second  # told before the project is parsed

    other = tmp_path / "other"
    other.mkdir()
    write_project(other, TARGET, {"first.sql": FIRST, "endless.sql": ENDLESS})
    told, _ = start(other, "run").communicate()
    assert "rebuilt 10 rows" in told
    assert (other / "warehouse" / "s.db" / "first").is_dir()
    read_until(running.stdout, "model.demo.endless: ")  # this one is still at work

    running.send_signal(signal.SIGINT)
    rest, _ = running.communicate()
    assert running.returncode != 0
    assert "endless" in rest
    assert "CANCEL" in rest
    assert last_version(project / "warehouse" / "s.db" / "endless") == 0

    after, _ = start(project, "show", "--inline", COUNTS).communicate()
    assert re.search(r"\|\s+100 \|\s+10 \|", after), after
    assert not (project / "derby.log").exists()
