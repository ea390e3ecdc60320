"""Measures the driver memory that a write keeps: first, because later cases keep some too."""

from __future__ import annotations

import resource
from collections.abc import Iterator

from benchmarks.bench import Bench
from benchmarks.comparison import Comparison, Side
from benchmarks.layouts import Layout
from benchmarks.measuring import used_heap

_GIB = float(1 << 30)


def run(bench: Bench) -> Iterator[Comparison]:
    """Add the growth of the used heap during a write and that of Python's peak memory."""
    heap, peak = used_heap(bench.spark), _python_peak()
    bench.table(bench.lineitem, Layout.QBEAST)
    kept = max(0, used_heap(bench.spark) - heap) + (_python_peak() - peak)
    yield bench.compare(
        "memory kept by writing lineitem",
        "bytes",
        Side("driver", (float(kept),)),
        Side("1 GiB", (_GIB,)),
    )


def _python_peak() -> int:
    """The peak memory of this process, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
