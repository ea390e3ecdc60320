"""Filters keep the files that Delta's data skipping keeps, without a call to Delta."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable, write_table
from qbeast_core.delta.filters import PushedFilters, filters_on
from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.jvm.gateway import Jvm
from qbeast_core.locate.open_table import OpenTable
from qbeast_core.read.sample import choose_files, where_filters
from qbeast_core.tree.extremes import Extremes, columns_of, file_filter
from tests.support.counters import counting

ROWS = (
    "id",
    "cast(id as string) as s",
    "cast(id % 100 / 10 as float) as f",
    "cast(id as double) as d",
    "date_add(date'2020-01-01', cast(id / 10 as int)) as day",
    "timestamp_seconds(id * 100) as ts",
    "cast(id as decimal(12,2)) as price",
    "if(id < 100, null, id) as n",
    "named_struct('x', id) as st",
)
DECIDED = [
    "id < 50",
    "ID < 50",
    "f = cast(0.5 as float)",
    "f = 0.7F",
    "f <= 0.1F",
    "f in (0.1F, 0.9F)",
    "d > 1900.5",
    "day = date'2020-03-01'",
    "ts < timestamp'1970-01-01 02:00:00'",
    "price between 5 and 9",
    "s = '77'",
    "id in (1, 2, 3)",
    "n is null",
    "not (id > 100)",
    "id < 5 or day > date'2020-07-10'",
]
# Spark makes a set of more than ten values.
SETS = {
    "id": "{}",
    "s": "'{}'",
    "f": "cast(0.{} as float)",
    "d": "{}D",
    "day": "date'2020-01-{}'",
    "ts": "timestamp_seconds({})",
    "price": "{}.00",
}
DECIDED += [
    f"{name} in ({', '.join(literal.format(i) for i in range(10, 25))}, null)"
    for name, literal in SETS.items()
]
LEFT_TO_DELTA = ["s like '77%'", "st.x < 100", "id = 5 and s like '5%'"]


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> OpenTable:
    path = str(tmp_path_factory.mktemp("filters") / "t")
    rows = spark.range(2_000).selectExpr(*ROWS)
    write_table(rows, path=path, columns_to_index=["id", "f"], cube_size=100)
    return QbeastTable.for_path(spark, path)._table


@pytest.mark.parametrize("condition", [*DECIDED, *LEFT_TO_DELTA])
def test_a_filter_leaves_the_files_that_delta_leaves(
    table: OpenTable, monkeypatch: pytest.MonkeyPatch, condition: str
) -> None:
    by_delta = TableSnapshot._matching_by_delta
    filters = where_filters(table, condition)
    assert filters is not None
    asked: list[str] = []

    def counted(snapshot: TableSnapshot, *args: object) -> object:
        asked.append(condition)
        return by_delta(snapshot, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(TableSnapshot, "_matching_by_delta", counted)
    chosen = choose_files(table, 1.0, filters)
    assert bool(asked) is (condition in LEFT_TO_DELTA)
    left = np.flatnonzero(by_delta(table.snapshot, filters))
    assert 0 < len(left) < len(table.snapshot.files)
    assert set(chosen.tolist()) <= set(left.tolist())
    rows = table.snapshot.dataframe
    assert rows(chosen).where(condition).count() == rows().where(condition).count()
    # Statistics alone decide about a file as Delta does; the index rules out more.
    everything = np.arange(len(table.snapshot.files))
    assert table.snapshot.matching(filters, everything).nonzero()[0].tolist() == left.tolist()


@pytest.mark.parametrize(
    "condition",
    [
        "id < 50 and day <= current_date()",
        "id < 50 and day <= 'today'",
        "id < 50 and ts < 'now'::timestamp",
        "id < 50 and ts < to_timestamp('now')",
        "id < 50 and ts < timestamp 'now'",
        "id < 50 and ts < (select cast('now' as timestamp))",
    ],
)
def test_a_filter_on_the_clock_leaves_every_file(table: OpenTable, condition: str) -> None:
    """The rows are filtered when they are read, at a later time."""
    assert where_filters(table, condition) is None


def test_a_filter_on_a_string_leaves_fewer_files(table: OpenTable) -> None:
    filters = where_filters(table, "id < 50 and s <> 'now' and day < cast('2020-01-03' as date)")
    assert filters is not None
    assert len(choose_files(table, 1.0, filters)) < len(table.snapshot.files)


def test_values_of_a_long_list_are_read_together(spark: SparkSession, table: OpenTable) -> None:
    calls = []
    for count in (20, 2_000):
        filters = where_filters(table, f"id in ({', '.join(map(str, range(count)))})")
        assert filters is not None
        with counting(spark) as asked:
            predicate = filters.predicate
        calls.append(asked.calls)
        assert str(predicate).count(str(count - 1)) == 1
    assert calls[0] == calls[1]


def test_a_text_with_the_separator_leaves_every_file(table: OpenTable) -> None:
    texts = ", ".join(f"'{i}'" for i in range(20))
    filters = where_filters(table, rf"s in ({texts}, 'a\0b')")
    assert filters is not None and "Anything()" in str(filters.predicate)


def test_a_thousand_conditions_are_not_too_many(table: OpenTable) -> None:
    rows = table.snapshot.dataframe()
    below = rows.where("id < 50").where(" and ".join(f"id > -{i}" for i in range(1, 1_200)))
    filters = filters_on(below, rows)
    assert filters is not None
    assert 0 < len(choose_files(table, 1.0, filters)) < len(table.snapshot.files)


@pytest.mark.parametrize("kinds", [("Or", "Or"), ("And", "Or")])
def test_a_condition_of_any_depth_is_converted(
    spark: SparkSession, table: OpenTable, kinds: tuple[str, str]
) -> None:
    """With a stack of the usual size, Spark itself cannot resolve such a condition."""
    jvm, first = Jvm(spark), where_filters(table, "id < 50")
    assert first is not None
    ((below,),) = first.alternatives
    condition = below
    for level in range(2_000):
        kind = f"org.apache.spark.sql.catalyst.expressions.{kinds[level % 2]}"
        condition = jvm.new(kind, condition, below)
    filters = PushedFilters(((condition,),))
    assert (columns_of(filters.predicate) is None) is (kinds[0] != kinds[1])
    assert file_filter(filters.predicate)({"id": Extremes(0, 10)})
    if kinds[0] == kinds[1]:
        expected = choose_files(table, 1.0, first)
        assert choose_files(table, 1.0, filters).tolist() == expected.tolist()
