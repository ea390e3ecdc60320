"""Measures appending 1 % to a table."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import layouts
from benchmarks.bench import Bench
from benchmarks.comparison import Comparison
from benchmarks.layouts import Layout
from benchmarks.measuring import alternate

_RUNS = 5
_WARMUPS = 5
"""An append takes a second or less, at first mostly for compiling."""


def run(bench: Bench) -> Iterator[Comparison]:
    """Append the same rows, from a separate file, to both tables."""
    source = bench.lineitem
    plain = layouts.copy(bench.table(source, Layout.PLAIN), bench.place())
    ours = layouts.copy(bench.table(source, Layout.QBEAST), bench.place())
    part = bench.place()
    source.rows(bench.spark).where("pmod(xxhash64(l_orderkey), 100) = 0").write.parquet(part)
    rows = bench.spark.read.parquet(part)
    sides = alternate(
        {
            "plain Delta": lambda: layouts.write_plain(rows, plain, mode="append"),
            "qbeast": lambda: layouts.write_qbeast(rows, ours, source.index),
        },
        runs=_RUNS,
        warmups=_WARMUPS,
    )
    bench.remove(plain, ours, part)
    yield bench.compare("append 1 % to lineitem", "s", sides["qbeast"], sides["plain Delta"])
