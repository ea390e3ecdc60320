"""Measures rebuilding a table from the same rows, as dbt does each night. Its tree still fits."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import layouts
from benchmarks.bench import Bench
from benchmarks.comparison import Comparison
from benchmarks.layouts import Layout
from benchmarks.measuring import alternate


def run(bench: Bench) -> Iterator[Comparison]:
    """Overwrite both tables repeatedly."""
    source = bench.lineitem
    plain = layouts.copy(bench.table(source, Layout.PLAIN), bench.place())
    ours = layouts.copy(bench.table(source, Layout.QBEAST), bench.place())
    rows = source.rows(bench.spark)
    sides = alternate(
        {
            "plain Delta": lambda: layouts.write_plain(rows, plain, mode="overwrite"),
            "qbeast": lambda: layouts.write_qbeast(rows, ours, source.index, mode="overwrite"),
        }
    )
    bench.remove(plain, ours)
    yield bench.compare("rebuild lineitem", "s", sides["qbeast"], sides["plain Delta"])
