"""Valid and invalid options of an index."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from qbeast_core.errors import InvalidOptions, UnsupportedColumnType
from qbeast_core.options import (
    ALL,
    IndexedColumn,
    parse_automatic,
    parse_columns,
    parse_cube_size,
    parse_flag,
    parse_fraction,
    parse_sample_key,
    resolve_sample_key,
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("price", None),
        (" price : Linear ", "linear"),
        ("price:hash", "hashing"),
        ("price:HASHING", "hashing"),
        ("price:quantile", "quantiles"),
        ("price: Quantiles", "quantiles"),
    ],
)
def test_kinds_have_short_names_in_any_case(text: str, kind: str | None) -> None:
    assert parse_columns(text) == (IndexedColumn("price", kind),)
    assert parse_columns([text]) == (IndexedColumn("price", kind),)


@pytest.mark.parametrize(
    ("value", "at_most"),
    [
        ("auto", 3),
        (" AUTO ", 3),
        ("auto:1", 1),
        ("auto : 8", 8),
        ("auto:hash", None),
        ("automatic", None),
        (["auto"], None),
        (None, None),
    ],
)
def test_columns_may_be_left_to_choose(value: Any, at_most: int | None) -> None:
    assert parse_automatic(value) == at_most


@pytest.mark.parametrize("value", ["auto:0", "auto:9"])
def test_as_many_are_chosen_as_can_be_indexed(value: str) -> None:
    with pytest.raises(InvalidOptions, match="1 to 8 columns"):
        parse_automatic(value)


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (None, None),
        ("all", ALL),
        (" ALL", ALL),
        (["all"], ("all",)),
        ("a, b", ("a", "b")),
        (["a,b"], ("a,b",)),
    ],
)
def test_a_sample_key_is_all_or_a_list(value: Any, key: Any) -> None:
    assert parse_sample_key(value) == key


@pytest.mark.parametrize("value", ["", [], "a,,b", 5, ["a", None], True])
def test_a_sample_key_of_something_else_is_refused(value: Any) -> None:
    with pytest.raises(InvalidOptions, match="must be 'all' or name columns"):
        parse_sample_key(value)


def test_slices_are_stored_or_not_or_left_as_they_are() -> None:
    assert [parse_flag("slices", value) for value in (True, False, None)] == [True, False, None]
    for value in ("yes", 1):
        with pytest.raises(InvalidOptions, match="must be true or false"):
            parse_flag("slices", value)  # type: ignore[arg-type]


def test_all_are_the_columns_that_have_a_hash() -> None:
    numbers = MapType(LongType(), LongType())
    types = {
        "a": LongType(),
        "m": numbers,
        "s": StructType().add("x", numbers),
        "l": ArrayType(StringType()),
        "v": VariantType(),
        "t": StringType(),
        "c": StringType("UTF8_LCASE"),
        "n": ArrayType(StringType("UTF8_LCASE")),
    }
    schema = StructType([StructField(name, data_type) for name, data_type in types.items()])
    assert resolve_sample_key(ALL, schema) == ("a", "l", "t")
    assert resolve_sample_key(("T", "a"), schema) == ("t", "a")
    for name in ("c", "n"):
        with pytest.raises(UnsupportedColumnType, match=r"collate UTF8_LCASE.*name other columns"):
            resolve_sample_key(("a", name), schema)


@given(
    st.one_of(
        st.text(), st.text(alphabet="auto:9,hs "), st.lists(st.one_of(st.text(), st.integers()))
    )
)
@example("auto:" + "9" * 5000)
@example("9" * 5000)
@example(["a"] * 1000)
def test_any_option_is_understood_or_refused(value: Any) -> None:
    for parse in (parse_automatic, parse_columns, parse_sample_key, parse_cube_size):
        try:
            parsed = parse(value)
        except InvalidOptions:
            continue
        if parse is parse_columns:
            assert 1 <= len(parsed) <= 8
            assert all(isinstance(column.name, str) and column.name for column in parsed)


@pytest.mark.parametrize("value", [{"a": "hash"}, {"a", "b"}, b"a", 5])
def test_columns_to_index_are_a_string_or_a_list_in_order(value: Any) -> None:
    with pytest.raises(InvalidOptions, match="must be a string or a list of names"):
        parse_columns(value)


@pytest.mark.parametrize("half", [0.5, Decimal("0.5"), Fraction(1, 2), np.float32(0.5)])
def test_a_fraction_is_any_kind_of_number(half: Any) -> None:
    assert parse_fraction(half) == 0.5
    assert type(parse_fraction(half)) is float


@pytest.mark.parametrize("size", [50, "50", np.int64(50), np.uint8(50)])
def test_a_cube_size_is_any_kind_of_whole_number(size: Any) -> None:
    assert parse_cube_size(size) == 50
    assert type(parse_cube_size(size)) is int


@given(st.one_of(st.floats(), st.integers(), st.decimals(), st.text(), st.none(), st.booleans()))
@example(10**400)
@example(Decimal("sNaN"))
def test_any_fraction_is_taken_or_refused(value: Any) -> None:
    try:
        assert 0.0 <= parse_fraction(value) <= 1.0
    except InvalidOptions as problem:
        assert repr(value) in str(problem)
