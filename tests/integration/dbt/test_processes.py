"""dbt as a process of its own on the embedded default: lock, Ctrl-C, what survives, no Java."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.dbt.processes import SPARK_CONFIG, TARGET, read_until, start
from tests.integration.dbt.projects import write_project
from tests.support.delta_log import last_version

pytestmark = pytest.mark.usefixtures("no_process_left")

FIRST = "{{ config(materialized='qbeast', columns_to_index='id') }} select id from range(100)"
# A query that sleeps leaves the cores to the processes beside it.
ENDLESS = """
{{ config(materialized='qbeast', columns_to_index='id') }}
-- depends_on: {{ ref('first') }}
select id from range(0, {{ var('rows', 10) }}, 1, 2)
where id < 10 or reflect('java.lang.Thread', 'sleep', 50L) = ''
"""
WITHOUT_END = ("--vars", "{rows: 1000000000000000}")
COUNT = "select count(*) as first from {{ ref('first') }}"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_project(tmp_path, TARGET, {"first.sql": FIRST, "endless.sql": ENDLESS})
    return tmp_path


def directories_of(project: Path) -> tuple[str, ...]:
    return "--project-dir", str(project), "--profiles-dir", str(project)


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
    told, _ = start(elsewhere, "debug", *directories_of(project)).communicate()
    warehouse = project / "warehouse"
    assert f"warehouse: {warehouse}\n" in told  # of the profile
    assert f"warehouse: file:{warehouse}\n" in told  # of the session
    assert list(elsewhere.iterdir()) == []


ZONE = "{{ config(materialized='table') }} select current_timezone() as zone"
TARGETS = """
from dbt.cli.main import dbtRunner

for target in ("tokyo", "plain", "lima", "small", "cluster"):
    result = dbtRunner().invoke(["-q", "build", "--target", target])
    print(target, result.exception or [each.message for each in result.result], flush=True)
"""


def test_two_targets_in_one_process_have_their_own_settings(tmp_path: Path) -> None:
    def zone(name: str) -> dict[str, str]:
        return {**SPARK_CONFIG, "spark.sql.session.timeZone": name}

    def output(schema: str, **target: object) -> dict[str, object]:
        return {"type": "qbeast", "schema": schema, "spark_config": SPARK_CONFIG, **target}

    write_project(tmp_path, TARGET, {"zone.sql": ZONE})
    outputs = {
        "tokyo": output("tokyo", spark_config=zone("Asia/Tokyo")),
        "plain": output("plain"),
        "lima": output("lima", spark_config=zone("America/Lima")),
        "small": output("small", spark_config={**SPARK_CONFIG, "spark.driver.memory": "900m"}),
        "cluster": output("cluster", master="spark://host:7077"),
    }
    profiles = {"demo": {"target": "plain", "outputs": outputs}}
    (tmp_path / "profiles.yml").write_text(json.dumps(profiles))
    (tmp_path / "tests").mkdir()
    for name, expected in (("tokyo", "Asia/Tokyo"), ("plain", "Etc/UTC"), ("lima", "America/Lima")):
        test = f"select * from {{{{ ref('zone') }}}} where '{{{{ target.name }}}}' = '{name}'"
        (tmp_path / f"tests/{name}.sql").write_text(f"{test} and zone != '{expected}'")
    environment = {**os.environ, "DO_NOT_TRACK": "1", "TZ": "Etc/UTC"}
    told = subprocess.run(
        [sys.executable, "-c", TARGETS],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    by_target = dict(
        line.split(" ", 1) for line in told.splitlines() if line.split(" ")[0] in outputs
    )
    for name in ("tokyo", "plain", "lima"):
        assert by_target[name] == "['OK', None, None, None]", told
    assert "differs in spark.driver.memory" in told
    assert "sets the master spark://host:7077" in told


def test_lock_interruption_and_survival_beside_another_project(
    project: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # From another directory, which stays empty.
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    running = start(elsewhere, "run", *directories_of(project), *WITHOUT_END)
    lines = read_until(running.stdout, "START sql qbeast model s.endless")
    assert list(elsewhere.iterdir()) == []
    assert (project / "warehouse" / "s.db" / "first").is_dir()
    assert (project / "warehouse" / "metastore_db").is_dir()
    assert any("Starting Spark" in line for line in lines)
    assert not any("WARN" in line or ":: " in line for line in lines)  # Spark's and Ivy's noise

    # dbt's own log lines show the progress.
    lines += read_until(running.stdout, " tasks, ")
    assert re.search(r"model\.demo\.endless: [a-z ]+, \d+ of \d+ tasks, \d+ s", lines[-1])
    assert [line for line in lines if not re.match(r"\d\d:\d\d:\d\d ", line)] == []

    # The lock reports it before Spark starts: this process has no Java.
    second, _ = start(project, "run", **without_java(project)).communicate()
    assert f"is in use by process {running.pid} " in second
    assert "wait for that process to end" in second
    assert "Found" not in second  # reported before dbt parses the project

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
    assert last_version(project / "warehouse" / "s.db" / "endless") == -1

    after, _ = start(project, "show", "--inline", COUNT).communicate()
    assert re.search(r"\|\s+100 \|", after), after
    assert not (project / "derby.log").exists()
