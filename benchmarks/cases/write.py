"""Writing what is scanned: time, bytes and files, against Delta's writer and OPTIMIZE ZORDER."""

from __future__ import annotations

import resource
from collections.abc import Iterator

from benchmarks import layouts
from benchmarks.bench import Bench, Source
from benchmarks.comparison import Comparison, Side
from benchmarks.layouts import Layout
from benchmarks.measuring import alternate, used_heap

_GIB = float(1 << 30)
# For so many turns the JVM compiles the code of both sides, on the cores that write.
_WARMUPS = 4


def run(bench: Bench) -> Iterator[Comparison]:
    """Both data sets; memory and ZORDER with lineitem."""
    yield from _lineitem(bench)
    yield from _trips(bench)


def _lineitem(bench: Bench) -> Iterator[Comparison]:
    source = bench.lineitem
    heap, peak = used_heap(bench.spark), _python_peak()
    sides = alternate(
        {"plain Delta": lambda: _plain(bench, source), "qbeast": lambda: _qbeast(bench, source)},
        warmups=_WARMUPS,
    )
    kept = max(0, used_heap(bench.spark) - heap) + (_python_peak() - peak)
    yield bench.compare("write lineitem", "s", sides["qbeast"], sides["plain Delta"], "write")
    # OPTIMIZE has no warm-up of its own: it costs the most, and is warm from the plain writes.
    sides = alternate(
        {
            "plain Delta, OPTIMIZE ZORDER": lambda: _zorder(bench, source),
            "qbeast": lambda: _qbeast(bench, source),
        },
        warmups=0,
    )
    ours, zorder = sides["qbeast"], sides["plain Delta, OPTIMIZE ZORDER"]
    yield bench.compare("write lineitem", "s", ours, zorder, "write_zorder")
    yield bench.compare(
        "memory kept by writing lineitem",
        "bytes",
        Side("driver", (float(kept),)),
        Side("1 GiB", (_GIB,)),
        "memory",
    )
    yield from _stored(bench, source)


def _trips(bench: Bench) -> Iterator[Comparison]:
    source = bench.trips
    sides = alternate(
        {"plain Delta": lambda: _plain(bench, source), "qbeast": lambda: _qbeast(bench, source)},
        warmups=_WARMUPS,
    )
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


def _plain(bench: Bench, source: Source) -> None:
    path = bench.place()
    layouts.write_plain(source.rows(bench.spark), path)
    bench.remove(path)


def _qbeast(bench: Bench, source: Source) -> None:
    path = bench.place()
    layouts.write_qbeast(source.rows(bench.spark), path, source.columns)
    bench.remove(path)


def _zorder(bench: Bench, source: Source) -> None:
    path = bench.place()
    layouts.write_zorder(source.rows(bench.spark), path, source.columns)
    bench.remove(path)


def _python_peak() -> int:
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
