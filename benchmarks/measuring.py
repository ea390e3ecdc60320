"""Times, and what Spark says it scanned and the operating system says was read.

Sides take turns, in another order each time, so that what else the machine does and what the side
before leaves behind, such as a garbage collection, meet all of them alike; a time is the median of
three or more after a warm-up. Nothing is counted by the code that is measured: files and
scheduled bytes are metrics of Spark's scans, bytes read are those of the JVM's process, less those
that it reads for a query of no file.
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
"""Makes a query anew, from its text to the DataFrame: planning is part of what is measured."""


def alternate(
    sides: Mapping[str, Callable[[], object]], runs: int = RUNS, warmups: int = WARMUPS
) -> dict[str, Side]:
    """The seconds of the sides, run in turn: `warmups` times uncounted, `runs` times counted."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(warmups + runs):
        for name in in_turn(list(sides), number):
            elapsed = seconds_of(sides[name])
            if number >= warmups:
                seconds[name].append(elapsed)
    return {name: Side(name, tuple(counted)) for name, counted in seconds.items()}


def in_turn(names: list[str], number: int) -> list[str]:
    """The sides in the order of one turn: another one begins, and every other turn runs backwards.

    >>> [in_turn(["a", "b"], number) for number in range(4)]
    [['a', 'b'], ['b', 'a'], ['b', 'a'], ['a', 'b']]
    """
    first = number // 2 % len(names)
    turned = names[first:] + names[:first]
    return turned[::-1] if number % 2 else turned


def seconds_of(action: Callable[[], object]) -> float:
    """How long one call takes."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def collecting(*queries: Query) -> Callable[[], object]:
    """Runs queries to their answers."""

    def collect() -> None:
        for query in queries:
            query().collect()

    return collect


def planning(query: Query) -> Callable[[], object]:
    """Has Spark choose the files and make the physical plan, and reads nothing."""

    def plan() -> None:
        query()._jdf.queryExecution().executedPlan()

    return plan


def read_by(name: str, *queries: Query) -> Side:
    """The bytes that one of the queries reads on average.

    What they read adds up, so they run several at a time. Classes that are loaded for the first
    time count as well.
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
    """What any aggregate makes Spark read: some 180 kB of its own jars, for the code it sends."""
    read = []
    for _ in range(_TRIES):
        before = _bytes_read(spark)
        spark.range(0, 1, 1, numPartitions=1).selectExpr("avg(id)").collect()
        read.append(_bytes_read(spark) - before)
    return statistics.median(read)


def used_heap(spark: SparkSession) -> int:
    """The bytes of the JVM's heap that are in use after a garbage collection."""
    jvm: Any = spark._jvm
    jvm.java.lang.System.gc()
    beans = jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
    return int(beans.getHeapMemoryUsage().getUsed())


def _bytes_read(spark: SparkSession) -> int:
    """What the JVM has asked the operating system for so far, from the page cache or the disk.

    Spark's own `bytesRead` misses what Parquet reads from a local disk by itself.
    """
    jvm: Any = spark._jvm
    process = int(jvm.java.lang.ProcessHandle.current().pid())
    counters = Path(f"/proc/{process}/io").read_text()
    return int(next(line.split()[1] for line in counters.splitlines() if line.startswith("rchar")))
