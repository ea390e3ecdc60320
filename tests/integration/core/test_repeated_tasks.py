"""Tasks that Spark runs more than once, on a standalone cluster: every row lands once."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.core.faulty_tasks import (
    LOSE_EXECUTOR,
    RETRY,
    SOURCE,
    SPECULATE,
)
from tests.support.delta_log import actions, last_version
from tests.support.invariants import assert_rows_in_their_cubes, assert_sound
from tests.support.java_classes import store_in_jar
from tests.support.standalone_cluster import PATIENCE_SECONDS, standalone_cluster

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def cluster_run(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, set[str]]:
    """A table that was written with these faults, and the names of what the faults left."""
    root = tmp_path_factory.mktemp("cluster")
    path, faults, jar = root / "t", root / "faults", root / "faulty-tasks.jar"
    faults.mkdir()
    store_in_jar(spark, SOURCE, jar)
    wanted = {"warehouse": root / "warehouse", "path": path, "faults": faults, "jar": jar}
    # Spark runs no second attempt of a task on the host of the first one.
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.2", 0))
        except OSError:
            pytest.skip("needs the address 127.0.0.2 (macOS: ifconfig lo0 alias 127.0.0.2)")
    with standalone_cluster(root / "work", "127.0.0.1", "127.0.0.2") as master:
        run = subprocess.run(
            [
                sys.executable,
                str(Path(__file__).with_name("cluster_process.py")),
                json.dumps({"master": master, **{key: str(each) for key, each in wanted.items()}}),
            ],
            env={**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"},
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE_SECONDS,
            check=False,
        )
    assert run.returncode == 0, run.stdout + run.stderr[-4000:]
    done = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    assert [each["fault"] for each in done] == [RETRY, SPECULATE, LOSE_EXECUTOR, RETRY, RETRY]
    assert [each["version"] for each in done] == list(range(last_version(path) + 1))
    return path, {file.name for file in faults.iterdir()}


def added_files(path: Path, version: int) -> list[str]:
    return [add["path"] for add in actions(path, version, "add")]


def test_tasks_that_fail_or_lose_their_executor_write_every_row_once(
    spark: SparkSession, cluster_run: tuple[Path, set[str]]
) -> None:
    path, left = cluster_run
    retried = {name for name in left if name.startswith("retried.")}
    assert len(retried) > 2 and LOSE_EXECUTOR not in left
    # Files stay of the attempts that failed, that died, and that did not count.
    committed = {file for version in range(5) for file in added_files(path, version)}
    written = {file.name for file in path.glob("*.parquet")}
    assert committed < written
    assert len(written - committed) >= len(retried) + 1 + 1
    assert_sound(spark, path, range(860))
    assert_rows_in_their_cubes(spark, path)


def test_of_two_attempts_that_both_succeed_one_counts(
    spark: SparkSession, cluster_run: tuple[Path, set[str]]
) -> None:
    path, left = cluster_run
    assert "speculated" in left
    rows = spark.read.parquet(*(str(path / file) for file in added_files(path, 1)))
    assert sorted(row.id for row in rows.collect()) == list(range(400, 800))
