"""Every operation is killed before and after its commit, and repeated as by a scheduler.

Here a kill is an exception that no code catches. Each test also checks what a kill at an earlier
step would leave. test_crashes.py kills real processes at these steps.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from qbeast_core import failpoints
from tests.integration.core.killed_operations import (
    CREATED,
    KILLABLE,
    LEGACY,
    MEASURED,
    PARQUET,
    Rows,
    place_of_created,
)
from tests.support.delta_log import last_version, live_adds, plain
from tests.support.invariants import assert_sound


class Killed(BaseException):
    """The end of a process. Not an `Exception`, so that no code handles it."""


def kill() -> None:
    raise Killed


@contextmanager
def looking(look: Callable[[str], object]) -> Iterator[None]:
    """Call `look` at each step before the commit."""
    with ExitStack() as stack:
        for step in MEASURED[:-1]:
            stack.enter_context(failpoints.at(step, partial(look, step)))
        yield


def by_id(rows: DataFrame) -> Rows:
    """The other values of each `id`; fails if an id occurs twice."""
    values = [name for name in rows.columns if name != "id"]
    found = [tuple(row) for row in rows.select("id", *values).collect()]
    assert len({row[0] for row in found}) == len(found)
    return {row[0]: row[1:] for row in found}


def rows_before(spark: SparkSession, path: str, table: str | None) -> Rows:
    """The rows that an operation starts from; of a table in the old format without the copies."""
    if table is None:
        return {}
    if table == PARQUET:
        return by_id(spark.read.parquet(path))
    rows = plain(spark, path)
    return by_id(rows.distinct() if table == LEGACY else rows)


def files_of(path: str) -> frozenset[str]:
    return frozenset(str(file.relative_to(path)) for file in Path(path).rglob("*"))


@pytest.mark.parametrize("name", KILLABLE)
def test_an_operation_killed_at_any_step_leaves_a_whole_table_and_can_be_repeated(
    spark: SparkSession, killable_tables: Path, tmp_path: Path, name: str
) -> None:
    operation, path = KILLABLE[name], str(tmp_path / "t")
    if operation.starts_from is None:
        path = place_of_created(spark)
    else:
        shutil.copytree(killable_tables / operation.starts_from, path)
    version, live, files = last_version(path), live_adds(path), files_of(path)
    expected = operation.expected(rows_before(spark, path, operation.starts_from))

    left: dict[str, frozenset[str]] = {}

    def look(step: str) -> None:
        """Record what a process leaves that is killed now."""
        assert files <= files_of(path)
        assert (last_version(path), live_adds(path)) == (version, live)
        left[step] = files_of(path) - files
        if step == failpoints.BEFORE_COMMIT:
            raise Killed

    if failpoints.BEFORE_COMMIT in operation.steps:
        with looking(look), pytest.raises(Killed):
            operation.act(spark, path)
    assert (*left, failpoints.AFTER_COMMIT) == operation.steps
    for step, orphans in left.items():
        # Nothing but files that no version has.
        assert not {Path(name).suffix for name in orphans} - {"", ".parquet", ".crc"}, step
    if failpoints.FILES_WRITTEN in left:
        assert any(name.endswith(".parquet") for name in left[failpoints.FILES_WRITTEN])

    with failpoints.at(failpoints.AFTER_COMMIT, kill), pytest.raises(Killed):
        operation.act(spark, path)
    assert last_version(path) == version + 1
    assert by_id(plain(spark, path)) == expected

    if operation.is_done is None or not operation.is_done(spark, path):
        operation.act(spark, path)
    assert by_id(plain(spark, path)) == expected
    assert_sound(spark, path, list(expected))
    if operation.starts_from is None:
        assert by_id(spark.table(CREATED)) == expected
        spark.sql(f"drop table {CREATED}")
