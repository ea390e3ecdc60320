"""Compares with qbeast-spark. It needs an older Spark, so each side is divided by its plain Delta.

The case runs if you set QBEAST_SPARK_JARS to the jars of qbeast-spark, delta-spark and
delta-storage, separated by commas, and QBEAST_SPARK_PYTHON to a Python with the PySpark that they
are built for (3.5 for qbeast-spark 0.7 and 0.8), as for `make interop`.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from benchmarks import layouts
from benchmarks.bench import Bench
from benchmarks.cases.sample import ALL
from benchmarks.comparison import Comparison, Side
from benchmarks.layouts import Layout
from benchmarks.measuring import RUNS, WARMUPS, alternate, collecting
from qbeast_core import QbeastTable

_ROOT = Path(__file__).parents[2]
_SAMPLE = "1 % sample of lineitem, all columns"


def run(bench: Bench) -> Iterator[Comparison]:
    """Write and sample lineitem with both, or print why the case is skipped."""
    jars, python = (os.environ.get(f"QBEAST_SPARK_{name}") for name in ("JARS", "PYTHON"))
    if not jars or not python:
        print("skipping qbeast-spark: set QBEAST_SPARK_JARS and QBEAST_SPARK_PYTHON to include it")
        return
    theirs = _theirs(bench, jars, python)
    mine = _ours(bench)
    for case in ("write lineitem", _SAMPLE):
        yield bench.compare(
            f"{case}, over plain Delta",
            "times",
            Side("qbeast", _over_plain(mine, case)),
            Side("qbeast-spark", _over_plain(theirs, case)),
        )


def _ours(bench: Bench) -> dict[str, dict[str, tuple[float, ...]]]:
    source, spark = bench.lineitem, bench.spark
    ours, plain = (bench.table(source, layout) for layout in (Layout.QBEAST, Layout.PLAIN))

    def written(layout: Layout) -> None:
        path = bench.place()
        if layout is Layout.PLAIN:
            layouts.write_plain(source.rows(spark), path)
        else:
            layouts.write_qbeast(source.rows(spark), path, source.index)
        bench.remove(path)

    writes = alternate(
        {"plain": lambda: written(Layout.PLAIN), "qbeast": lambda: written(Layout.QBEAST)}
    )
    table_sample = f"select {ALL[0]} from delta.`{plain}` tablesample (1 percent)"
    samples = alternate(
        {
            "plain": collecting(lambda: spark.sql(table_sample)),
            "qbeast": collecting(
                lambda: QbeastTable.for_path(spark, ours).sample(0.01).selectExpr(*ALL)
            ),
        }
    )
    return {
        case: {name: side.values for name, side in sides.items()}
        for case, sides in (("write lineitem", writes), (_SAMPLE, samples))
    }


def _theirs(bench: Bench, jars: str, python: str) -> dict[str, dict[str, tuple[float, ...]]]:
    request = {
        "jars": jars.split(","),
        "source": bench.lineitem.path,
        "columns": ",".join(bench.lineitem.columns),
        "place": bench.place(),
        "cases": {"write": "write lineitem", "sample": _SAMPLE},
        "runs": RUNS,
        "warmups": WARMUPS,
    }
    done = subprocess.run(
        [python, "-m", "benchmarks.original_process"],
        cwd=_ROOT,
        input=json.dumps(request),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        # That Python must not import the PySpark of this process.
        env={k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "SPARK_HOME")},
    )
    answers: dict[str, dict[str, tuple[float, ...]]] = json.loads(done.stdout)
    return answers


def _over_plain(measured: dict[str, dict[str, tuple[float, ...]]], case: str) -> tuple[float, ...]:
    """The times of qbeast, each divided by the plain time of the same turn."""
    sides = measured[case]
    return tuple(q / p for q, p in zip(sides["qbeast"], sides["plain"], strict=True))
