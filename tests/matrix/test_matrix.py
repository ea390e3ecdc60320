"""Every feature with every operation, beside a plain Delta table; `make matrix` runs all cells."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.matrix.cells import Cell, all_cells, run
from tests.matrix.features import FEATURES
from tests.matrix.operations import STEPS

CELLS = all_cells()


@pytest.fixture(scope="module")
def steps() -> Iterator[list[int]]:
    """The steps that each cell took, summed up at the end."""
    taken: list[int] = []
    yield taken
    print(
        f"\n{len(FEATURES)} features x {len(STEPS)} operations: "
        f"{len(taken)} of {len(CELLS)} cells, {sum(taken)} steps"
    )


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_a_table_is_what_a_plain_table_is(
    spark: SparkSession, steps: list[int], cell: Cell
) -> None:
    steps.append(run(spark, cell))
