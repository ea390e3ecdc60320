"""Measures range filters of 0.1, 1 and 10 % of the rows, on one indexed column and on both.

There are twenty boxes of each kind. For boxes on one column, ten filter the first and ten the
second. Their places are drawn from a seed, by rank of the values, so that a box of 1 % has about
1 % of the rows everywhere. Queries are plain SQL.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from benchmarks.bench import Bench, Source
from benchmarks.comparison import Comparison, Side
from benchmarks.data import SEED, known_values
from benchmarks.layouts import Layout
from benchmarks.measuring import Query, alternate, collecting, read_by

BOXES = 20
PERCENTS = (0.1, 1.0, 10.0)
_PEERS = (Layout.ZORDER, Layout.ZORDER_SORTED)
_MORE_PEERS = (Layout.PLAIN, Layout.LIQUID, Layout.QBEAST_SLICES)
"""Layouts without a target, which read a few boxes only."""
_FEW_BOXES = 5


def run(bench: Bench) -> Iterator[Comparison]:
    """Measure bytes for both data sets; for lineitem also further layouts, and times for 1 %."""
    source = bench.lineitem
    of_lineitem = (Layout.ZORDER, Layout.ZORDER_SORTED, Layout.LIQUID)
    made = [(source, layout) for layout in of_lineitem]
    bench.make(*made, (bench.trips, Layout.ZORDER_SORTED))
    values = known_values(source.path, source.columns)
    for percent in PERCENTS:
        both = boxes(values, source.columns, percent / 100, BOXES)
        yield from _read(bench, source, percent, " and ", both, _PEERS + _MORE_PEERS)
        either = [
            box
            for column in source.columns
            for box in boxes(values, (column,), percent / 100, BOXES // 2)
        ]
        yield from _read(bench, source, percent, " or ", either, _PEERS)
    yield from _timed(bench, source, boxes(values, source.columns, 0.01, _FEW_BOXES))
    source = bench.trips
    values = known_values(source.path, source.columns)
    for percent in PERCENTS:
        both = boxes(values, source.columns, percent / 100, BOXES)
        yield from _read(bench, source, percent, " and ", both, (Layout.ZORDER_SORTED,))


def boxes(
    values: Mapping[str, NDArray[Any]], columns: Sequence[str], fraction: float, count: int
) -> list[str]:
    """SQL conditions that each keep about `fraction` of the rows, at places drawn from a seed.

    Args:
        values: for each column its sorted values, or a sorted sample of them.
    """
    random = np.random.default_rng([SEED, len(columns), math.floor(fraction * 1e6)])
    side = fraction ** (1 / len(columns))
    return [
        " and ".join(_between(column, values[column], side, random.random()) for column in columns)
        for _ in range(count)
    ]


def _between(column: str, known: NDArray[Any], side: float, place: float) -> str:
    first = (1 - side) * place
    low, high = (known[min(len(known) - 1, int(at * len(known)))] for at in (first, first + side))
    return f"{column} between {_literal(low)} and {_literal(high)}"


def _literal(value: Any) -> str:
    if isinstance(value, np.datetime64):
        kind = "date" if np.datetime_data(value)[0] == "D" else "timestamp"
        return f"{kind}'{str(value).replace('T', ' ')}'"
    return f"{value.item()!r}D" if isinstance(value, np.floating) else str(value)


def _read(
    bench: Bench,
    source: Source,
    percent: float,
    joined: str,
    found: Sequence[str],
    peers: Sequence[Layout],
) -> Iterator[Comparison]:
    case = f"{percent:g} % range of {source.name}, {joined.join(source.columns)}"
    ours = _side(bench, source, Layout.QBEAST, found)
    for layout in peers:
        other = _side(bench, source, layout, found[:_FEW_BOXES] if layout in _MORE_PEERS else found)
        yield bench.compare(case, "bytes", ours, other)


def _side(bench: Bench, source: Source, layout: Layout, found: Sequence[str]) -> Side:
    return read_by(layout.value, *(_query(bench, source, layout, box) for box in found))


def _timed(bench: Bench, source: Source, found: Sequence[str]) -> Iterator[Comparison]:
    layouts = (Layout.QBEAST, Layout.ZORDER_SORTED, Layout.PLAIN)
    queries = {
        layout.value: [_query(bench, source, layout, box) for box in found] for layout in layouts
    }
    times = alternate({name: collecting(*each) for name, each in queries.items()})
    for layout in layouts[1:]:
        yield bench.compare(
            f"{len(found)} ranges of 1 % of {source.name}, both columns",
            "s",
            times[Layout.QBEAST.value],
            times[layout.value],
        )


def _query(bench: Bench, source: Source, layout: Layout, box: str) -> Query:
    table = bench.table(source, layout)

    def query() -> DataFrame:
        return bench.spark.sql(f"select {', '.join(source.few)} from delta.`{table}` where {box}")

    return query
