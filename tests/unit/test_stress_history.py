"""The oracle of `make stress` finds wrong reads and reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.rows import Row
from tests.stress.history import Change, Journal, Read, Where, checksum, matches, versions_of


def row(id_: int, a: int | None = 0) -> Row:
    return Row(id_, a, 0.5, "s")


CREATED = Change("overwrite", 0, clears=True, put=(row(1), row(2, 9), row(3, None)))
LATER = [
    Change("update", 3, increased=Where(1, 9), by=5, reported={"updated": 4}),
    Change("merge", 1, put=(row(2, 1), row(4)), reported={"updated": 1, "inserted": 1}),
    Change("replace_where", 4, removed=Where(3, 9), put=(row(5),), reported={"deleted": 2}),
    Change("delete", 4, committed=False, removed=Where(7, 9), reported={"deleted": 0}),
]


def a_of(rows: object) -> dict[int, int | None]:
    assert isinstance(rows, dict)
    return {id_: row.a for id_, row in rows.items()}


def test_the_order_of_the_versions_decides() -> None:
    found = versions_of([*LATER, CREATED], 5)
    assert a_of(found[0]) == {1: 0, 2: 9, 3: None}
    assert a_of(found[1]) == a_of(found[2]) == {1: 0, 2: 1, 3: None, 4: 0}
    assert a_of(found[3]) == {1: 5, 2: 6, 3: None, 4: 5}
    assert a_of(found[4]) == a_of(found[5]) == {1: 5, 2: 6, 5: 0}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Change("append", 1, put=(row(6),)), "merge"),
        (Change("delete", 2, removed=Where(1, 3), reported={"deleted": 1}), r"\(1, 2\)"),
        (Change("delete", 2, committed=False, removed=Where(1, 3)), "had something to do"),
        (Change("append", 6, put=(row(6),)), "the last is 5"),
    ],
    ids=["two of one version", "wrong number", "nothing done", "lost version"],
)
def test_an_impossible_report_is_rejected(wrong: Change, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        versions_of([CREATED, *LATER, wrong], 5)


def test_a_read_matches_the_rows_that_it_saw_and_no_others() -> None:
    rows = versions_of([CREATED], 0)[0]
    where = Where(1, 9, 5, 10)
    assert where.sql == "id >= 1 and id < 9 and a between 5 and 10"
    assert matches(Read(0, 0, where, 1, checksum([(2, 9)])), rows)
    whole = checksum([(3, None), (1, 0), (2, 9)])
    assert matches(Read(0, 0, None, 3, whole), rows)
    assert not matches(Read(0, 0, None, 2, whole), rows)
    assert not matches(Read(0, 0, None, 3, checksum([(3, 9), (1, 0), (2, None)])), rows)


def test_reports_are_stored_as_they_are(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    assert list(journal.reports()) == []
    reports = [CREATED, *LATER, Read(0, 3, Where(1, 2), 1, 7), Read(2, 2, None, 0, 0)]
    for report in reports:
        journal.add(report)
    assert list(journal.reports()) == reports
