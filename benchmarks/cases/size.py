"""Measures growing tables: a sixtieth, a sixth and all rows of lineitem at one scale.

At scale 10 these are 1, 10 and 60 million rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow.parquet as pq

from benchmarks import data, layouts
from benchmarks.bench import Bench
from benchmarks.cases.sample import ALL, through_api
from benchmarks.comparison import Comparison, Side
from benchmarks.measuring import Query, alternate, collecting, planning, seconds_of, used_heap
from qbeast_core import QbeastTable, convert_to_qbeast

SHARES = (1 / 60, 1 / 6, 1.0)
ROWS = "rows"
"""The detail of each side with the number of rows of the table."""
_GIB = float(1 << 30)


def run(bench: Bench) -> Iterator[Comparison]:
    """Measure writing, sampling, planning, converting, and the driver memory that a write keeps."""
    for share in SHARES:
        yield from _at_size(bench, data.tpch("lineitem", round(bench.scale * share, 4)), share)


@dataclass(frozen=True)
class _Tables:
    """Two tables with the same rows, replaced by each write."""

    bench: Bench
    rows: str
    plain: str
    ours: str

    def write_plain(self) -> None:
        self.bench.remove(self.plain)
        layouts.write_plain(self.bench.spark.read.parquet(self.rows), self.plain)

    def write_qbeast(self) -> None:
        self.bench.remove(self.ours)
        rows = self.bench.spark.read.parquet(self.rows)
        layouts.write_qbeast(rows, self.ours, self.bench.lineitem.index)

    def optimize_plain(self) -> None:
        """Convert the plain table, and rewrite all of its rows with `optimize`."""
        spark = self.bench.spark
        convert_to_qbeast(spark, f"delta.`{self.plain}`", self.bench.lineitem.index)
        result = QbeastTable.for_path(spark, self.plain).optimize(revision_id="unindexed")
        assert result.changed


def _at_size(bench: Bench, rows: str, share: float) -> Iterator[Comparison]:
    number = pq.ParquetFile(rows).metadata.num_rows
    tables = _Tables(bench, rows, bench.place(), bench.place())

    def compare(what: str, unit: str, ours: Side, other: Side) -> Comparison:
        details = {ROWS: float(number)}
        return bench.compare(
            f"{what} of {number:,} rows",
            unit,
            replace(ours, details=details),
            replace(other, details=details),
        )

    before = used_heap(bench.spark)
    is_large = share == max(SHARES)
    written = alternate(
        {"plain Delta": tables.write_plain, "qbeast": tables.write_qbeast},
        runs=1 if is_large else 3,
        warmups=0 if is_large else 1,
    )
    kept = max(0, used_heap(bench.spark) - before)
    yield compare("write", "s", written["qbeast"], written["plain Delta"])
    yield compare(
        "memory kept by a write", "bytes", Side("driver", (float(kept),)), Side("1 GiB", (_GIB,))
    )
    text = f"select {ALL[0]} from delta.`{tables.plain}` tablesample (1 percent)"
    queries: dict[str, Query] = {
        "TABLESAMPLE": lambda: bench.spark.sql(text),
        "qbeast": lambda: through_api(bench, tables.ours, 0.01, ALL),
    }
    sampled = alternate({name: collecting(query) for name, query in queries.items()})
    yield compare("1 % sample", "s", sampled["qbeast"], sampled["TABLESAMPLE"])
    planned = alternate({name: planning(query) for name, query in queries.items()})
    yield compare("plan of a 1 % sample", "s", planned["qbeast"], planned["TABLESAMPLE"])
    rewritten = Side("qbeast", (seconds_of(tables.optimize_plain),))
    plain = replace(written["plain Delta"], name="plain Delta, written")
    yield compare("convert and optimize", "s", rewritten, plain)
    bench.remove(tables.plain, tables.ours)
