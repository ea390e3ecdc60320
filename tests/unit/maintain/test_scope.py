"""Which older revisions join the latest one."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

from qbeast_core.maintain.scope import Scope, small_revisions

CUBE_SIZE = 1000


def after(rows: dict[int, int], joining: list[int], latest: int) -> dict[int, int]:
    """The rows of each revision after the optimize."""
    moved = sum(rows[id_] for id_ in [*joining, 0] if id_ in rows)
    left = {id_: count for id_, count in rows.items() if id_ not in {*joining, 0, latest}}
    return {**left, latest: rows.get(latest, 0) + moved}


def test_appends_of_one_size_all_join() -> None:
    assert small_revisions({1: 10, 2: 10, 3: 10}, latest=3, cube_size=CUBE_SIZE) == [1, 2]


def test_a_revision_with_as_many_rows_as_a_cube_stays() -> None:
    assert small_revisions({1: 1000, 2: 999, 3: 5000}, latest=3, cube_size=CUBE_SIZE) == [2]


def test_a_revision_with_more_rows_than_join_it_stays() -> None:
    assert small_revisions({1: 31, 2: 10, 3: 10, 4: 10}, latest=4, cube_size=CUBE_SIZE) == [2, 3]
    assert small_revisions({1: 30, 2: 10, 3: 10, 4: 10}, latest=4, cube_size=CUBE_SIZE) == [1, 2, 3]


def test_unindexed_rows_join_too() -> None:
    assert small_revisions({0: 20, 1: 30, 2: 10}, latest=2, cube_size=CUBE_SIZE) == [1]
    assert small_revisions({1: 30, 2: 10}, latest=2, cube_size=CUBE_SIZE) == []


def test_a_latest_revision_without_rows_is_joined_by_none() -> None:
    assert small_revisions({1: 30, 2: 0}, latest=2, cube_size=CUBE_SIZE) == []


def test_a_second_optimize_finds_none() -> None:
    chance = random.Random(7)
    for _ in range(200):
        rows = {id_: chance.randint(0, 1200) for id_ in range(chance.randint(2, 12))}
        latest = max(rows)
        joining = small_revisions(rows, latest, CUBE_SIZE)
        assert small_revisions(after(rows, joining, latest), latest, CUBE_SIZE) == []


def test_a_year_of_hourly_appends_leaves_few_revisions_and_rewrites_few_rows() -> None:
    rows: dict[int, int] = {}
    rewritten = 0
    for hour in range(1, 365 * 24 + 1):
        rows[hour] = 10
        joining = small_revisions(rows, hour, CUBE_SIZE)
        rewritten += sum(rows[id_] for id_ in joining)
        rows = after(rows, joining, hour)
    assert len(rows) <= 365 * 24 * 10 / (CUBE_SIZE / 2) + 10
    # Doubling from 10 rows to a cube takes seven rewrites.
    assert rewritten <= 7 * 365 * 24 * 10


def test_all_revisions_are_those_with_files_and_the_latest() -> None:
    """Hourly appends leave thousands of others."""
    entries = [SimpleNamespace(revision_id=id_) for id_ in (3, 0, 3)]
    table: Any = SimpleNamespace(
        configuration=SimpleNamespace(revisions=dict.fromkeys(range(6))),
        index=SimpleNamespace(files=entries),
    )
    assert Scope("all").revisions(table) == [0, 3, 5]
    table.configuration.revisions = {0: None}
    assert Scope("all").revisions(table) == [0]
