"""Measures samples of a filtered table, where filter and fraction both reduce reading."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.bench import Bench
from benchmarks.cases.ranges import boxes
from benchmarks.cases.sample import through_sql
from benchmarks.comparison import Comparison
from benchmarks.data import known_values
from benchmarks.layouts import Layout
from benchmarks.measuring import Query, alternate, collecting, read_by

OURS = "qbeast, SQL"
_BOXES = 5


def run(bench: Bench) -> Iterator[Comparison]:
    """Sample 10 % of the rows in boxes of 10 % on both columns, in SQL."""
    source = bench.lineitem
    found = boxes(known_values(source.path, source.columns), source.columns, 0.1, _BOXES)
    ours = bench.table(source, Layout.QBEAST)
    sorted_zorder = bench.table(source, Layout.ZORDER_SORTED)
    plain = bench.table(source, Layout.PLAIN)
    text = f"select {', '.join(source.few)} from delta.`{{}}` tablesample (10 percent) where {{}}"

    sides: dict[str, list[Query]] = {
        OURS: [partial(through_sql, bench, text.format(ours, box)) for box in found],
        "TABLESAMPLE of plain Delta": [
            partial(bench.spark.sql, text.format(plain, box)) for box in found
        ],
        "TABLESAMPLE of sorted ZORDER": [
            partial(bench.spark.sql, text.format(sorted_zorder, box)) for box in found
        ],
    }
    times = alternate({name: collecting(*queries) for name, queries in sides.items()})
    read = {name: read_by(name, *queries) for name, queries in sides.items()}
    case = f"{_BOXES} 10 % samples in ranges of 10 % of lineitem"
    for name in list(sides)[1:]:
        yield bench.compare(case, "s", times[OURS], times[name])
        yield bench.compare(case, "bytes", read[OURS], read[name])
