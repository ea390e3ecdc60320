"""What a write keeps of the driver's memory; the first case, for what follows keeps some too."""

from __future__ import annotations

import resource
from collections.abc import Iterator

from benchmarks.bench import Bench
from benchmarks.comparison import Comparison, Side
from benchmarks.layouts import Layout
from benchmarks.measuring import used_heap

_GIB = float(1 << 30)


def run(bench: Bench) -> Iterator[Comparison]:
    """The heap that is in use after a write and was not before, and the most that Python took."""
    heap, peak = used_heap(bench.spark), _python_peak()
    bench.table(bench.lineitem, Layout.QBEAST)
    kept = max(0, used_heap(bench.spark) - heap) + (_python_peak() - peak)
    yield bench.compare(
        "memory kept by writing lineitem",
        "bytes",
        Side("driver", (float(kept),)),
        Side("1 GiB", (_GIB,)),
        "memory",
    )


def _python_peak() -> int:
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
