"""Which columns are chosen to be indexed."""

from typing import Any

import numpy as np

from qbeast_core.model.datatypes import DataType
from qbeast_core.tree.column_choice import SampledColumn, choose_columns, most_distinct

RNG = np.random.default_rng(11)
ROWS = 8_000


def column(name: str, data_type: DataType, values: Any) -> SampledColumn:
    codes = np.unique(values, return_inverse=True)[1].astype(np.int64)
    numbers = None if data_type is DataType.STRING else np.asarray(values, dtype=np.float64)
    return SampledColumn(name, data_type, codes, numbers)


IDS = np.arange(ROWS)
DAYS = IDS // 20
STORES = RNG.integers(0, 60, ROWS)
PRICES = RNG.lognormal(3, 2, ROWS)


def names(*columns: SampledColumn, at_most: int = 3) -> list[str]:
    return [
        f"{c.name}:{c.kind}" if c.kind else c.name for c in choose_columns(columns, at_most).columns
    ]


def test_time_comes_first_and_what_goes_with_it_is_left_out() -> None:
    assert names(
        column("id", DataType.LONG, IDS),
        column("day", DataType.DATE, DAYS),
        column("price", DataType.DOUBLE, PRICES),
        column("store", DataType.INTEGER, STORES),
    ) == ["day", "price:quantiles", "store"]


def test_at_most_the_requested_columns_are_chosen() -> None:
    columns = [column(n, DataType.LONG, RNG.permutation(ROWS)) for n in "abcde"]
    assert len(names(*columns, at_most=2)) == 2
    assert len(names(*columns, at_most=8)) == 5


def test_constants_and_flags_are_not_worth_a_dimension() -> None:
    flags = column("flag", DataType.INTEGER, IDS % 2)
    same = column("same", DataType.LONG, np.zeros(ROWS))
    assert names(same, flags, column("n", DataType.LONG, RNG.permutation(ROWS))) == ["n"]
    assert names(same, flags) == ["flag"]
    assert names(same) == ["same"]


def test_another_name_of_the_same_thing_is_left_out() -> None:
    """Though no order of the one is an order of the other."""
    label = column("label", DataType.STRING, RNG.permutation(60)[STORES].astype(str))
    other = column("kind", DataType.STRING, RNG.integers(0, 60, ROWS).astype(str))
    assert names(column("store", DataType.INTEGER, STORES), label, other) == ["store", "kind"]


def test_nulls_are_one_value() -> None:
    codes = np.where(IDS % 10 == 0, IDS, -1).astype(np.int64)
    numbers = np.where(codes < 0, np.nan, codes)
    rare = SampledColumn("rare", DataType.DOUBLE, codes, numbers)
    assert rare.distinct == ROWS // 10 - 0
    assert names(rare, column("n", DataType.LONG, STORES))[0] == "n"


def test_texts_that_never_repeat_come_last() -> None:
    text = column("text", DataType.STRING, RNG.permutation(ROWS).astype(str))
    user = column("user", DataType.STRING, RNG.integers(0, 2_000, ROWS).astype(str))
    assert names(text, user) == ["user", "text"]


def test_straight_lines_are_for_even_values_and_decimals() -> None:
    assert names(column("x", DataType.DOUBLE, RNG.random(ROWS))) == ["x"]
    assert names(column("x", DataType.DECIMAL, PRICES)) == ["x"]
    assert names(column("x", DataType.DOUBLE, np.append(RNG.random(ROWS), 1e300))) == [
        "x:quantiles"
    ]
    huge = np.append(RNG.random(ROWS), [-1.7e308, 1.7e308])
    assert names(column("x", DataType.DOUBLE, huge)) == ["x:quantiles"]


def test_a_table_without_rows_gets_columns_by_their_types() -> None:
    nothing = np.array([], dtype=np.int64)
    columns = [
        SampledColumn(n, t, nothing, None)
        for n, t in (("s", DataType.STRING), ("n", DataType.LONG), ("t", DataType.TIMESTAMP))
    ]
    assert names(*columns) == ["t", "n", "s"]
    assert str(choose_columns(columns, 1)).endswith(
        "from 0 rows: t for its type, TimestampDataType"
    )
    assert most_distinct(columns) is None


def test_a_choice_names_its_reasons() -> None:
    choice = choose_columns(
        [column("day", DataType.DATE, DAYS), column("price", DataType.DOUBLE, PRICES)], 3
    )
    assert str(choice).startswith(
        "columns_to_index auto chose day, price:quantiles of 2 columns, from 8,000 rows: day has "
        "400 values; price has 8,000 values, "
    )
    assert str(choice).endswith("% predicted by the columns before it, unevenly spread")


def test_the_most_distinct_column_tells_half_of_the_rows_apart() -> None:
    days, ids = column("day", DataType.DATE, DAYS), column("id", DataType.LONG, IDS)
    assert most_distinct([days, ids]) is ids
    assert most_distinct([days]) is None
    assert most_distinct([]) is None
