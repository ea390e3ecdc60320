"""What processes report of their changes and reads, and what the table must be by these reports.

Each process changes only rows with ids of its own, so the order of the versions decides what the
table holds. The exception is an overwrite, which replaces the rows of all processes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzz.rows import Row

IDS_OF_A_PROCESS = 1_000_000

Rows = Mapping[int, Row]
"""The rows of a version, by their ids."""


@dataclass(frozen=True)
class Where:
    """A condition for the rows of one process."""

    first: int
    end: int
    """The ids from `first` up to, but without, `end`."""
    lowest: int | None = None
    highest: int | None = None
    """The range of `a`; without one, all rows with such ids."""

    @property
    def sql(self) -> str:
        ids = f"id >= {self.first} and id < {self.end}"
        return (
            ids if self.lowest is None else f"{ids} and a between {self.lowest} and {self.highest}"
        )

    def keeps(self, row: Row) -> bool:
        if not self.first <= row.id < self.end:
            return False
        if self.lowest is None or self.highest is None:
            return True
        return row.a is not None and self.lowest <= row.a <= self.highest


@dataclass(frozen=True)
class Change:
    """A change that an operation reported as done, in the order removed, increased, put."""

    operation: str
    version: int
    committed: bool = True
    """False if there was nothing to do, for an operation that read this version."""
    clears: bool = False
    """Whether it removed all rows, those of other processes too."""
    removed: Where | None = None
    increased: Where | None = None
    by: int = 0
    """What was added to `a` of the increased rows."""
    put: tuple[Row, ...] = ()
    """Rows that it added, or put in the place of those with their ids."""
    reported: Mapping[str, int] = field(default_factory=dict)
    """The numbers of `deleted`, `updated` and `inserted` rows in its result, where it has them."""

    def applied(self, before: Rows) -> tuple[Rows, Mapping[str, int]]:
        """The rows after the change, and what it must have reported."""
        rows = {} if self.clears else dict(before)
        deleted = [row.id for row in rows.values() if self.removed and self.removed.keeps(row)]
        for id_ in deleted:
            del rows[id_]
        increased = [row for row in rows.values() if self.increased and self.increased.keeps(row)]
        for row in increased:
            rows[row.id] = row._replace(a=None if row.a is None else row.a + self.by)
        present = sum(row.id in rows for row in self.put)
        rows |= {row.id: row for row in self.put}
        return rows, {
            "deleted": len(deleted),
            "updated": len(increased) + present,
            "inserted": len(self.put) - present,
        }


@dataclass(frozen=True)
class Read:
    """What a reader saw: the number of rows that a condition keeps, and their checksum."""

    first_version: int
    last_version: int
    """It read one version from the first to the last of these."""
    where: Where | None
    rows: int
    checksum: int


def checksum(rows: Iterable[tuple[int, int | None]]) -> int:
    """A number that changes with the id and with `a` of any row."""
    return sum((id_ + 1) * (7 if a is None else a + 100_003) for id_, a in rows)


CHECKSUM_SQL = "coalesce(sum((id + 1) * if(a is null, 7, a + 100003)), 0)"


def matches(read: Read, rows: Rows) -> bool:
    """Whether these are the rows that were read."""
    kept = [row for row in rows.values() if read.where is None or read.where.keeps(row)]
    return (read.rows, read.checksum) == (len(kept), checksum((row.id, row.a) for row in kept))


class Journal:
    """The reports of one process, in a file that a line is added to at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, report: Change | Read) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps({"kind": type(report).__name__, **asdict(report)}) + "\n")

    def reports(self) -> Iterator[Change | Read]:
        if not self._path.exists():
            return
        for line in self._path.read_text().splitlines():
            yield _report(json.loads(line))


def _report(stored: dict[str, Any]) -> Change | Read:
    kind = stored.pop("kind")
    for name in ("removed", "increased", "where"):
        if stored.get(name) is not None:
            stored[name] = Where(**stored[name])
    if kind == "Read":
        return Read(**stored)
    return Change(**stored | {"put": tuple(Row(*row) for row in stored["put"])})


def versions_of(changes: Iterable[Change], last: int) -> dict[int, Rows]:
    """The rows that each version must have, up to the last one.

    A version that nobody reports holds the rows of the one before: an optimize makes several and
    reports the last.

    Raises:
        AssertionError: two changes report one version, or a change reports other numbers of rows
            than it changed.
    """
    committed: dict[int, Change] = {}
    idle: list[Change] = []
    for change in changes:
        if not change.committed:
            idle.append(change)
            continue
        assert change.version not in committed, (change, committed[change.version])
        committed[change.version] = change
    rows: Rows = {}
    found: dict[int, Rows] = {}
    for version in range(last + 1):
        if version in committed:
            rows, expected = committed[version].applied(rows)
            _check_counts(committed[version], expected)
        found[version] = rows
    assert max(committed) <= last, f"version {max(committed)} is reported, but the last is {last}"
    for change in idle:
        after, expected = change.applied(found[change.version])
        _check_counts(change, expected)
        assert after == found[change.version], f"{change} had something to do"
    return found


def _check_counts(change: Change, expected: Mapping[str, int]) -> None:
    told = {name: (count, expected[name]) for name, count in change.reported.items()}
    assert all(count == wanted for count, wanted in told.values()), (
        f"{change.operation} of version {change.version} reports (is, must be) {told}: {change}"
    )
