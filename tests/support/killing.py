"""Processes that die of SIGKILL, together with their JVM, as in a container that is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def killed_process(script: Path, argument: str) -> None:
    """Run a script that ends with `kill_all`."""
    ended = subprocess.run(
        [sys.executable, str(script), argument],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
        start_new_session=True,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stdout[-2000:]


def kill_all() -> None:
    """Kill this process and its JVM."""
    os.killpg(os.getpgid(0), signal.SIGKILL)
