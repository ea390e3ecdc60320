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

from tests.support.spark_session import SHARED_JVM

PROJECT = Path(__file__).parents[1]
FAULTS = PROJECT / "tests" / "mutants.yml"

# pytest's exit codes. With any other, the tests did not run.
PASSED, FAILED = 0, 1
KILLED, SURVIVED = "killed", "SURVIVED"
NOT_APPLIED, NOT_TESTED, TIMED_OUT = "DOES NOT APPLY", "NOT TESTED", "TIMED OUT"
PATIENCE_SECONDS = 900
# Each process leaves a metastore in the memory of its JVM.
USES_OF_JVM = 40
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
        copies = [Copy(Path(directory) / str(i)) for i in range(options.processes)]
        selection = sorted({test for fault in faults for test in fault.tests})
        print(f"{len(faults)} faults; first running {len(selection)} tests without any", flush=True)
        if copies[0].run_tests(selection) != PASSED:
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


def judge_all(faults: Sequence[Fault], copies: Sequence[Copy]) -> list[str]:
    """The verdict on each fault; tries as many faults at a time as there are copies."""
    free: queue.SimpleQueue[Copy] = queue.SimpleQueue()
    for copy in copies:
        free.put(copy)

    def judged(fault: Fault) -> str:
        copy = free.get()
        try:
            verdict = copy.judge(fault)
        finally:
            free.put(copy)
        print(f"{verdict:14}  {fault}", flush=True)
        return verdict

    with ThreadPoolExecutor(len(copies)) as pool:
        return list(pool.map(judged, faults))


class Copy:
    """A copy of the project, with a JVM in which its tests run, one process after the other."""

    def __init__(self, directory: Path) -> None:
        """Copy the files that git does not ignore, including uncommitted changes."""
        listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(listing, cwd=PROJECT, check=True, capture_output=True, text=True)
        for name in listed.stdout.split("\0"):
            if name and (PROJECT / name).is_file():
                (directory / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(PROJECT / name, directory / name)
        self.directory = directory
        self._jvm = SharedJvm()

    def judge(self, fault: Fault) -> str:
        """Apply a fault, run its tests and return the verdict."""
        file = self.directory / fault.file
        source = file.read_text(encoding="utf-8")
        faulty = fault.applied_to(source)
        if faulty is None:
            return NOT_APPLIED
        file.write_text(faulty, encoding="utf-8")
        try:
            code = self.run_tests(fault.tests, patience_seconds=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._jvm.end()
            return TIMED_OUT
        finally:
            file.write_text(source, encoding="utf-8")
        verdict = {PASSED: SURVIVED, FAILED: KILLED}.get(code, NOT_TESTED)
        if verdict == NOT_TESTED:
            self._jvm.end()
        return verdict

    def run_tests(self, tests: Sequence[str], *, patience_seconds: int | None = None) -> int:
        """Run tests and return pytest's exit code; without output if there is a time limit.

        Raises TimeoutExpired.
        """
        output = None if patience_seconds is None else subprocess.DEVNULL
        own = {
            "PYTHONPATH": str(self.directory),
            # Bytecode would be stale if a line is restored within a second.
            "PYTHONDONTWRITEBYTECODE": "1",
            SHARED_JVM: self._jvm.address(),
        }
        return subprocess.run(
            [sys.executable, *PYTEST, *tests],
            cwd=self.directory,
            env={**os.environ, **own},
            stdout=output,
            stderr=output,
            timeout=patience_seconds,
        ).returncode


class SharedJvm:
    """A JVM that runs the tests of several processes; it ends with this process at the latest."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._address = ""
        self._uses = 0

    def address(self) -> str:
        """The address for the next process; starts a JVM if there is none, or if it is used up."""
        if self._uses == USES_OF_JVM:
            self.end()
        if self._process is None:
            command = [sys.executable, "-m", "tests.support.spark_session"]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(
                command, cwd=PROJECT, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
            )
            assert self._process.stdout is not None
            self._address = self._process.stdout.readline().strip()
        self._uses += 1
        return self._address

    def end(self) -> None:
        """End the JVM if there is one."""
        if self._process is not None:
            self._process.communicate()
        self._process, self._uses = None, 0


if __name__ == "__main__":
    sys.exit(main())
