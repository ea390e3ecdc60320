"""Stores results as JSON lines: first the environment, then a line per comparison.

The suite appends each line as soon as it is measured, so an interrupted run keeps its results.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.comparison import Comparison
from benchmarks.targets import judged

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Run:
    """The results of one run of the suite."""

    environment: Mapping[str, Any]
    comparisons: tuple[Comparison, ...]

    @property
    def scale(self) -> float:
        return float(self.environment["scale"])


class Recorder:
    """Writes the lines of a run to a new file."""

    def __init__(self, directory: Path, environment: Mapping[str, Any]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        name = f"{environment['started'].replace(':', '')}-scale-{environment['scale']:g}.jsonl"
        self.path = directory / name
        self._append({"environment": dict(environment)})

    def record(self, comparison: Comparison) -> str:
        """Store a comparison and return its line."""
        return self._append(comparison.line())

    def _append(self, content: Mapping[str, Any]) -> str:
        line = json.dumps(content)
        with self.path.open("a") as file:
            file.write(line + "\n")
        return line


def environment(scale: float, versions: Mapping[str, str]) -> dict[str, Any]:
    """What a reader of the figures must know about the machine and the code."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "scale": scale,
        "started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": _commit(),
        "cores": os.cpu_count(),
        "memory_gb": round(pages / 1e9, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **versions,
    }


def _commit() -> str:
    """The commit of this code, with `-dirty` if files have changed since; or `unknown`."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        done = subprocess.run(
            command, cwd=Path(__file__).parent, check=True, capture_output=True, text=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def load(file: Path) -> Run:
    """The run stored in a file, judged by today's targets."""
    first, *lines = [json.loads(line) for line in file.read_text().splitlines()]
    environment = first["environment"]
    found = (judged(Comparison.of_line(line), environment["scale"]) for line in lines)
    dated = (replace(each, measured=environment["started"]) for each in found)
    return Run(environment, tuple(dated))


def latest(directory: Path) -> dict[float, Run]:
    """The newest figures of each case, by scale.

    A run of a few cases replaces only their earlier figures. The environment is that of the newest
    run.
    """
    runs = sorted(
        (load(file) for file in directory.glob("*.jsonl")),
        key=lambda run: str(run.environment["started"]),
    )
    return {scale: _merged(run for run in runs if run.scale == scale) for scale in _scales(runs)}


def _scales(runs: Iterable[Run]) -> list[float]:
    return sorted({run.scale for run in runs})


def _merged(runs: Iterable[Run]) -> Run:
    newest: dict[tuple[str, str, str, str], Comparison] = {}
    environment: Mapping[str, Any] = {}
    for run in runs:
        environment = run.environment
        for each in run.comparisons:
            newest[each.case, each.unit, each.ours.name, each.other.name] = each
    return Run(environment, tuple(newest.values()))
