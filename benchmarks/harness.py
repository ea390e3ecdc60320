"""What every benchmark shares: data, an equally tuned session, alternated runs, one line of result.

Ratios of medians, both sides in one run and in turn: an absolute time means nothing on a shared
machine.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

DATA = Path(__file__).parent / "data"
WARMUPS = 1
RUNS = 3


@dataclass(frozen=True)
class Timing:
    """The seconds of one side's counted runs."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def __str__(self) -> str:
        return f"{self.median:.2f} s ({min(self.seconds):.2f} to {max(self.seconds):.2f})"


@contextmanager
def spark_session(driver_memory: str = "4g") -> Iterator[SparkSession]:
    """Local Spark with Delta on all cores; the same settings for every side of a comparison."""
    with tempfile.TemporaryDirectory() as warehouse:
        settings = {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.sql.warehouse.dir": warehouse,
            "spark.driver.memory": driver_memory,
            "spark.sql.shuffle.partitions": "8",
            "spark.databricks.delta.snapshotPartitions": "2",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }
        builder = configure_spark_with_delta_pip(SparkSession.builder.master("local[*]"))
        for key, value in settings.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        try:
            yield spark
        finally:
            spark.stop()


def tpch(table: str, scale: float) -> str:
    """The Parquet file of a TPC-H table, generated on first use."""
    directory = DATA / f"tpch-{scale:g}"
    file = directory / f"{table}.parquet"
    if not file.exists():
        generator = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
        subprocess.run(
            [
                *(generator, "parquet"),
                *("--scale-factor", str(scale)),
                *("--tables", table),
                *("--output-dir", directory),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    return str(file)


def alternate(
    sides: Mapping[str, Callable[[], object]], runs: int = RUNS, warmups: int = WARMUPS
) -> dict[str, Timing]:
    """Run the sides in turn, `warmups` times uncounted and `runs` times counted."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(warmups + runs):
        for name, side in sides.items():
            started = time.perf_counter()
            side()
            if number >= warmups:
                seconds[name].append(time.perf_counter() - started)
    return {name: Timing(tuple(counted)) for name, counted in seconds.items()}


def report(case: str, timings: Mapping[str, Timing], baseline: str, target: float) -> None:
    """Print a table for people and one JSON line for programs; target: ratio to the baseline."""
    base = timings[baseline].median
    table = Table("side", "median (min to max)", f"x {baseline}", title=case)
    for name, timing in timings.items():
        table.add_row(name, str(timing), f"{timing.median / base:.2f}")
    Console().print(table)
    for name, timing in timings.items():
        if name == baseline:
            continue
        ratio = timing.median / base
        line = {
            "case": case,
            "side": name,
            "baseline": baseline,
            "seconds": list(timing.seconds),
            "baseline_seconds": list(timings[baseline].seconds),
            "ratio": round(ratio, 3),
            "target": target,
            "met": ratio <= target,
            "cores": os.cpu_count(),
            "python": platform.python_version(),
        }
        print(json.dumps(line))
        sys.stdout.flush()


@contextmanager
def fresh_directory() -> Iterator[Callable[[], str]]:
    """A function that gives a new empty place each time; each call removes the one before."""
    with tempfile.TemporaryDirectory() as root:
        count = 0

        def next_place() -> str:
            nonlocal count
            shutil.rmtree(Path(root) / str(count), ignore_errors=True)
            count += 1
            return str(Path(root) / str(count))

        yield next_place
