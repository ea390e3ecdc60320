"""The statistics of a file, combined from the footers of its row groups."""

import pytest

from qbeast_core.delta.footer_columns import (
    ColumnChunk,
    FooterStatistics,
    ValueType,
    shortened_maximum,
    statistics_of,
)

PRICE = {"price": ValueType.NUMBER}
FIRST = ["[price]", "10", "0", "true", "-3.50", "7.25"]
SECOND = ["[price]", "10", "4", "true", "8.00", "1E+3"]
NULLS = ["[price]", "10", "10", "false", "null", "null"]


def found_in(
    row_groups: list[list[ColumnChunk | None]], value_types: dict[str, ValueType]
) -> FooterStatistics:
    return statistics_of(row_groups, value_types, prefix_length=32)


def test_the_extremes_are_those_of_all_row_groups() -> None:
    found = found_in([[None, FIRST], [None, SECOND]], PRICE)
    assert found.rows == 20
    assert found.minimum == {"price": "-3.50"}
    assert found.maximum == {"price": "1E+3"}
    assert found.nulls == {"price": 4}


def test_a_row_group_of_nulls_has_no_extremes() -> None:
    with_nulls, first = found_in([[NULLS], [FIRST]], PRICE), found_in([[FIRST]], PRICE)
    assert (with_nulls.minimum, with_nulls.maximum) == (first.minimum, first.maximum)
    only_nulls = found_in([[NULLS], [NULLS]], PRICE)
    assert not only_nulls.minimum and not only_nulls.maximum
    assert only_nulls.nulls == {"price": 20}


@pytest.mark.parametrize(
    ("unknown", "nulls"),
    [
        (["[price]", "10", "-1", "false", "0", "0"], {}),
        (["[price]", "10", "9", "false", "0", "0"], {"price": 9}),
        (["[other]", "10", "0", "true", "1", "2"], {}),
        (None, {}),
    ],
)
def test_a_column_of_which_a_row_group_does_not_know_extremes_has_none(
    unknown: ColumnChunk | None, nulls: dict[str, int]
) -> None:
    found = found_in([[FIRST], [unknown]], PRICE)
    assert not found.minimum and not found.maximum
    assert found.nulls == nulls


def test_extremes_count_where_nulls_are_not_known() -> None:
    found = found_in([[["[price]", "10", "-1", "true", "1", "2"]]], PRICE)
    assert (found.minimum, found.maximum) == ({"price": "1"}, {"price": "2"})
    assert found.nulls == {}


def test_texts_are_compared_by_code_points() -> None:
    chunks = [
        ["[word]", "3", "0", "true", low, high] for low, high in (("b", "\uffff"), ("a", "𐀀"))
    ]
    found = found_in([[chunk] for chunk in chunks], {"word": ValueType.TEXT})
    assert (found.minimum, found.maximum) == ({"word": '"a"'}, {"word": '"𐀀"'})


def test_dates_are_days_and_those_of_other_years_are_left_out() -> None:
    days = ["[day]", "3", "0", "true", "-719163", "18262"]
    found = found_in([[days]], {"day": ValueType.DATE})
    assert found.minimum == {}
    assert found.maximum == {"day": '"2020-01-01"'}
    assert found_in([[[*days[:4], "-719162", "18262"]]], {"day": ValueType.DATE}).minimum == {
        "day": '"0001-01-01"'
    }


def test_a_text_that_delta_keeps_nothing_of_has_no_extremes() -> None:
    chunk = ["[word]", "3", "0", "true", None, None]
    found = found_in([[chunk]], {"word": ValueType.TEXT})
    assert not found.minimum and not found.maximum


def test_rows_are_not_known_of_a_file_without_any_of_the_columns() -> None:
    # A file of no rows would be skipped.
    for row_groups in ([[None]], [[FIRST], [None]]):
        assert found_in(row_groups, PRICE).rows is None


def test_a_file_without_rows_has_nothing() -> None:
    found = found_in([], PRICE)
    assert (found.rows, found.minimum, found.maximum) == (0, {}, {})


@pytest.mark.parametrize(
    ("value_type", "low", "high", "expected"),
    [
        (ValueType.FLOAT, "-1.0E-5", "9.5", ("-1.0E-5", "9.5")),
        (ValueType.FLOAT, "-Infinity", "Infinity", ('"-Infinity"', '"Infinity"')),
        (
            ValueType.INSTANT,
            "-1",
            "1500",
            ('"1969-12-31T23:59:59.999Z"', '"1970-01-01T00:00:00.001Z"'),
        ),
        (
            ValueType.LOCAL_TIME,
            "-62135596800000000",
            "253402300799999999",
            ('"0001-01-01T00:00:00.000"', '"9999-12-31T23:59:59.999"'),
        ),
        (ValueType.INSTANT, "-62135596800000001", "253402300800000000", (None, None)),
    ],
)
def test_extremes_are_as_delta_writes_them(
    value_type: ValueType, low: str, high: str, expected: tuple[str | None, str | None]
) -> None:
    found = found_in([[["[x]", "3", "0", "true", low, high]]], {"x": value_type})
    assert (found.minimum.get("x"), found.maximum.get("x")) == expected


def test_floats_are_compared_by_their_values() -> None:
    chunks = [
        ["[x]", "3", "0", "true", low, high] for low, high in (("9.0", "9.0"), ("1E2", "1E2"))
    ]
    found = found_in([[chunk] for chunk in chunks], {"x": ValueType.FLOAT})
    assert (found.minimum, found.maximum) == ({"x": "9.0"}, {"x": "1E2"})


def test_of_a_column_without_an_order_nulls_are_counted() -> None:
    found = found_in([[["[b]", "3", "1", "true"]]], {"b": ValueType.WITHOUT_ORDER})
    assert (found.rows, found.nulls, found.minimum) == (3, {"b": 1}, {})


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("", ""),
        ("four", "four"),
        ("fives", "five\x7f"),
        ("fiveé", "five\U0010ffff"),
        ("five\x7f", "five\U0010ffff"),
        ("two𐀀𐀀", "two𐀀\U0010ffff"),
        ("𐀀𐀀a", "𐀀𐀀\x7f"),
        ("four\U0010ffff", "four\U0010ffff"),
        ("four\U0010ffffs", "four\U0010ffff\x7f"),
        ("four" + 2 * "\U0010ffff", "four" + 2 * "\U0010ffff"),
        ("four" + 3 * "\U0010ffff", None),
    ],
)
def test_the_largest_text_is_kept_as_delta_keeps_it(text: str, kept: str | None) -> None:
    assert shortened_maximum(text, 4) == kept


def test_of_the_largest_text_nothing_is_kept_where_the_session_says_so() -> None:
    assert shortened_maximum("text", 0) is None
    assert shortened_maximum("", 0) == ""
