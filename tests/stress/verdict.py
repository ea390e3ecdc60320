"""Whether a table is what the processes of a stress run report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from qbeast_core import QbeastTable
from tests.fuzz.machine import besides_lost_blocks
from tests.fuzz.rows import Row
from tests.stress.history import Change, Read, Rows, matches, versions_of
from tests.support.checksums import assert_checksum
from tests.support.delta_log import actions, last_version, plain
from tests.support.invariants import assert_rows_in_their_cubes

_VERSIONS_TO_TRAVEL_TO = 10


class Verdict(NamedTuple):
    """How much was compared."""

    versions: int
    reads: int
    rows: int
    """The rows of the newest version and of some older ones."""


def judge(spark: SparkSession, path: str, reports: Sequence[Change | Read]) -> Verdict:
    """Compare the table and all reads with the reports of all changes. Raises AssertionError."""
    last = last_version(path)
    changes = [report for report in reports if isinstance(report, Change)]
    expected = versions_of(changes, last)
    _check_that_all_is_reported(path, last, {each.version for each in changes if each.committed})

    reads = [report for report in reports if isinstance(report, Read)]
    for read in reads:
        between = range(read.first_version, read.last_version + 1)
        assert any(matches(read, expected[version]) for version in between), read

    rows = _compare(plain(spark, path), expected[last], last)
    for version in range(0, last, max(1, last // _VERSIONS_TO_TRAVEL_TO)):
        older = spark.read.format("delta").option("versionAsOf", version).load(path)
        rows += _compare(older, expected[version], version)

    table = QbeastTable.for_path(spark, path)
    assert_checksum(path, last, [file.size_bytes for file in table.files()])
    problems = besides_lost_blocks(table.check().problems)
    assert not problems, problems
    assert_rows_in_their_cubes(spark, path)
    return Verdict(last + 1, len(reads), rows)


def _check_that_all_is_reported(path: str, last: int, reported: set[int]) -> None:
    for version in range(last + 1):
        if version not in reported:
            (commit,) = actions(path, version, "commitInfo")
            # An optimize makes several commits and reports the last, also when it gives up later.
            assert commit["operation"] == "OPTIMIZE", f"nobody reports version {version}: {commit}"


def _compare(table: DataFrame, expected: Rows, version: int) -> int:
    found = sorted(repr(Row(*row)) for row in table.select(*Row._fields).collect())
    wanted = sorted(map(repr, expected.values()))
    assert found == wanted, f"version {version} has {len(found)} rows, not {len(wanted)}"
    return len(found)
