"""Measures planning a sample of 10,000 files, which exist only in the log.

A small table gives the log its schema, revision and protocol. Then one commit replaces its files
with 10,000 others, tagged like those of a full tree. Nothing reads them, because the measurement
ends with the physical plan.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks import layouts
from benchmarks.bench import Bench
from benchmarks.cases.sample import through_api, through_sql
from benchmarks.comparison import Comparison, Side
from benchmarks.measuring import Query, alternate, planning, seconds_of
from qbeast_core import QbeastTable, write_table
from qbeast_core.model.block import Block, file_tags
from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT, weight_of_fraction

FILES = 10_000
_ROWS_PER_FILE = 100_000
_FILE_BYTES = 64 << 20
_WIDTH = 1000.0
"""Both indexed columns range from 0 to this."""
_COUNT = ("count(z)",)
_WARMUPS = 3
_RUNS = 7


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
    """Write a table whose log has `FILES` files of a tree over two columns."""
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
    actions += [_add(cube, place, revision, now) for place, cube in enumerate(full_tree(FILES))]
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (Path(table) / "_delta_log" / f"{1:020d}.json").write_text(text)


def full_tree(cubes: int) -> list[CubeId]:
    """The first cubes of a tree over two columns, level by level, so each follows its ancestors."""
    found = [CubeId.root(2)]
    for cube in found:
        if len(found) >= cubes:
            break
        found.extend(cube.children())
    return found[:cubes]


def weights(cube: CubeId) -> tuple[int, int]:
    """The smallest weight of a cube's rows and the cube's own weight, for evenly spread rows.

    All cubes have the same number of rows, but each covers a quarter of its parent's space. So a
    cube has four times its parent's share of the weights.
    """
    first = sum(4**depth for depth in range(cube.depth)) / FILES
    last = first + 4**cube.depth / FILES
    low = MIN_WEIGHT if cube.depth == 0 else weight_of_fraction(min(first, 1.0))
    return low, MAX_WEIGHT if last >= 1.0 else weight_of_fraction(last)


def _add(cube: CubeId, place: int, revision_id: int, now: int) -> dict[str, Any]:
    low, high = weights(cube)
    (x0, y0), (x1, y1) = cube.lower, cube.upper
    stats = {
        "numRecords": _ROWS_PER_FILE,
        "minValues": {"x": x0 * _WIDTH, "y": y0 * _WIDTH, "z": 0},
        "maxValues": {"x": x1 * _WIDTH, "y": y1 * _WIDTH, "z": FILES},
        "nullCount": {"x": 0, "y": 0, "z": 0},
    }
    return {
        "add": {
            "path": f"part-{place:05d}.snappy.parquet",
            "partitionValues": {},
            "size": _FILE_BYTES,
            "modificationTime": now,
            "dataChange": True,
            "stats": json.dumps(stats),
            "tags": file_tags(revision_id, [Block(cube, low, high, _ROWS_PER_FILE)]),
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

    def copied() -> str:
        return layouts.copy(table, bench.place())

    def delta(path: str) -> float:
        text = f"select count(z) from delta.`{path}` tablesample (1 percent)"
        return seconds_of(planning(lambda: bench.spark.sql(text)))

    def ours(path: str) -> float:
        return seconds_of(planning(lambda: through_api(bench, path, 0.01, _COUNT)))

    runs = [(ours(copied()), delta(copied())) for _ in range(3)]
    mine, theirs = zip(*runs, strict=True)
    return bench.compare(
        f"plan a 1 % sample of {FILES:,} files, the first time",
        "s",
        Side("qbeast, API", mine),
        Side("Delta, TABLESAMPLE", theirs),
    )
