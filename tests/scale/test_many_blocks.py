"""A table of more than 100,000 blocks, most of them of one row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable, write_table
from qbeast_core.model.weight import weight_of_fraction
from qbeast_core.tree import cuts
from qbeast_core.tree.cuts import FileCuts, cut_into_files
from tests.support.counters import counting
from tests.support.delta_log import plain

ROWS, BLOCKS = 110_000, 100_000
ROWS_PER_FILE = 1000


def in_large_files(*arguments: Any) -> FileCuts:
    """Files of many cubes; there would be as many files as rows otherwise."""
    *rows, _, band_ends = arguments
    return cut_into_files(*rows, ROWS_PER_FILE, band_ends)


def test_a_hundred_thousand_blocks_are_read_sampled_checked_and_added_to(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path)
    monkeypatch.setattr(cuts, "cut_into_files", in_large_files)

    def rows(first: int, count: int):
        columns = (
            "id",
            *(f"pmod(xxhash64(id, {i}), 1000000) as {name}" for i, name in enumerate("ab")),
        )
        return spark.range(first, first + count, 1, 2).selectExpr(*columns)

    ranges = {name: {"min": 0, "max": 1_000_000} for name in "ab"}
    write_table(
        rows(0, ROWS), path=path, columns_to_index=["a", "b"], cube_size=1, column_stats=ranges
    )
    table = QbeastTable.for_path(spark, path)
    read = plain(spark, path).selectExpr("id", "a", "hash(a, b) as w").collect()
    assert len(read) == ROWS

    asked = {}
    with counting(spark) as asked["open"]:
        files = len(table.files())
    assert table.blocks().count() >= BLOCKS and files < 200
    for fraction, most in ((0.001, None), (0.05, 20_000)):
        limit = weight_of_fraction(fraction)
        where = None if most is None else f"a < {most}"
        with counting(spark) as asked[f"sample {fraction}"]:
            found = [row.id for row in table.sample(fraction, where).select("id").collect()]
        kept = (row for row in read if most is None or row.a < most)
        assert sorted(found) == sorted(row.id for row in kept if row.w < limit)
    with counting(spark) as asked["check"]:
        report = table.check()
    assert report.ok and report.rows == ROWS, str(report)
    with counting(spark) as asked["optimize"]:
        assert not table.optimize().changed
    with counting(spark) as asked["append"]:
        assert not write_table(rows(ROWS, 100), path=path).new_revision
    print(f"\n{files} files: {asked}")
    assert QbeastTable.for_path(spark, path).sample(1.0).count() == ROWS + 100
    # Calls into the JVM are for tables, files and queries, never for blocks.
    assert all(counts.calls < 1000 and counts.jobs <= 5 for counts in asked.values())
