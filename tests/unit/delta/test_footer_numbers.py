"""What the footers of a file's row groups say together."""

from decimal import Decimal

from qbeast_core.delta.footer_numbers import numbers_of

FIRST = ["[price]", "10", "min: -3.50, max: 7.25, num_nulls: 0"]
SECOND = ["[price]", "10", "min: 8.00, max: 1E+3, num_nulls: 4"]
NULLS = ["[price]", "10", "num_nulls: 10, min/max not defined"]


def test_the_extremes_are_those_of_all_row_groups() -> None:
    found = numbers_of([[None, FIRST], [None, SECOND]], ["price"])
    assert found == {"price": (Decimal("-3.50"), Decimal(1000))}


def test_a_row_group_of_nulls_has_no_numbers() -> None:
    assert numbers_of([[NULLS], [FIRST]], ["price"]) == numbers_of([[FIRST]], ["price"])
    assert numbers_of([[NULLS], [NULLS]], ["price"]) == {}


def test_a_column_of_which_a_row_group_says_nothing_is_left_out() -> None:
    for unknown in (
        ["[price]", "10", "no stats for this column"],
        ["[price]", "10", "num_nulls: 9, min/max not defined"],
        ["[other]", "10", "min: 1, max: 2, num_nulls: 0"],
        None,
    ):
        assert numbers_of([[FIRST], [unknown]], ["price"]) == {}


def test_a_file_without_rows_has_nothing() -> None:
    assert numbers_of([], ["price"]) == {}
