"""Apply each fault of tests/mutants.yml to a copy of the project, and see its tests fail.

A fault that no test notices *survives*, and the command ends with an error; so it does if a line
is no longer where the list says, or if the tests fail without any fault.
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

# What pytest's exit codes mean here; with all others, the tests did not run.
PASSED, FAILED = 0, 1
KILLED, SURVIVED, NOT_APPLIED, NOT_TESTED = "killed", "SURVIVED", "DOES NOT APPLY", "NOT TESTED"
PATIENCE_SECONDS = 900


@dataclass(frozen=True)
class Fault:
    """One line of one file, what it is replaced by, and the tests that must fail then."""

    file: str
    line: str
    fault: str
    tests: Sequence[str]

    def applied_to(self, source: str) -> str | None:
        """The source with the fault; None unless it has the line exactly once."""
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
    parser.add_argument("--only", default="", help="faults whose file or line has this text")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    started = time.monotonic()
    faults = [fault for fault in read_faults() if options.only in str(fault)]
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        copies = [copy_of_project(Path(directory) / str(i)) for i in range(options.processes)]
        selection = sorted({test for fault in faults for test in fault.tests})
        print(f"{len(faults)} faults; first their {len(selection)} tests without any", flush=True)
        if run_tests(copies[0], selection) != PASSED:
            print("the tests fail without any fault, so their failing tells nothing")
            return 1
        verdicts = Counter(judge_all(faults, copies))
    minutes = (time.monotonic() - started) / 60
    counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    print(f"{counts} in {minutes:.1f} minutes")
    return int(set(verdicts) != {KILLED})


def read_faults() -> list[Fault]:
    """The faults of the list, in its order."""
    return [Fault(**entry) for entry in yaml.safe_load(FAULTS.read_text(encoding="utf-8"))]


def copy_of_project(to: Path) -> Path:
    """The files that git does not ignore, as they are on disk."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(listing, cwd=PROJECT, check=True, capture_output=True, text=True)
    for name in listed.stdout.split("\0"):
        if name and (PROJECT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / name, to / name)
    return to


def judge_all(faults: Sequence[Fault], copies: Sequence[Path]) -> list[str]:
    """What became of each fault; as many are tried at a time as there are copies."""
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
    """Whether the fault's tests fail with it."""
    file = copy / fault.file
    source = file.read_text(encoding="utf-8")
    faulty = fault.applied_to(source)
    if faulty is None:
        return NOT_APPLIED
    file.write_text(faulty, encoding="utf-8")
    try:
        code = run_tests(copy, fault.tests, patience_seconds=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        return KILLED
    finally:
        file.write_text(source, encoding="utf-8")
    return {PASSED: SURVIVED, FAILED: KILLED}.get(code, NOT_TESTED)


def run_tests(copy: Path, tests: Sequence[str], *, patience_seconds: int | None = None) -> int:
    """pytest's exit code. With a limit of time they run quietly. Raises TimeoutExpired."""
    output = None if patience_seconds is None else subprocess.DEVNULL
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests],
        cwd=copy,
        # Bytecode of a line that is back by the same second would be taken for the line's.
        env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=output,
        stderr=output,
        timeout=patience_seconds,
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
