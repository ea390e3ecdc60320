"""The part of the matrix that `make test` runs: each feature once, several in one table."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.matrix.cells import Cell, run
from tests.matrix.features import NAMES, NOTHING
from tests.matrix.operations import STEPS
from tests.matrix.settings import ACTIVE, ROWS
from tests.support.faulty_store import FaultyStore

_CHANGES = (
    *("convert", "alter", "append", "append: fields", "append: too large", "append: forbidden"),
    *("merge", "update"),
)
_REWRITES = (
    "convert",
    "append",
    "append: no reply",
    "append: put back",
    "delete old log",
    "overwrite",
)
_REFUSALS = ("create", "overwrite: without an index", "convert")

CELLS = (
    Cell(
        (
            "column mapping by name",
            "deletion vectors",
            "change data feed",
            "CHECK",
            "char and varchar",
            "collations",
            "variant",
            "timestamps without a time zone",
            "default values",
            "in-commit timestamps",
        ),
        "texts",
        {"ANSI": "off", "time zone": "quarter hours", "calendar": "legacy", "Parquet": "older"},
        _CHANGES,
    ),
    Cell(
        (
            "identity column, always",
            "identity column, by default",
            "generated column",
            "type widening",
            "NOT NULL",
            "NOT NULL in a struct",
            "types nested three deep",
            "statistics of one column",
            "random file prefixes",
        ),
        "numbers",
        {"case": "sensitive", "timestamps": "without", "SQL text": "escaped", "files": "split"},
        (*_CHANGES, "delete", "replace"),
    ),
    Cell(
        (
            "column mapping by id",
            "multipart checkpoints",
            "statistics as columns of checkpoints",
            "a column called _metadata",
            "auto compaction",
            "no statistics",
        ),
        operations=("alter", *_REWRITES),
    ),
    Cell(
        ("an indexed column is dropped and added again", "V2 checkpoints", "append only"),
        operations=("convert", "optimize", "alter", "append", "optimize: all"),
        sessions=ACTIVE,
    ),
    Cell(("log cleanup",), operations=_REWRITES),
    Cell(
        ("no nested types",),
        settings={"calendar": "legacy"},
        operations=("convert", "append", "merge", "delete", "replace: a day"),
        sessions=ROWS,
    ),
    Cell(("an indexed column is renamed",), operations=("convert", "alter", "append", "update")),
    Cell(("row tracking",), operations=_REFUSALS),
    Cell(("liquid clustering",), operations=_REFUSALS[1:]),
    Cell(("partitions",), operations=_REFUSALS[1:]),
    Cell(("UniForm",), operations=_REFUSALS),
    Cell(("catalog-managed commits",), operations=_REFUSALS[:1]),
)


def test_each_feature_is_tried() -> None:
    assert {name for cell in CELLS for name in cell.features} == {*NAMES} - {NOTHING.name}


@pytest.mark.parametrize("cell", CELLS, ids=[cell.features[0] for cell in CELLS])
def test_a_table_is_what_a_plain_table_is(
    spark: SparkSession, store: FaultyStore, cell: Cell
) -> None:
    assert {*cell.operations} <= {operation.name for operation in STEPS}
    assert run(spark, store, cell)
