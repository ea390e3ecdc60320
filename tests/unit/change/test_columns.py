"""The columns that a change names."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StructType

from qbeast_core.change.columns import table_spelling
from qbeast_core.errors import UnknownColumn

SCHEMA = StructType().add("day", "date").add("Price", "double")


def test_a_column_is_found_whatever_its_case() -> None:
    assert table_spelling(SCHEMA, "PRICE", "update", "orders") == "Price"


def test_the_closest_column_is_suggested_for_an_unknown_one() -> None:
    told = r"update names 'prise', .* of orders \(did you mean 'Price'\?\); .* are day, Price"
    with pytest.raises(UnknownColumn, match=told):
        table_spelling(SCHEMA, "prise", "update", "orders")
