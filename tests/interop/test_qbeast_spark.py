"""Tables shared with the real qbeast-spark: it works on ours, and we go on with what it made.

`make interop` runs this. It needs in the environment
QBEAST_SPARK_JARS    the jars of qbeast-spark and of the Delta Lake it was built for, by commas
QBEAST_SPARK_PYTHON  a Python with the PySpark that they were built for (3.5 for 0.7 and 0.8)
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qbeast_core import QbeastTable, convert_to_qbeast, migrate_format, write_table
from qbeast_core.model.weight import weight_of_fraction
from tests.support.delta_log import plain
from tests.support.invariants import assert_rows_in_their_cubes, assert_sound
from tests.support.reference_tables import REFERENCE, REPLICATED

JARS = [jar for jar in os.environ.get("QBEAST_SPARK_JARS", "").split(",") if jar]
PYTHON = os.environ.get("QBEAST_SPARK_PYTHON", "")
ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    not (JARS and PYTHON),
    reason="QBEAST_SPARK_JARS and QBEAST_SPARK_PYTHON name no qbeast-spark; see `make interop`",
)

FRACTIONS = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9)
FILTERS = (
    "a < 300",
    "s = 'k11'",
    "b >= 20.0 and b < 25.5",
    "a >= 100 and ts < timestamp_millis(1600000500000)",
)
COLUMNS = (
    "id",
    "cast(id * 37 % 1000 as int) as a",
    "cast(id * 13 % 400 as double) / 8 as b",
    "if(id % 41 = 0, null, concat('k', id * 11 % 301)) as s",
    "timestamp_millis(1600000000000 + id % 1000 * 1000) as ts",
)


def original(path: str, steps: list[dict[str, Any]]) -> list[dict[str, int]]:
    """The answers of qbeast-spark to the steps, one process for all of them."""
    done = subprocess.run(
        [PYTHON, "-m", "tests.interop.original"],
        cwd=ROOT,
        input=json.dumps({"jars": JARS, "path": path, "steps": steps}),
        capture_output=True,
        text=True,
        env={key: value for key, value in os.environ.items() if not key.startswith("PYSPARK")},
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-8000:]
    answers: list[dict[str, int]] = json.loads(done.stdout)
    return answers


def rows(
    spark: SparkSession, first: int, count: int, columns: tuple[str, ...] = COLUMNS
) -> DataFrame:
    return spark.range(first, first + count, 1, 2).selectExpr(*columns)


def wider(columns: tuple[str, ...]) -> tuple[str, ...]:
    return (columns[0], "cast(id * 37 % 1000 * 3 as int) as a", *columns[2:])


def once(spark: SparkSession, path: str) -> None:
    write_table(rows(spark, 0, 3000), path=path, columns_to_index="a,b,s:hash,ts", cube_size=200)


def appended(spark: SparkSession, path: str) -> None:
    once(spark, path)
    for first in (3000, 3400, 3450):
        write_table(rows(spark, first, 50), path=path)


def revised(spark: SparkSession, path: str) -> None:
    appended(spark, path)
    write_table(rows(spark, 4000, 600, wider(COLUMNS)), path=path)


def optimized(spark: SparkSession, path: str) -> None:
    revised(spark, path)
    QbeastTable.for_path(spark, path).optimize(revision_id="all")


def merged(spark: SparkSession, path: str) -> None:
    appended(spark, path)
    changed = rows(spark, 2900, 400).withColumn("s", F.lit("changed"))
    QbeastTable.for_path(spark, path).merge(changed, on="id")


def converted(spark: SparkSession, path: str) -> None:
    rows(spark, 0, 1000).write.format("delta").save(path)
    convert_to_qbeast(spark, f"delta.`{path}`", "a,b,s,ts", 200)


def migrated(spark: SparkSession, path: str) -> None:
    shutil.copytree(REFERENCE / REPLICATED, path)
    migrate_format(spark, path)


def expected(rows: DataFrame, columns: list[str], fraction: float | None) -> dict[str, int]:
    if fraction is not None:
        rows = rows.where(F.hash(*columns) < weight_of_fraction(fraction))
    found = rows.selectExpr("count(*)", "coalesce(sum(id), 0)").head()
    assert found is not None
    return {"count": found[0], "sum": found[1]}


@pytest.mark.parametrize("make", [once, appended, revised, optimized, merged, converted, migrated])
def test_qbeast_spark_and_this_library_take_turns_on_a_table(
    spark: SparkSession, tmp_path: Path, make: Callable[[SparkSession, str], None]
) -> None:
    path = str(tmp_path / "t")
    make(spark, path)
    table = QbeastTable.for_path(spark, path)
    columns = table.columns_to_index
    filters = FILTERS if make is not migrated else FILTERS[:2]

    def reads() -> tuple[list[dict[str, Any]], list[dict[str, int]]]:
        """What it is asked, and what the rows say that it must answer."""
        now = plain(spark, path)
        asked: list[dict[str, Any]] = [{"fraction": None, "where": None}]
        asked += [{"fraction": fraction, "where": None} for fraction in FRACTIONS]
        asked += [
            {"fraction": fraction, "where": where} for where in filters for fraction in (None, 0.3)
        ]
        truth = [
            expected(now.where(step["where"] or "true"), columns, step["fraction"])
            for step in asked
        ]
        return [{"do": "read", **step} for step in asked], truth

    steps, truth = reads()
    assert original(path, steps) == truth

    new = COLUMNS if make is not migrated else (COLUMNS[0], COLUMNS[1], COLUMNS[3])
    beyond = wider(new) if make is not migrated else (new[0], "cast(id as int) as a", new[2])
    original(
        path,
        [
            {"do": "append", "first": 10_000, "count": 500, "columns": list(new)},
            {"do": "append", "first": 20_000, "count": 500, "columns": list(beyond)},
            {"do": "optimize", "revision": max(table.latest_revision.revision_id, 1)},
        ],
    )
    ids = [row.id for row in plain(spark, path).select("id").collect()]
    assert sum(id_ >= 10_000 for id_ in ids) == 1000
    table = assert_sound(spark, path, ids, where="a < 300")
    assert_rows_in_their_cubes(spark, path)

    write_table(rows(spark, 30_000, 200, new), path=path)
    table = QbeastTable.for_path(spark, path)
    table.merge(rows(spark, 30_150, 100, new), on="id")
    table.optimize(revision_id="all")
    ids += range(30_000, 30_250)
    assert_sound(spark, path, ids, where="a < 300")
    assert_rows_in_their_cubes(spark, path)
    steps, truth = reads()
    assert original(path, steps) == truth
