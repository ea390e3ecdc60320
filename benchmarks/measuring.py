"""Times, and what Spark says it scanned and the operating system says was read.

Sides take turns, so that what else the machine does meets all of them alike; a time is the median
of three after a warm-up. Nothing is counted by the code that is measured: files and scheduled bytes
are metrics of Spark's scans, bytes read are those of the JVM's process.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benchmarks.comparison import Side
from benchmarks.scans import Scanned, scanned

WARMUPS = 1
RUNS = 3

Query = Callable[[], DataFrame]
"""Makes a query anew, from its text to the DataFrame: planning is part of what is measured."""


@dataclass(frozen=True)
class Reading:
    """What one run of a query read."""

    bytes_read: int
    """By the JVM's process, from anywhere."""
    scanned: Scanned


def alternate(
    sides: Mapping[str, Callable[[], object]], runs: int = RUNS, warmups: int = WARMUPS
) -> dict[str, Side]:
    """The seconds of the sides, run in turn: `warmups` times uncounted, `runs` times counted."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(warmups + runs):
        for name, side in sides.items():
            elapsed = seconds_of(side)
            if number >= warmups:
                seconds[name].append(elapsed)
    return {name: Side(name, tuple(counted)) for name, counted in seconds.items()}


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


def reading(query: Query) -> Reading:
    """What one run of a query reads; classes that are loaded for the first time count as well."""
    spark = SparkSession.active()
    before = _bytes_read(spark)
    rows = query()
    rows.collect()
    return Reading(_bytes_read(spark) - before, scanned(rows))


def read_by(name: str, readings: list[Reading]) -> Side:
    """The bytes that the runs of one side read, each by itself, and what their scans did."""
    details = {
        name: sum(getattr(each.scanned, name) for each in readings) / len(readings)
        for name in ("files", "bytes_scheduled", "rows")
    }
    return Side(name, tuple(float(each.bytes_read) for each in readings), details)


def mean_of(side: Side) -> Side:
    """A side with the mean of its values, for figures that add up, as bytes of many queries do."""
    return Side(side.name, (statistics.mean(side.values),), side.details)


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
