"""The types and texts of a seed's numbers."""

from decimal import Decimal
from pathlib import Path

import pytest
from dbt.adapters.qbeast.models.seeds import _text, number_type, with_types
from dbt_common.clients.agate_helper import from_csv


@pytest.mark.parametrize(
    ("values", "data_type"),
    [
        ([], "bigint"),
        (["10.00", "-0.0"], "bigint"),
        (["1e3"], "bigint"),
        (["9223372036854775808"], "decimal(38,0)"),
        (["0.10", "123456789012345"], "double"),
        (["12345678901234.56"], "decimal(38,2)"),
        (["12345678901234567890123456789.5"], "decimal(38,1)"),
        (["1.2345678901234567e-10"], "double"),
        (["0.123456789012345678901234"], "decimal(38,24)"),
        (["0.123456789012345678901234", "123456789012345"], "double"),
        (["1e-300"], "double"),
        (["NaN", "1"], "double"),
        (["Infinity"], "double"),
    ],
)
def test_a_number_gets_a_type_that_keeps_it(values: list[str], data_type: str) -> None:
    assert number_type([Decimal(value) for value in values]) == data_type


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("10.00", "10"),
        ("0.10", "0.1"),
        ("100", "100"),
        ("1e3", "1000"),
        ("-12345678901234567890123456789.50", "-12345678901234567890123456789.5"),
        ("NaN", "NaN"),
    ],
)
def test_a_number_is_written_with_the_digits_that_it_needs(value: str, text: str) -> None:
    assert _text(Decimal(value)) == text


def test_a_number_keeps_the_digits_of_the_file(tmp_path: Path) -> None:
    digits = "12345678901234567890123456789.5"
    path = tmp_path / "long.csv"
    path.write_text(f"n,code\n{digits},007\n")
    read = from_csv(str(path), text_columns=["code"], delimiter=",")
    read.original_abspath = str(path)
    table, types = with_types(read, {"code": "string"}, ",", "codes")
    assert [tuple(row) for row in table.rows] == [(Decimal(digits), "007")]
    assert types == {"code": "string"}
