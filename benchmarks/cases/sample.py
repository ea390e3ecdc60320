"""Measures samples of 0.1, 1, 10 and 30 %, from the call or the SQL to the answer, and TABLESAMPLE.

One table has default options. The other stores slices, with which a sample can read less than a
whole file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dbt.adapters.qbeast.sampling.rewriting import drop_views, rewrite_tablesample
from pyspark.sql import DataFrame

from benchmarks import layouts
from benchmarks.bench import Bench, Source
from benchmarks.comparison import Comparison, Side
from benchmarks.layouts import Layout
from benchmarks.measuring import RUNS, Query, alternate, collecting, read_by
from qbeast_core import QbeastTable

PERCENTS = ("0.1", "1", "10", "30")
_API, _API_SLICED = "qbeast, API", "qbeast with slices, API"
ALL = ("bit_xor(xxhash64(*))",)
"""An aggregate that needs every column."""
_RUNS = {"1": 8}
"""More turns for the fraction with a target, three for others."""
_FIRST_TURNS = 20
"""Warm-ups. A small sample takes 0.1 s, and the JVM compiles its planning for many turns."""


def run(bench: Bench) -> Iterator[Comparison]:
    """Sample two columns and all: times and bytes for lineitem, bytes for trips."""
    for source in (bench.lineitem, bench.trips):
        yield _stored(bench, source)
        if source is bench.lineitem:
            first = _queries(bench, source, "1", source.few)
            alternate(_collected(first), runs=0, warmups=_FIRST_TURNS)
        for what, aggregates in (("2 columns", source.few), ("all columns", ALL)):
            for percent in PERCENTS:
                yield from _sampled(bench, source, percent, what, aggregates)


def through_sql(bench: Bench, text: str) -> DataFrame:
    """Run a statement as the adapter does: the index answers its samples."""
    rewritten = rewrite_tablesample(bench.spark, text)
    try:
        return bench.spark.sql(rewritten.sql)
    finally:
        drop_views(bench.spark, rewritten.views)


def _stored(bench: Bench, source: Source) -> Comparison:
    sides = [
        Side(layout.value, (float(layouts.stored(bench.spark, bench.table(source, layout))[0]),))
        for layout in (Layout.QBEAST_SLICES, Layout.QBEAST)
    ]
    return bench.compare(f"{source.name} with slices, as stored", "bytes", *sides)


def _queries(
    bench: Bench, source: Source, percent: str, aggregates: tuple[str, ...]
) -> dict[str, Query]:
    """The same query for each side."""
    ours, sliced, plain = (
        bench.table(source, layout)
        for layout in (Layout.QBEAST, Layout.QBEAST_SLICES, Layout.PLAIN)
    )
    text = f"select {', '.join(aggregates)} from delta.`{{}}` tablesample ({percent} percent)"
    return {
        "TABLESAMPLE": lambda: bench.spark.sql(text.format(plain)),
        _API: lambda: through_api(bench, ours, float(percent) / 100, aggregates),
        "qbeast, SQL": lambda: through_sql(bench, text.format(ours)),
        _API_SLICED: lambda: through_api(bench, sliced, float(percent) / 100, aggregates),
        "qbeast with slices, SQL": lambda: through_sql(bench, text.format(sliced)),
    }


def _collected(queries: dict[str, Query]) -> dict[str, Callable[[], object]]:
    return {name: collecting(query) for name, query in queries.items()}


def _sampled(
    bench: Bench, source: Source, percent: str, what: str, aggregates: tuple[str, ...]
) -> Iterator[Comparison]:
    queries = _queries(bench, source, percent, aggregates)
    case = f"{percent} % sample of {source.name}, {what}"
    if source is bench.lineitem:
        times = alternate(_collected(queries), runs=_RUNS.get(percent, RUNS))
        for name in list(queries)[1:]:
            yield bench.compare(case, "s", times[name], times["TABLESAMPLE"])
    else:
        for query in queries.values():
            query().collect()
    read = {name: read_by(name, queries[name]) for name in ("TABLESAMPLE", _API, _API_SLICED)}
    for name in (_API, _API_SLICED):
        yield bench.compare(case, "bytes", read[name], read["TABLESAMPLE"])


def through_api(bench: Bench, path: str, fraction: float, aggregates: tuple[str, ...]) -> DataFrame:
    """Aggregates of a sample, through the Python API."""
    return QbeastTable.for_path(bench.spark, path).sample(fraction).selectExpr(*aggregates)
