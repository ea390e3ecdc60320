"""dbt on a standalone cluster: a master, a worker and dbt's driver, each a process of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.dbt.projects import write_project
from tests.support.spark_session import JAVA_OPTIONS
from tests.support.standalone_cluster import standalone_cluster

SPARK_CONFIG = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.executor.extraJavaOptions": JAVA_OPTIONS,
    "spark.executor.memory": "1g",
    "spark.sql.shuffle.partitions": 2,
    "spark.ui.enabled": False,
}
EVENTS = """
{{ config(materialized='qbeast', columns_to_index=['id', 'kind'], cube_size=2000,
          incremental_strategy='append') }}
select id, cast(id % 7 as string) as kind from range(0, 3000, 1, 2)
{% if is_incremental() %} where id < 300 {% endif %}
"""
SAMPLED = (
    "{{ config(materialized='table') }} select id from {{ qbeast_sample(ref('events'), 0.1) }}"
)
SCHEMA = """
models:
  - name: events
    columns:
      - name: id
        data_tests:
          - not_null: {config: {sample: 0.1}}
"""
COMMANDS = """
import sys
from dbt.cli.main import dbtRunner
runner = dbtRunner()
for command in (
    ["run"],
    ["run", "-s", "events"],
    ["run", "-s", "events"],
    ["run-operation", "optimize"],
    ["run-operation", "check_index"],
    ["test"],
):
    if not runner.invoke(["--no-use-colors", *command]).success:
        sys.exit(f"{command} failed")
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The master's URL, and the directory in which the worker's applications leave their output."""
    directory = tmp_path_factory.mktemp("cluster")
    with standalone_cluster(directory, "127.0.0.1") as url:
        yield url, directory


def test_a_model_is_built_sampled_and_optimized_on_a_cluster(
    cluster: tuple[str, Path], tmp_path: Path
) -> None:
    url, work_directory = cluster
    write_project(
        tmp_path,
        {"master": url, "catalog": "memory", "spark_config": SPARK_CONFIG},
        {"events.sql": EVENTS, "sampled.sql": SAMPLED, "schema.yml": SCHEMA},
    )

    run = subprocess.run(
        [sys.executable, "-c", COMMANDS],
        cwd=tmp_path,
        env={**os.environ, "DO_NOT_TRACK": "1", "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )
    told = run.stdout + run.stderr
    assert run.returncode == 0, told
    assert f"on {url}" in told
    assert "rebuilt 3,000 rows" in told
    assert told.count("appended 300 rows") == 2
    # The two appended files; the rows of the first run are divided by weight already.
    assert "optimize s.events: rewrote 2 files" in told
    assert "check_index s.events: ok" in told
    assert "not_null_events_id reads a sample of 10 percent of s.events" in told
    # An executor of the worker did the work, for a client's driver runs no tasks.
    (executor,) = work_directory.glob("app-*/0/stderr")
    assert "Running task" in executor.read_text()
