"""Measures writes of scanned rows: time, bytes and files, against Delta and OPTIMIZE ZORDER."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import layouts
from benchmarks.bench import Bench, Source
from benchmarks.comparison import Comparison, Side
from benchmarks.layouts import Layout
from benchmarks.measuring import alternate, seconds_of

_LITTLE_TURNS = 5
"""Warm-ups with a small part of the rows. The JVM compiles the code of both sides for many turns,
on the cores that write. Ours plans more and still compiles for a second of CPU time after a dozen
turns. In the suite this case therefore follows others that write. Then these warm-ups and one with
all rows are enough."""


def run(bench: Bench) -> Iterator[Comparison]:
    """Write both data sets, lineitem also with ZORDER."""
    yield from _lineitem(bench)
    yield from _trips(bench)


class Turns:
    """Writes the same rows to a new place each time. The last table of each layout stays."""

    def __init__(self, bench: Bench, source: Source) -> None:
        self._bench = bench
        self._source = source
        self._paths: dict[Layout, str] = {}

    def plain(self) -> None:
        rows = self._source.rows(self._bench.spark)
        layouts.write_plain(rows, self._new_place(Layout.PLAIN))

    def zorder(self) -> None:
        """Run OPTIMIZE ZORDER on the last plain table, for a layout comparable to ours."""
        path = self._paths[Layout.PLAIN]
        layouts.optimize_zorder(self._bench.spark, path, self._source.columns)

    def qbeast(self) -> None:
        rows = self._source.rows(self._bench.spark)
        path = self._new_place(Layout.QBEAST)
        layouts.write_qbeast(rows, path, self._source.index)

    def keep(self, written: Layout, stays_as: Layout) -> None:
        """Keep a table for later cases, which then need not write it."""
        self._bench.keep(self._source, stays_as, self._paths[written])

    def _new_place(self, layout: Layout) -> str:
        if layout in self._paths:
            self._bench.remove(self._paths[layout])
        self._paths[layout] = self._bench.place()
        return self._paths[layout]


def _lineitem(bench: Bench) -> Iterator[Comparison]:
    source = bench.lineitem
    little, turns = Turns(bench, bench.little_lineitem), Turns(bench, source)
    alternate({"plain Delta": little.plain, "qbeast": little.qbeast}, runs=0, warmups=_LITTLE_TURNS)
    plain, ours = alternate({"plain Delta": turns.plain, "qbeast": turns.qbeast}).values()
    # It runs once, because it takes longest, on the last plain table. The process is warm by then.
    zorder = Side("plain Delta, OPTIMIZE ZORDER", (plain.median + seconds_of(turns.zorder),))
    turns.keep(Layout.PLAIN, stays_as=Layout.ZORDER)
    turns.keep(Layout.QBEAST, stays_as=Layout.QBEAST)
    yield bench.compare("write lineitem", "s", ours, plain)
    yield bench.compare("write lineitem", "s", ours, zorder)
    yield from _stored(bench, source)


def _trips(bench: Bench) -> Iterator[Comparison]:
    source = bench.trips
    turns = Turns(bench, source)
    sides = alternate({"plain Delta": turns.plain, "qbeast": turns.qbeast})
    for layout in (Layout.PLAIN, Layout.QBEAST):
        turns.keep(layout, stays_as=layout)
    yield bench.compare("write trips", "s", sides["qbeast"], sides["plain Delta"])
    yield from _stored(bench, source)


def _stored(bench: Bench, source: Source) -> Iterator[Comparison]:
    ours, plain = (
        layouts.stored(bench.spark, bench.table(source, layout))
        for layout in (Layout.QBEAST, Layout.PLAIN)
    )
    case = f"{source.name}, as stored"
    for unit, i in (("bytes", 0), ("files", 1)):
        yield bench.compare(
            case, unit, Side("qbeast", (float(ours[i]),)), Side("plain Delta", (float(plain[i]),))
        )
