"""Profiles a write and a sample, and the same with plain Delta."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from benchmarks.bench import Bench
from benchmarks.cases.sample import ALL, through_api
from benchmarks.cases.write import Turns
from benchmarks.comparison import Comparison, Side
from benchmarks.layouts import Layout
from benchmarks.profiling import PERIOD_MILLIS, profile

_SAMPLES = 20
"""A single sample takes a sixth of a second, too short to profile."""


def run(bench: Bench) -> Iterator[Comparison]:
    """Count the seconds that task threads spend in each part of the work, after a warm-up."""
    source = bench.lineitem
    ours, plain = (bench.table(source, layout) for layout in (Layout.QBEAST, Layout.PLAIN))
    turns = Turns(bench, source)

    def sample_ours() -> None:
        for _ in range(_SAMPLES):
            through_api(bench, ours, 0.01, ALL).collect()

    def sample_plain() -> None:
        text = f"select {ALL[0]} from delta.`{plain}` tablesample (1 percent)"
        for _ in range(_SAMPLES):
            bench.spark.sql(text).collect()

    yield from _compared(bench, "a write of lineitem", turns.qbeast, turns.plain)
    yield from _compared(
        bench, f"{_SAMPLES} 1 % samples of lineitem, all columns", sample_ours, sample_plain
    )


def _compared(
    bench: Bench, case: str, ours: Callable[[], None], plain: Callable[[], None]
) -> Iterator[Comparison]:
    found = []
    for action in (ours, plain):
        action()
        found.append(profile(bench.spark, action))
    for part, _ in sum(found, Counter()).most_common():
        seconds = [counts[part] * PERIOD_MILLIS / 1000 for counts in found]
        sides = (Side("qbeast", (seconds[0],)), Side("plain Delta", (seconds[1],)))
        yield bench.compare(f"{case}: {part}", "s", *sides)
