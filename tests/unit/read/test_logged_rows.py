"""What the log says about rows, without a table."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pyspark.sql.types import DataType, DoubleType, LongType, StructField, StructType

from qbeast_core.read.logged_rows import column_extremes, min_rows, null_share

ROWS = 1000


def table(*stats: dict[str, Any], kind: DataType | None = None, unindexed: Any = ()) -> Any:
    """A table with a column `x` and a file for each of the statistics."""
    files = [
        SimpleNamespace(
            stats=json.dumps({"numRecords": ROWS, **each}), stored_row_count=ROWS, rows=ROWS
        )
        for each in stats
    ]
    schema = StructType([StructField("x", kind or DoubleType())])
    snapshot = SimpleNamespace(
        schema=schema,
        files=files,
        row_count_in_log=lambda indices: sum(files[i].rows for i in indices.tolist()),
    )
    index = SimpleNamespace(unindexed=np.array(unindexed, dtype=np.int64), block_arrays=())
    return SimpleNamespace(snapshot=snapshot, index=index)


def extremes(low: Any = None, high: Any = None, nulls: int = 0) -> dict[str, Any]:
    ends = {"minValues": {"x": low}, "maxValues": {"x": high}} if low is not None else {}
    return {**ends, "nullCount": {"x": nulls}}


INFINITE = (-np.inf, np.inf)


@pytest.mark.parametrize(
    ("stats", "kind", "expected"),
    [
        ([extremes(1.0, 5.0), extremes(-2, 3)], None, (-2.0, 5.0)),
        ([extremes(1.0, 5.0), extremes(1.0, "NaN")], None, INFINITE),
        ([extremes("-Infinity", 5.0)], None, INFINITE),
        # The footers of a large write have no extremes where there is NaN.
        ([extremes(1.0, 5.0), extremes()], None, INFINITE),
        ([extremes(1, 5), extremes()], LongType(), None),
        ([extremes(1.0, 5.0), extremes(nulls=ROWS)], None, (1.0, 5.0)),
        ([extremes(1.0, 5.0), {}], None, None),
    ],
)
def test_extremes_that_are_not_numbers_are_known_to_be_so(
    stats: list[dict[str, Any]], kind: DataType | None, expected: tuple[float, float] | None
) -> None:
    read = np.ones(len(stats), dtype=np.bool_)
    assert column_extremes(table(*stats, kind=kind), read, "X") == expected


def test_rows_of_files_that_are_not_read_do_not_count() -> None:
    found = table({}, {}, {}, unindexed=[0, 2])
    for read, expected in (([True, True, True], 2), ([True, False, False], 1), ([False] * 3, 0)):
        assert min_rows(found, None, np.array(read)) == expected * ROWS


def test_nulls_are_counted_where_the_log_counts_them() -> None:
    found = table(extremes(nulls=300), extremes(nulls=100), {})
    for read, expected in (([True, True, False], 0.2), ([True] * 3, 400 / 3000), ([False] * 3, 0)):
        assert null_share(found, np.array(read), "x") == expected
    assert null_share(found, np.ones(3, dtype=np.bool_), "y") == 0.0
