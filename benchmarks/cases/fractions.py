"""Measures the bytes that samples of many fractions read, against the same part of a plain scan."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial

from benchmarks.bench import Bench
from benchmarks.cases.sample import ALL, through_api
from benchmarks.comparison import Comparison, Side
from benchmarks.layouts import Layout
from benchmarks.measuring import read_by

COUNT = 40
"""The number of fractions from 0.1 to 100 %, spread evenly on a logarithmic scale."""
_PER_DECADE = COUNT / 3
_SMALL = 13
"""Further fractions, down to 0.01 %, for the chart."""
FRACTIONS = tuple(10 ** (-(number + 0.5) / _PER_DECADE) for number in range(COUNT + _SMALL))
FRACTION = "fraction"
"""The detail of our side with the fraction of a sample."""
_LAYOUTS = (Layout.QBEAST, Layout.QBEAST_SLICES)


def run(bench: Bench) -> Iterator[Comparison]:
    """Sample all columns of lineitem."""
    plain = bench.table(bench.lineitem, Layout.PLAIN)
    scan = f"select {ALL[0]} from delta.`{plain}`"
    whole = read_by("plain Delta", partial(bench.spark.sql, scan)).median
    for layout in _LAYOUTS:
        table, ratios = bench.table(bench.lineitem, layout), []
        for fraction in FRACTIONS:
            read = read_by(layout.value, partial(through_api, bench, table, fraction, ALL)).median
            ratios.append(read / (fraction * whole))
            yield bench.compare(
                f"{fraction * 100:.3g} % sample of lineitem",
                "bytes",
                Side(layout.value, (read,), {FRACTION: fraction}),
                Side("plain Delta", (whole,)),
            )
        ideal = Side("its part of a plain scan", (1.0,))
        case = f"bytes of {COUNT} samples of 0.1 to 100 % of lineitem"
        mean = Side(layout.value, (statistics.fmean(ratios[:COUNT]),))
        yield bench.compare(f"{case}, mean", "times", mean, ideal)
        worst = Side(layout.value, (max(ratios[:COUNT]),))
        yield bench.compare(f"{case}, worst", "times", worst, ideal)
