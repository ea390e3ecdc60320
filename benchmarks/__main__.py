"""Run all cases or some of them, on Linux: `python -m benchmarks [case ...] [--scale 1]`.

Set QBEAST_SPARK_JARS and QBEAST_SPARK_PYTHON, as for `make interop`, to include qbeast-spark.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
import traceback
from dataclasses import replace
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.bench import Bench
from benchmarks.cases import CASES, ON_REQUEST
from benchmarks.comparison import table_of
from benchmarks.results import RESULTS, Recorder, environment
from benchmarks.session import spark_session
from qbeast_core.jvm.gateway import delta_version


def main() -> None:
    """Run the cases in order. Each prints a table and its JSON lines."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    choice = f"one of {', '.join(CASES)}; by default all except {' and '.join(ON_REQUEST)}"
    parser.add_argument("cases", nargs="*", metavar="case", help=choice)
    parser.add_argument(
        "--scale", type=float, default=1.0, help="scale factor of TPC-H; 1 by default"
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="directory for the results")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.cases) - set(CASES))
    if unknown:
        parser.error(f"unknown case {', '.join(unknown)}; choose from {', '.join(CASES)}")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    root = Path(tempfile.mkdtemp(prefix="qbeast-bench-"))
    names = arguments.cases or [name for name in CASES if name not in ON_REQUEST]
    try:
        with spark_session() as spark:
            failed = _run(spark, arguments.scale, names, root, arguments.results)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    if failed:
        sys.exit(f"failed cases: {', '.join(failed)}")


def _run(
    spark: SparkSession, scale: float, names: list[str], root: Path, results: Path
) -> list[str]:
    """Run all cases, also after a failure. Returns the names of those that failed."""
    console = Console(width=max(120, Console().width))
    versions = {"pyspark": pyspark.__version__, "delta": delta_version(spark)}
    recorder = Recorder(results, environment(scale, versions))
    bench = Bench(spark, scale, root)
    failed = []
    for name in names:
        started = time.monotonic()
        comparisons = []
        lines = []
        try:
            for comparison in CASES[name](bench):
                comparisons.append(replace(comparison, group=name))
                lines.append(recorder.record(comparisons[-1]))
        except Exception:
            traceback.print_exc()
            failed.append(name)
        if comparisons:
            taken = f"{name}, scale {scale:g} ({time.monotonic() - started:.0f} s)"
            console.print(table_of(taken, comparisons))
            print("\n".join(lines), flush=True)
    console.print(f"results: {recorder.path}")
    return failed


if __name__ == "__main__":
    main()
