"""The part of the matrix that `make test` runs: each feature once, several in one table."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pyspark.sql import SparkSession

from tests.matrix.cells import Cell, run
from tests.matrix.features import NAMES, NOTHING
from tests.matrix.operations import STEPS

_CHANGES = ("convert", "alter", "append", "append: forbidden", "merge", "update")
_REWRITES = ("convert", "append", "delete old log", "overwrite")
_REFUSALS = ("create", "convert")

CELLS = (
    (
        Cell(
            (
                "column mapping by name",
                "deletion vectors",
                "change data feed",
                "CHECK",
                "char and varchar",
                "collations",
                "variant",
                "types nested three deep",
                "timestamps without a time zone",
                "default values",
                "in-commit timestamps",
                "statistics of one column",
            ),
            "texts",
            {"ANSI": "off", "time zone": "quarter hours", "calendar": "legacy", "Parquet": "older"},
        ),
        _CHANGES,
    ),
    (
        Cell(
            (
                "identity column, always",
                "identity column, by default",
                "generated column",
                "type widening",
                "NOT NULL",
                "NOT NULL in a struct",
                "random file prefixes",
            ),
            "numbers",
            {"case": "sensitive", "timestamps": "without", "SQL text": "escaped", "files": "split"},
        ),
        (*_CHANGES, "delete", "replace"),
    ),
    (
        Cell(
            (
                "column mapping by id",
                "multipart checkpoints",
                "statistics as columns of checkpoints",
                "auto compaction",
                "no statistics",
            )
        ),
        ("alter", *_REWRITES),
    ),
    (
        Cell(("an indexed column is dropped and added again", "V2 checkpoints", "append only")),
        ("convert", "optimize", "alter", "append", "optimize: all"),
    ),
    (Cell(("log cleanup",)), _REWRITES),
    (Cell(("an indexed column is renamed",)), ("convert", "alter", "append", "update")),
    (Cell(("row tracking",)), _REFUSALS),
    (Cell(("liquid clustering",)), _REFUSALS[1:]),
    (Cell(("partitions",)), _REFUSALS[1:]),
    (Cell(("UniForm",)), _REFUSALS),
    (Cell(("catalog-managed commits",)), ("create",)),
)


def test_each_feature_is_tried() -> None:
    assert {name for cell, _ in CELLS for name in cell.features} == {*NAMES} - {NOTHING.name}


@pytest.mark.parametrize(("cell", "steps"), CELLS, ids=[cell.features[0] for cell, _ in CELLS])
def test_a_table_is_what_a_plain_table_is(
    spark: SparkSession, cell: Cell, steps: Sequence[str]
) -> None:
    chosen = [operation for operation in STEPS if operation.name in steps]
    assert len(chosen) == len(steps)
    assert run(spark, cell, chosen)
