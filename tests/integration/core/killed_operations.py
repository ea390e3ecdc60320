"""Every operation that commits, ready to be killed at each of its steps.

An operation can be started again after each kill, as a scheduler does: appends have a number, and
the others have the same result however often they are done.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from qbeast_core import QbeastTable, convert_to_qbeast, failpoints, migrate_format, write_table
from tests.support.reference_tables import REFERENCE, REPLICATED

MEASURED = (
    failpoints.BETWEEN_PASSES,
    failpoints.FILES_WRITTEN,
    failpoints.BEFORE_COMMIT,
    failpoints.AFTER_COMMIT,
)
IN_ONE_PASS = MEASURED[1:]
METADATA_ONLY = MEASURED[2:]

CREATED = "default.killed_creation"
CUBE_SIZE = 40
NEW, GROWN, PLAIN, PARQUET, MAPPED, LEGACY = "new", "grown", "plain", "parquet", "mapped", "legacy"
"""The tables that operations start from."""

Rows = Mapping[int, tuple[Any, ...]]
"""The values besides `id`, by it."""


@dataclass(frozen=True)
class Killable:
    """An operation, the steps at which it can be killed, and what it makes of a table."""

    act: Callable[[SparkSession, str], object]
    steps: tuple[str, ...]
    """The fail points before and after its first commit, in their order."""
    starts_from: str | None
    """None for the operation that makes the table `CREATED`, which is at `place_of_created`."""
    expected: Callable[[Rows], Rows] = lambda before: before
    is_done: Callable[[SparkSession, str], bool] | None = None
    """Asked before it is started again, where the caller must ask."""


def rows(
    spark: SparkSession, first: int, count: int, *, n: int = 0, a: str = "id * 31 % 211"
) -> DataFrame:
    return spark.range(first, first + count, 1, 2).selectExpr("id", f"{a} as a", f"{n} as n")


def modelled(first: int, count: int, *, n: int = 0, beyond: int = 0) -> Rows:
    """The rows of `rows`, in Python."""
    return {i: (i * 31 % 211 + beyond, n) for i in range(first, first + count)}


def place_of_created(spark: SparkSession) -> str:
    """The directory of the managed table `CREATED`."""
    warehouse = str(spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:")
    return f"{warehouse}/{CREATED.partition('.')[2]}"


def make_tables(spark: SparkSession, directory: Path) -> None:
    """Write each of the tables that operations start from; `copied` copies them."""

    def place(name: str) -> str:
        return str(directory / name)

    index = {"columns_to_index": ["a"], "cube_size": CUBE_SIZE}
    for _ in range(2):
        # From then on, the table knows that its tree suits its next rows.
        write_table(rows(spark, 0, 300), path=place(NEW), mode="overwrite", **index)
    feed = {"delta.enableChangeDataFeed": "true"}
    write_table(rows(spark, 0, 300), path=place(GROWN), properties=feed, **index)
    for first in (300, 310):
        write_table(rows(spark, first, 10), path=place(GROWN))
    rows(spark, 320, 30).write.format("delta").mode("append").save(place(GROWN))
    rows(spark, 0, 100).write.format("delta").save(place(PLAIN))
    rows(spark, 0, 100).write.parquet(place(PARQUET))
    mapping = {"delta.columnMapping.mode": "name"}
    write_table(rows(spark, 0, 100), path=place(MAPPED), properties=mapping, **index)
    shutil.copytree(REFERENCE / REPLICATED, place(LEGACY))


_NUMBERED: dict[str, Any] = {"txn_app_id": "scheduler", "txn_version": 1}


def _table(spark: SparkSession, path: str) -> QbeastTable:
    return QbeastTable.for_path(spark, path)


def _create(spark: SparkSession, _: str) -> None:
    write_table(
        rows(spark, 0, 200),
        table=CREATED,
        mode="overwrite",
        columns_to_index=["a"],
        cube_size=CUBE_SIZE,
    )


def _rebuild(spark: SparkSession, path: str) -> None:
    write_table(
        rows(spark, 0, 120), path=path, mode="overwrite", columns_to_index=["id"], cube_size=20
    )


def _without_n(before: Rows) -> Rows:
    return {id_: values[:1] for id_, values in before.items()}


def _has_no_n(spark: SparkSession, path: str) -> bool:
    return "n" not in _table(spark, path).dataframe().columns


KILLABLE: Mapping[str, Killable] = {
    "create": Killable(_create, MEASURED, None, lambda _: modelled(0, 200)),
    "append": Killable(
        lambda spark, path: write_table(rows(spark, 1000, 200), path=path, **_NUMBERED),
        MEASURED,
        GROWN,
        lambda before: {**before, **modelled(1000, 200)},
    ),
    "append: a new revision": Killable(
        lambda spark, path: write_table(
            rows(spark, 1000, 200, a="id * 31 % 211 + 5000"), path=path, **_NUMBERED
        ),
        MEASURED,
        GROWN,
        lambda before: {**before, **modelled(1000, 200, beyond=5000)},
    ),
    "append: one file": Killable(
        lambda spark, path: write_table(rows(spark, 1000, 10), path=path, **_NUMBERED),
        IN_ONE_PASS,
        GROWN,
        lambda before: {**before, **modelled(1000, 10)},
    ),
    "append: a new column": Killable(
        lambda spark, path: write_table(
            rows(spark, 1000, 5).selectExpr("*", "id as more"),
            path=path,
            merge_schema=True,
            **_NUMBERED,
        ),
        MEASURED,
        NEW,
        lambda before: (
            {id_: (*values, None) for id_, values in before.items()}
            | {id_: (*values, id_) for id_, values in modelled(1000, 5).items()}
        ),
    ),
    "overwrite": Killable(_rebuild, MEASURED, GROWN, lambda _: modelled(0, 120)),
    "overwrite: with its tree": Killable(
        lambda spark, path: write_table(
            rows(spark, 10, 300, n=1), path=path, mode="overwrite", cube_size=CUBE_SIZE
        ),
        IN_ONE_PASS,
        NEW,
        lambda _: modelled(10, 300, n=1),
    ),
    "merge": Killable(
        lambda spark, path: _table(spark, path).merge(rows(spark, 290, 40, n=7), on="id"),
        MEASURED,
        GROWN,
        lambda before: {**before, **modelled(290, 40, n=7)},
    ),
    "update": Killable(
        lambda spark, path: _table(spark, path).update({"n": "9"}, "a < 50"),
        MEASURED,
        GROWN,
        lambda before: {i: (a, 9 if a < 50 else n) for i, (a, n) in before.items()},
    ),
    "delete": Killable(
        lambda spark, path: _table(spark, path).delete("a < 50"),
        MEASURED,
        GROWN,
        lambda before: {i: (a, n) for i, (a, n) in before.items() if a >= 50},
    ),
    "delete: whole files": Killable(
        lambda spark, path: _table(spark, path).delete("id >= 0"),
        METADATA_ONLY,
        NEW,
        lambda _: {},
    ),
    "replace_where": Killable(
        lambda spark, path: _table(spark, path).replace_where(
            rows(spark, 305, 5, n=3), "id >= 300 and id < 330"
        ),
        MEASURED,
        GROWN,
        lambda before: (
            {i: values for i, values in before.items() if not 300 <= i < 330}
            | modelled(305, 5, n=3)
        ),
    ),
    "replace_matching": Killable(
        lambda spark, path: _table(spark, path).replace_matching(
            rows(spark, 305, 60, n=4), on="id"
        ),
        MEASURED,
        GROWN,
        lambda before: {**before, **modelled(305, 60, n=4)},
    ),
    "drop_columns": Killable(
        lambda spark, path: _table(spark, path).drop_columns("n"),
        MEASURED,
        GROWN,
        _without_n,
        _has_no_n,
    ),
    "drop_columns: in the metadata": Killable(
        lambda spark, path: _table(spark, path).drop_columns("n"),
        METADATA_ONLY,
        MAPPED,
        _without_n,
        _has_no_n,
    ),
    # Two commits: of the files without an index, and of those of the latest revision.
    "optimize": Killable(lambda spark, path: _table(spark, path).optimize(), MEASURED, GROWN),
    "convert": Killable(
        lambda spark, path: convert_to_qbeast(spark, path, ["a"], CUBE_SIZE), METADATA_ONLY, PLAIN
    ),
    # The first of the two commits is Delta's.
    "convert: Parquet": Killable(
        lambda spark, path: convert_to_qbeast(spark, f"parquet.`{path}`", ["a"], CUBE_SIZE),
        METADATA_ONLY[1:],
        PARQUET,
    ),
    "migrate": Killable(lambda spark, path: migrate_format(spark, path), MEASURED, LEGACY),
}
