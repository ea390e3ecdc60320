"""dbt as a process of its own, with a small Spark."""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import IO

from tests.support.spark_session import JAVA_OPTIONS, SMALL_DATA

SPARK_CONFIG = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    **SMALL_DATA,
}
# One core: the other is for the processes that run beside it.
TARGET = {"progress": 0.5, "master": "local[1]", "spark_config": SPARK_CONFIG}

_started: "list[subprocess.Popen[str]]" = []


def end_all() -> None:
    """Kill the processes that were started and still run."""
    while _started:
        process = _started.pop()
        process.kill()
        process.wait()


def start(project: Path, *command: str, **environment: str) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        # Python warns of a module that is run and was imported before.
        [
            *(sys.executable, "-W", "ignore::RuntimeWarning"),
            *("-m", "dbt.cli.main", "--no-use-colors", *command),
        ],
        cwd=project,
        env={**os.environ, "DO_NOT_TRACK": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # What runs in the background of a shell ignores Ctrl-C, and so would its children.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    _started.append(process)
    return process


def read_until(stream: IO[str] | None, text: str) -> list[str]:
    """The lines up to the one that holds the text; fails when the process ends before."""
    assert stream is not None
    lines: list[str] = []
    for line in stream:
        lines.append(line)
        if text in line:
            return lines
    raise AssertionError(f"{text!r} was not printed:\n{''.join(lines)}")
