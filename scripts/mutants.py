"""Apply each fault of tests/mutants.yml to a copy of the project, and check that its tests fail.

A fault that no test detects *survives*. The command exits with an error if a fault survives, if a
line is missing from its file, or if the tests fail without any fault or take too long with one.
"""

from __future__ import annotations

import argparse
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import yaml

PROJECT = Path(__file__).parents[1]
FAULTS = PROJECT / "tests" / "mutants.yml"

# pytest's exit codes. With any other, the tests did not run.
PASSED, FAILED = 0, 1
KILLED, SURVIVED = "killed", "SURVIVED"
NOT_APPLIED, NOT_TESTED, TIMED_OUT = "DOES NOT APPLY", "NOT TESTED", "TIMED OUT"
PATIENCE_SECONDS = 900
PYTEST = ("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider")


@dataclass(frozen=True)
class Fault:
    """A line of a file, its faulty replacement, and the tests that must fail with it."""

    file: str
    line: str
    fault: str
    tests: Sequence[str]

    def applied_to(self, source: str) -> str | None:
        """The source with the fault; None unless it contains the line exactly once."""
        lines = source.split("\n")
        places = [i for i, text in enumerate(lines) if text.strip() == self.line.strip()]
        if len(places) != 1:
            return None
        text = lines[places[0]]
        indentation = text[: len(text) - len(text.lstrip())]
        lines[places[0]] = indentation + self.fault.strip()
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"{self.file}: {self.line.strip()} -> {self.fault.strip()}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="only faults whose file or line has this text")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    started = time.monotonic()
    faults = [fault for fault in read_faults() if options.only in str(fault)]
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        copies = [copy_of_project(Path(directory) / str(i)) for i in range(options.processes)]
        selection = sorted({test for fault in faults for test in fault.tests})
        print(f"{len(faults)} faults; first running {len(selection)} tests without any", flush=True)
        if run_tests(copies[0], selection) != PASSED:
            print("the tests fail without any fault; fix them first")
            return 1
        verdicts = Counter(judge_all(faults, copies))
    minutes = (time.monotonic() - started) / 60
    counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    print(f"{counts} in {minutes:.1f} minutes")
    return int(set(verdicts) != {KILLED})


def read_faults() -> list[Fault]:
    """The faults in the order of the list."""
    return [Fault(**entry) for entry in yaml.safe_load(FAULTS.read_text(encoding="utf-8"))]


def copy_of_project(to: Path) -> Path:
    """Copy the files that git does not ignore, including uncommitted changes."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(listing, cwd=PROJECT, check=True, capture_output=True, text=True)
    for name in listed.stdout.split("\0"):
        if name and (PROJECT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / name, to / name)
    return to


def judge_all(faults: Sequence[Fault], copies: Sequence[Path]) -> list[str]:
    """The verdict on each fault; tries as many faults at a time as there are copies."""
    free: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for copy in copies:
        free.put(copy)

    def judged(fault: Fault) -> str:
        copy = free.get()
        try:
            verdict = judge(fault, copy)
        finally:
            free.put(copy)
        print(f"{verdict:14}  {fault}", flush=True)
        return verdict

    with ThreadPoolExecutor(len(copies)) as pool:
        return list(pool.map(judged, faults))


def judge(fault: Fault, copy: Path) -> str:
    """Apply a fault to a copy, run its tests and return the verdict."""
    file = copy / fault.file
    source = file.read_text(encoding="utf-8")
    faulty = fault.applied_to(source)
    if faulty is None:
        return NOT_APPLIED
    file.write_text(faulty, encoding="utf-8")
    try:
        code = run_tests(copy, fault.tests, patience_seconds=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        return TIMED_OUT
    finally:
        file.write_text(source, encoding="utf-8")
    return {PASSED: SURVIVED, FAILED: KILLED}.get(code, NOT_TESTED)


def run_tests(copy: Path, tests: Sequence[str], *, patience_seconds: int | None = None) -> int:
    """Run tests and return pytest's exit code; without output if there is a time limit.

    Raises TimeoutExpired.
    """
    output = None if patience_seconds is None else subprocess.DEVNULL
    return subprocess.run(
        [sys.executable, *PYTEST, *tests],
        cwd=copy,
        # If a line is restored within a second, Python would take its stale bytecode as current.
        env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=output,
        stderr=output,
        timeout=patience_seconds,
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
