"""A standalone cluster of Spark on this machine, each part of which is a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

PATIENCE_SECONDS = 300
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"


@contextmanager
def standalone_cluster(work_directory: Path, *hosts: str) -> Iterator[str]:
    """The master's URL, of a cluster with a worker of one core on each host.

    Args:
        work_directory: where the workers' applications leave their output.
        hosts: addresses of this machine, such as 127.0.0.1 and 127.0.0.2.
    """
    ports = ["--webui-port", "0", "--port", "0"]
    with ExitStack() as running:
        command = ["master.Master", "--host", "127.0.0.1", *ports]
        master = running.enter_context(_daemon(*command))
        port = master.wait_for(r"'sparkMaster' on port (\d+)")
        url = f"spark://127.0.0.1:{port}"
        options = [*ports, "--cores", "1", "--memory", "1g", "--work-dir", str(work_directory)]
        workers = [
            running.enter_context(_daemon("worker.Worker", "--host", host, *options, url))
            for host in hosts
        ]
        for worker in workers:
            worker.wait_for("(Successfully registered) with master")
        yield url


class _Daemon:
    """A process of Spark's, whose output is read as long as it lives."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.lines: list[str] = []
        self._process = process
        self._more = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def wait_for(self, pattern: str) -> str:
        """The first group of the pattern in a line of the output; fails after five minutes."""
        with self._more:
            arrived = self._more.wait_for(lambda: self._find(pattern), PATIENCE_SECONDS)
        assert arrived, f"{pattern!r} was not printed:\n{''.join(self.lines)}"
        return self._find(pattern)

    def _find(self, pattern: str) -> str:
        found = (re.search(pattern, line) for line in self.lines)
        return next((match.group(1) for match in found if match), "")

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._more:
                self.lines.append(line)
                self._more.notify_all()


@contextmanager
def _daemon(name: str, *arguments: str) -> Iterator[_Daemon]:
    command = [str(SPARK_CLASS), f"org.apache.spark.deploy.{name}", *arguments]
    environment = {**os.environ, "SPARK_DAEMON_MEMORY": "256m", "SPARK_LOCAL_IP": "127.0.0.1"}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield _Daemon(process)
    finally:
        process.terminate()
        process.wait(30)
