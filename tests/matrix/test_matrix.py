"""Every feature with every operation, beside a plain Delta table; `make matrix` runs all cells."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from tests.matrix.cells import Cell, all_cells, run
from tests.support.faulty_store import FaultyStore


@pytest.mark.parametrize("cell", all_cells(), ids=str)
def test_a_table_is_what_a_plain_table_is(
    spark: SparkSession,
    store: FaultyStore,
    record_property: Callable[[str, object], None],
    cell: Cell,
) -> None:
    record_property("steps", run(spark, store, cell))
