"""Statistics of columns that a user gives in advance."""

import datetime
from decimal import Decimal
from typing import Any

import pytest

from qbeast_core.errors import InvalidOptions
from qbeast_core.model.column_stats import (
    ColumnStats,
    column_stats_text,
    parse_column_stats,
    resolve_column_stats,
)
from qbeast_core.model.transformer import transformer_for

TRANSFORMERS = (
    transformer_for("price", "double"),
    transformer_for("Day", "date"),
    transformer_for("at", "timestamp"),
    transformer_for("n", "int"),
    transformer_for("amount", "decimal(12,2)"),
    transformer_for("score", "float", "quantiles"),
    transformer_for("name", "string", "quantiles"),
    transformer_for("user", "string"),
)
NONE = ColumnStats()


def resolved(value: Any) -> tuple[ColumnStats, ...]:
    return resolve_column_stats(parse_column_stats(value), TRANSFORMERS)


@pytest.mark.parametrize(
    "value",
    [
        {"price": {"min": 0, "max": 10}},
        {"price_min": 0, "price_max": 10},
        '{"price_min":0,"price_max":10}',
        "{'price_min': 0, 'price_max': 10}",
        '{"price": {"min": 0, "max": 1e1}}',
        {"PRICE": {"min": 0, "max": 10.0, "quantiles": None}},
    ],
)
def test_every_form_says_the_same(value: Any) -> None:
    assert resolved(value) == (ColumnStats(0.0, 10.0), *[NONE] * 7)


@pytest.mark.parametrize("value", [None, "", "  ", {}, "{}"])
def test_nothing_may_be_given(value: Any) -> None:
    assert resolved(value) == (NONE,) * 8
    assert column_stats_text(resolved(value), TRANSFORMERS) == ""


def test_each_type_has_its_values() -> None:
    stats = resolved(
        {
            "day": {"min": "1969-12-31", "max": datetime.date(1970, 1, 3)},
            "at_min": "1970-01-01 00:00:01.500000Z",
            "at_max": datetime.datetime(1970, 1, 1, 0, 1),
            "n": {"min": -(2**31), "max": 5.0},
            "amount_min": "0.5",
            "amount_max": 7,
            "score_quantiles": [0, 0.5, 9],
            "name": {"quantiles": ["it's", "z"]},
        }
    )
    assert stats[1] == ColumnStats(-86_400_000, 2 * 86_400_000)
    assert stats[2] == ColumnStats(1500, 60_000)
    assert stats[3] == ColumnStats(-(2**31), 5)
    assert stats[4] == ColumnStats(0.5, 7.0)
    assert stats[5] == ColumnStats(quantiles=(0.0, 0.5, 9.0))
    assert stats[6] == ColumnStats(quantiles=("it's", "z"))
    text = column_stats_text(stats, TRANSFORMERS)
    assert text == (
        '{"Day_min":"1969-12-31","Day_max":"1970-01-03",'
        '"at_min":"1970-01-01 00:00:01.500000Z","at_max":"1970-01-01 00:01:00.000000Z",'
        '"n_min":-2147483648,"n_max":5,"amount_min":0.5,"amount_max":7.0,'
        '"score_quantiles":[0.0,0.5,9.0],"name_quantiles":["it\'s","z"]}'
    )
    assert resolved(text) == stats


def test_stored_instants_of_the_first_centuries_can_be_read() -> None:
    stats = resolved({"at": {"min": "0001-01-01", "max": "9999-12-31T23:59:59Z"}})
    text = column_stats_text(stats, TRANSFORMERS)
    assert text == (
        '{"at_min":"0001-01-01 00:00:00.000000Z","at_max":"9999-12-31 23:59:59.000000Z"}'
    )
    assert resolved(text) == stats


def test_single_quotes_may_hold_double_ones() -> None:
    (*_, stats, _) = resolved(r"""{'name_quantiles': ['a"b', 'it\'s']}""")
    assert stats.quantiles == ('a"b', "it's")


def test_quantiles_of_instants_are_milliseconds_too() -> None:
    at = (transformer_for("at", "timestamp", "quantiles"),)
    (stats,) = resolve_column_stats({"at_quantiles": [0, "1970-01-01 00:00:01"]}, at)
    assert stats.quantiles == (0.0, 1000.0)


def test_quantiles_of_decimals_are_numbers_of_any_kind() -> None:
    amount = (transformer_for("amount", "decimal(12,2)", "quantiles"),)
    (stats,) = resolve_column_stats({"amount_quantiles": [0, 1.5, Decimal("7.25")]}, amount)
    assert stats.quantiles == (0.0, 1.5, 7.25)
    assert column_stats_text((stats,), amount) == '{"amount_quantiles":[0.0,1.5,7.25]}'


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{price_min: 0}", "not valid JSON"),
        ([1], "must map columns to statistics"),
        ("[1]", "must map columns to statistics"),
        ({"prize": {"min": 0, "max": 1}}, r"'prize'.*did you mean 'price'"),
        ({"price_mn": 0}, "did you mean 'price_min'"),
        ({"price": 3}, "matches no indexed column"),
        ({"price": {"mean": 3}}, "has 'mean'; use min, max, quantiles"),
        ({"price_histogram": ["a"]}, "matches no indexed column"),
        ({"price": {"min": 0}}, "has min; a linear column needs min and max"),
        ({"price": {"min": None, "max": None}}, "has no values"),
        ({"price": {"quantiles": [1, 2]}}, "linear column needs min and max"),
        ({"price": {"min": 1, "max": 1}}, "the min 1 is not below the max 1"),
        ({"price": {"min": float("nan"), "max": 1}}, "cannot be the bound"),
        ({"price": {"min": True, "max": 5}}, "True is not a number"),
        ({"price": {"min": "a", "max": 5}}, "'a' is not a value"),
        ({"price": {"min": 0, "max": 1}, "price_min": 3}, "twice"),
        ({"n": {"min": 0, "max": 2**31}}, "does not fit"),
        ({"n": {"min": 0.5, "max": 3}}, "0.5 is not an integer"),
        ({"day": {"min": "yesterday", "max": "2020-01-01"}}, "yesterday"),
        ({"day": {"min": 0, "max": 1}}, "write it like '2024-12-31'"),
        ({"at": {"min": 0, "max": 1}}, "write it like '2024-12-31 18:30:00'"),
        ({"at": {"min": "2020-01-01", "max": "9999-12-31T23:59:59-12:00"}}, "1 to 9999 in UTC"),
        ({"score": {"min": 0, "max": 1}}, "indexed by quantiles needs quantiles"),
        ({"score": {"quantiles": [1]}}, "list of 2 to"),
        ({"score": {"quantiles": "abc"}}, "list of 2 to"),
        ({"score": {"quantiles": [2, 1]}}, "ascending"),
        ({"score": {"quantiles": [0, float("inf")]}}, "finite"),
        ({"score": {"quantiles": [0, None]}}, "None is not a quantile"),
        ({"name": {"quantiles": [0, 1]}}, "must be strings"),
        ({"user": {"min": "a", "max": "b"}}, "hashing takes no statistics"),
    ],
)
def test_statistics_that_do_not_fit_are_rejected(value: Any, message: str) -> None:
    with pytest.raises(InvalidOptions, match=message):
        resolved(value)
