"""Measures planning a sample of 10,000 files, which exist only in the log.

A small table gives the log its schema, revision and protocol. Then one commit replaces its files
with 10,000 others, which are planned and tagged as `write_table` does. Nothing reads them, because
the measurement ends with the physical plan.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession

from benchmarks import layouts
from benchmarks.bench import Bench
from benchmarks.cases.sample import through_api, through_sql
from benchmarks.comparison import Comparison, Side
from benchmarks.data import SEED
from benchmarks.measuring import Query, alternate, in_turn, planning, seconds_of
from qbeast_core import QbeastTable, write_table
from qbeast_core.model.block import Block, file_tags
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT
from qbeast_core.tree.assignment import Assignment
from qbeast_core.tree.build import estimate_weights
from qbeast_core.tree.cuts import cut_sample, row_order
from qbeast_core.tree.path import PathLayout
from qbeast_core.tree.weighed_sample import WeighedSample

FILES = 10_000
_ROWS_PER_FILE = 100_000
_ROWS = (FILES - 1) * _ROWS_PER_FILE
"""The two bands of the lowest weights have a file each and together the rows of one."""
_SAMPLED_ROWS = 100
"""For each file."""
_FILE_BYTES = 64 << 20
_WIDTH = 1000.0
"""Both indexed columns range from 0 to this."""
_COUNT = ("count(z)",)
_WARMUPS = 3
_RUNS = 7
_FIRST_TIMES = 4


def run(bench: Bench) -> Iterator[Comparison]:
    """Plan by API and SQL, with and without a filter, first warm and then on a new log."""
    table = bench.place()
    write_log(bench.spark, table)
    box = "x between 100 and 200 and y between 300 and 500"
    sample = f"select count(z) from delta.`{table}` tablesample (1 percent)"
    filtered = f"{sample} where {box}"
    queries: dict[str, Query] = {
        "Delta, TABLESAMPLE": lambda: bench.spark.sql(sample),
        "qbeast, API": lambda: through_api(bench, table, 0.01, _COUNT),
        "qbeast, SQL": lambda: through_sql(bench, sample),
        "Delta, TABLESAMPLE where": lambda: bench.spark.sql(filtered),
        "qbeast, SQL where": lambda: through_sql(bench, filtered),
    }
    times = alternate(
        {name: planning(query) for name, query in queries.items()},
        runs=_RUNS,
        warmups=_WARMUPS,
    )
    limit = Side("0.3 s", (0.3,))
    delta, delta_where = times["Delta, TABLESAMPLE"], times["Delta, TABLESAMPLE where"]
    case = f"plan a 1 % sample of {FILES:,} files"
    for name in ("qbeast, API", "qbeast, SQL"):
        yield bench.compare(case, "s", times[name], limit)
        yield bench.compare(case, "s", times[name], delta)
    where = f"{case}, filtered"
    yield bench.compare(where, "s", times["qbeast, SQL where"], limit)
    yield bench.compare(where, "s", times["qbeast, SQL where"], delta_where)
    yield _first_time(bench, table)


def write_log(spark: SparkSession, table: str) -> None:
    """Write a table over two columns whose log has the `FILES` files of `planned_files`."""
    rows = spark.range(100).selectExpr(
        f"id * {_WIDTH}D / 99 as x", f"(99 - id) * {_WIDTH}D / 99 as y", "id as z"
    )
    write_table(rows, path=table, columns_to_index=["x", "y"], cube_size=_ROWS_PER_FILE)
    revision = QbeastTable.for_path(spark, table).latest_revision.revision_id
    now = int(time.time() * 1000)
    actions: list[dict[str, Any]] = [
        {"commitInfo": {"timestamp": now, "operation": "WRITE", "operationParameters": {}}}
    ]
    actions += _removes(table, now)
    actions += [_add(file, i, revision, now) for i, file in enumerate(planned_files())]
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (Path(table) / "_delta_log" / f"{1:020d}.json").write_text(text)


@dataclass(frozen=True)
class LogFile:
    """What the log says about one file."""

    blocks: list[Block]
    highest_weight: int
    lowest: tuple[float, float]
    """The smallest coordinates of its rows."""
    highest: tuple[float, float]

    @property
    def rows(self) -> int:
        return sum(block.element_count for block in self.blocks)


def planned_files() -> list[LogFile]:
    """The `FILES` files of a table with evenly spread rows, as `write_table` divides them."""
    layout, random = PathLayout(2), np.random.default_rng(SEED)
    points = random.random((FILES * _SAMPLED_ROWS, 2))
    # At even distances, so that each band has its share of the files.
    weights = np.linspace(MIN_WEIGHT, MAX_WEIGHT, len(points)).astype(np.int32)
    sample = WeighedSample(layout.path_words(points), weights, _ROWS)
    tree = estimate_weights(layout, sample, _ROWS_PER_FILE)
    cubes, cube_of_row = Assignment.of(layout, tree).cubes_of(sample.words, weights)
    order = row_order(layout, sample, _ROWS_PER_FILE)
    cuts = cut_sample(order, sample, _ROWS_PER_FILE, smallest_rows=_ROWS_PER_FILE // 4)
    file_of_row = cuts.files_of(sample.words, weights)

    def block(rows: NDArray[np.int64]) -> Block:
        cube = cubes[cube_of_row[rows[0]]]
        lowest, count = int(weights[rows].min()), round(len(rows) * sample.scale)
        return Block(cube, lowest, tree.get(cube, MAX_WEIGHT), count)

    def file(rows: NDArray[np.int64]) -> LogFile:
        blocks = sorted(map(block, _groups(rows, cube_of_row)), key=lambda each: each.cube)
        (x0, y0), (x1, y1) = points[rows].min(axis=0).tolist(), points[rows].max(axis=0).tolist()
        return LogFile(blocks, int(weights[rows].max()), (x0, y0), (x1, y1))

    return [file(rows) for rows in _groups(np.arange(len(points)), file_of_row)]


def _groups(rows: NDArray[np.int64], number_of_row: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The rows that have the same number, in the order of the numbers."""
    by_number = rows[np.argsort(number_of_row[rows], kind="stable")]
    return np.split(by_number, np.flatnonzero(np.diff(number_of_row[by_number])) + 1)


def _add(file: LogFile, number: int, revision_id: int, now: int) -> dict[str, Any]:
    (x0, y0), (x1, y1) = file.lowest, file.highest
    stats = {
        "numRecords": file.rows,
        "minValues": {"x": x0 * _WIDTH, "y": y0 * _WIDTH, "z": 0},
        "maxValues": {"x": x1 * _WIDTH, "y": y1 * _WIDTH, "z": FILES},
        "nullCount": {"x": 0, "y": 0, "z": 0},
    }
    return {
        "add": {
            "path": f"part-{number:05d}.snappy.parquet",
            "partitionValues": {},
            "size": _FILE_BYTES,
            "modificationTime": now,
            "dataChange": True,
            "stats": json.dumps(stats),
            "tags": file_tags(revision_id, file.blocks, highest_weight=file.highest_weight),
        }
    }


def _removes(table: str, now: int) -> list[dict[str, Any]]:
    log = (Path(table) / "_delta_log" / f"{0:020d}.json").read_text()
    adds = [json.loads(line)["add"] for line in log.splitlines() if '"add"' in line]
    return [
        {"remove": {"path": add["path"], "deletionTimestamp": now, "dataChange": True}}
        for add in adds
    ]


def _first_time(bench: Bench, table: str) -> Comparison:
    """Plan on a new copy of the log each time, so that nothing is cached."""

    def delta(path: str) -> DataFrame:
        return bench.spark.sql(f"select count(z) from delta.`{path}` tablesample (1 percent)")

    def ours(path: str) -> DataFrame:
        return through_api(bench, path, 0.01, _COUNT)

    queries = {"qbeast, API": ours, "Delta, TABLESAMPLE": delta}
    seconds: dict[str, list[float]] = {name: [] for name in queries}
    for number in range(_FIRST_TIMES):
        for name in in_turn(list(queries), number):
            query = partial(queries[name], layouts.copy(table, bench.place()))
            seconds[name].append(seconds_of(planning(query)))
    mine, theirs = (Side(name, tuple(counted)) for name, counted in seconds.items())
    case = f"plan a 1 % sample of {FILES:,} files, the first time"
    return bench.compare(case, "s", mine, theirs)
