"""docs/reliability.md has a row for each fault, and each row names tests that exist."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/reliability.md"
FAULTS = 55

SHARED = {
    "test_columns_that_cannot_be_indexed_are_named_with_what_can": (
        "its parameters are types that have no index, and too many columns"
    ),
}
"""The tests of more than one fault, and why."""

_ROW = re.compile(r"^\| (\d+) \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)
_LINK = re.compile(r"\[`([\w:]+)`\]\(\.\./(tests/[\w/]+\.py)\)")


@dataclass(frozen=True)
class Row:
    """One fault of the page."""

    number: int
    fault: str
    outcome: str
    tests: tuple[tuple[str, str], ...]
    """File and name of each test."""
    rest: str
    """What the last cell has beside them."""


def rows() -> list[Row]:
    text = PAGE.read_text(encoding="utf-8")
    return [
        Row(
            int(number),
            fault,
            outcome,
            tuple((file, name) for name, file in _LINK.findall(tests)),
            _LINK.sub("", tests).replace("<br>", ""),
        )
        for number, fault, outcome, tests in _ROW.findall(text)
    ]


@cache
def names_in(file: str) -> frozenset[str]:
    """The names of a file's tests; those of a class as `Class::test`."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    found = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            methods = (each for each in node.body if isinstance(each, ast.FunctionDef))
            found |= {f"{node.name}::{method.name}" for method in methods}
    return frozenset(name for name in found if name.rpartition("::")[2].startswith("test_"))


def test_every_fault_has_one_row() -> None:
    assert [row.number for row in rows()] == list(range(1, FAULTS + 1))
    assert len({row.fault for row in rows()}) == FAULTS


@pytest.mark.parametrize("row", rows(), ids=lambda row: str(row.number))
def test_a_row_names_tests_that_exist(row: Row) -> None:
    assert row.tests and not row.rest.strip()
    assert len(set(row.tests)) == len(row.tests)
    missing = [f"{file}::{name}" for file, name in row.tests if name not in names_in(file)]
    assert not missing


def test_a_test_stands_for_one_fault_unless_there_is_a_reason() -> None:
    faults = defaultdict(list)
    for row in rows():
        for _, name in row.tests:
            faults[name].append(row.number)
    assert {name for name, numbers in faults.items() if len(numbers) > 1} == set(SHARED)


def test_a_test_that_is_gone_is_noticed() -> None:
    here = "tests/unit/docs/test_reliability.py"
    assert "test_a_test_that_is_gone_is_noticed" in names_in(here)
    assert "rows" not in names_in(here) and "test_gone" not in names_in(here)
    assert "TestClone::test_a_clone_keeps_tags_and_revisions" in names_in(
        "tests/integration/dbt/test_clone.py"
    )
