"""Measures full scans: what an index costs readers who neither filter nor sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from benchmarks.bench import Bench
from benchmarks.cases.sample import ALL
from benchmarks.comparison import Comparison
from benchmarks.layouts import Layout
from benchmarks.measuring import RUNS, alternate, read_by

_RUNS = 7
"""More runs for the case with a target, which allows a few hundredths."""


def run(bench: Bench) -> Iterator[Comparison]:
    """Read all columns of all rows with a plain Delta reader."""
    for source in (bench.lineitem, bench.trips):
        paths = {
            layout.value: bench.table(source, layout) for layout in (Layout.PLAIN, Layout.QBEAST)
        }
        scans = {name: _scan(bench, path) for name, path in paths.items()}
        times = alternate(scans, runs=_RUNS if source is bench.lineitem else RUNS)
        read = {
            name: read_by(name, partial(bench.spark.sql, f"select {ALL[0]} from delta.`{path}`"))
            for name, path in paths.items()
        }
        case = f"full scan of {source.name}"
        plain, ours = paths
        yield bench.compare(case, "s", times[ours], times[plain])
        yield bench.compare(case, "bytes", read[ours], read[plain])


def _scan(bench: Bench, path: str) -> Callable[[], None]:
    def scan() -> None:
        rows = bench.spark.read.format("delta").load(path)
        rows.write.format("noop").mode("overwrite").save()

    return scan
