"""Lists of tests (`exhaustive.txt`, `mutants.yml`, docs/reliability.md) name tests that exist."""

from __future__ import annotations

import subprocess
import sys
from fnmatch import fnmatchcase

import pytest

from scripts.mutants import PROJECT, read_faults
from tests.conftest import exhaustive_patterns, is_exhaustive
from tests.unit.docs.test_reliability import rows

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def collected() -> list[str]:
    """The ids of all tests outside tests/conformance and tests/interop."""
    folders = [f"tests/{name}" for name in ("unit", "property", "integration", "docs", "matrix")]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *folders, "tests/scale"], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    return [line for line in done.stdout.splitlines() if line.startswith("tests/") and "::" in line]


def cases_of(test: str, collected: list[str]) -> list[str]:
    """The ids of a file, a class or a function."""
    return [id_ for id_ in collected if id_ == test or id_.startswith((f"{test}[", f"{test}::"))]


def test_each_line_of_the_exhaustive_tests_matches_a_test(collected: list[str]) -> None:
    patterns = [f"tests/{line}".replace("[", "[[]") for line in exhaustive_patterns()]
    assert [p for p in patterns if not any(fnmatchcase(id_, p) for id_ in collected)] == []


def test_each_fault_has_tests_that_exist(collected: list[str]) -> None:
    tests = {test for fault in read_faults() for test in fault.tests}
    assert [test for test in sorted(tests) if not cases_of(test, collected)] == []


def test_make_test_runs_a_case_of_each_test_of_a_fault_on_the_page(collected: list[str]) -> None:
    left_out = [
        f"{file}::{name}"
        for row in rows()
        for file, name in row.tests
        if all(map(is_exhaustive, cases_of(f"{file}::{name}", collected)))
    ]
    assert left_out == []
