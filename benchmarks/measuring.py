"""Measures times, what Spark scans, and what the operating system reads.

Sides take turns, each time in another order. Other load on the machine, and what the previous side
left behind, such as a garbage collection, then affect all sides alike. A time is the median of
three or more runs after a warm-up. The measured code counts nothing itself: files and scheduled
bytes are metrics of Spark's scans. Bytes read are those of the JVM's process, minus what it reads
for a query without files.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benchmarks.comparison import Side
from benchmarks.scans import Scanned, scanned

WARMUPS = 1
RUNS = 3
_AT_ONCE = 4
_TRIES = 5

Query = Callable[[], DataFrame]
"""Builds a query from its text each time, so that measurements include planning."""


def alternate(
    sides: Mapping[str, Callable[[], object]], runs: int = RUNS, warmups: int = WARMUPS
) -> dict[str, Side]:
    """The seconds of each side. Sides run in turn, `warmups` times uncounted, then `runs` times."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(warmups + runs):
        for name in in_turn(list(sides), number):
            elapsed = seconds_of(sides[name])
            if number >= warmups:
                seconds[name].append(elapsed)
    return {name: Side(name, tuple(counted)) for name, counted in seconds.items()}


def in_turn(names: list[str], number: int) -> list[str]:
    """The order of one turn: the first side varies, and every second turn is reversed.

    >>> [in_turn(["a", "b"], number) for number in range(4)]
    [['a', 'b'], ['b', 'a'], ['b', 'a'], ['a', 'b']]
    """
    first = number // 2 % len(names)
    turned = names[first:] + names[:first]
    return turned[::-1] if number % 2 else turned


def seconds_of(action: Callable[[], object]) -> float:
    """The seconds that one call takes."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def collecting(*queries: Query) -> Callable[[], object]:
    """A function that runs queries and collects their rows."""

    def collect() -> None:
        for query in queries:
            query().collect()

    return collect


def planning(query: Query) -> Callable[[], object]:
    """A function that makes Spark choose the files and plan the query, without reading data."""

    def plan() -> None:
        query()._jdf.queryExecution().executedPlan()

    return plan


def read_by(name: str, *queries: Query) -> Side:
    """The bytes that a query reads on average.

    Only the sum of all queries is measured, so several run at a time. It includes the first loading
    of classes.
    """
    spark = SparkSession.active()
    before = _bytes_read(spark) + len(queries) * _bytes_of_no_file(spark)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        scans = list(pool.map(_scanned_by, queries))
    read = max(0.0, _bytes_read(spark) - before)
    details = {
        what: sum(getattr(scan, what) for scan in scans) / len(scans)
        for what in ("files", "bytes_scheduled", "rows")
    }
    return Side(name, (read / len(queries),), details)


def _scanned_by(query: Query) -> Scanned:
    rows = query()
    rows.collect()
    return scanned(rows)


@cache
def _bytes_of_no_file(spark: SparkSession) -> float:
    """What Spark reads for any aggregate: some 180 kB of its jars, for the code that it sends."""
    read = []
    for _ in range(_TRIES):
        before = _bytes_read(spark)
        spark.range(0, 1, 1, numPartitions=1).selectExpr("avg(id)").collect()
        read.append(_bytes_read(spark) - before)
    return statistics.median(read)


def used_heap(spark: SparkSession) -> int:
    """The used bytes of the JVM's heap after a garbage collection."""
    jvm: Any = spark._jvm
    jvm.java.lang.System.gc()
    beans = jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
    return int(beans.getHeapMemoryUsage().getUsed())


def _bytes_read(spark: SparkSession) -> int:
    """The bytes that the JVM has requested from the operating system, cached or not.

    Spark's `bytesRead` misses what Parquet reads directly from a local disk.
    """
    jvm: Any = spark._jvm
    process = int(jvm.java.lang.ProcessHandle.current().pid())
    counters = Path(f"/proc/{process}/io").read_text()
    return int(next(line.split()[1] for line in counters.splitlines() if line.startswith("rchar")))
