"""Whatever a log says, its metadata is parsed within bounds, or refused by the one error for it."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qbeast_core.errors import CorruptMetadata, InvalidOptions
from qbeast_core.model import json_text
from qbeast_core.model.block import parse_blocks
from qbeast_core.model.column_stats import parse_column_stats, resolve_column_stats
from qbeast_core.model.cube import MAX_LEVELS, CubeId
from qbeast_core.model.datatypes import DataType
from qbeast_core.model.json_text import MAX_NESTING, MAX_TEXT_LENGTH, parse_id, parse_json
from qbeast_core.model.legacy import replicated_revisions
from qbeast_core.model.linear import LinearTransformation
from qbeast_core.model.quantiles import StringQuantiles
from qbeast_core.model.revision import (
    LAST_REVISION_KEY,
    REVISION_KEY_PREFIX,
    SAMPLE_KEY_PROPERTY,
    IndexConfiguration,
    Revision,
)
from qbeast_core.model.transformer import (
    LinearTransformer,
    NumericQuantilesTransformer,
    StringQuantilesTransformer,
)
from qbeast_core.tree.query import Comparison, IsNull, Or, may_match

HUGE = "9" * 5000
"""More digits than Python converts to a number by default."""
DEEP = "[" * 100_000 + "]" * 100_000
TOO_LONG = '"' + " " * MAX_TEXT_LENGTH + '"'
PACKAGE = "io.qbeast.core.transform."

NUMBERS = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from([0, -1, 2**31, 2**63, -(2**63) - 1, 10**400, 1e308, -1e308, 5e-324]),
)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        NUMBERS,
        st.text(max_size=20),
        st.sampled_from([f"{PACKAGE}HashTransformation", "IntegerDataType", "os.system"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)

REVISION = {
    "revisionID": 1,
    "timestamp": 1700000000000,
    "tableID": "t",
    "desiredCubeSize": 5000,
    "columnTransformers": [
        {
            "className": f"{PACKAGE}LinearTransformer",
            "columnName": "a",
            "dataType": "IntegerDataType",
        },
        {"className": f"{PACKAGE}CDFStringQuantilesTransformer", "columnName": "b"},
        {
            "className": f"{PACKAGE}CDFNumericQuantilesTransformer",
            "columnName": "c",
            "orderedDataType": "DoubleDataType",
        },
    ],
    "transformations": [
        {
            "className": f"{PACKAGE}LinearTransformation",
            "minNumber": 0,
            "maxNumber": 10,
            "nullValue": 3,
            "orderedDataType": "IntegerDataType",
        },
        {"className": f"{PACKAGE}CDFStringQuantilesTransformation", "quantiles": ["a", "b"]},
        {
            "className": f"{PACKAGE}CDFNumericQuantilesTransformation",
            "quantiles": [0.0, 1.0],
            "dataType": "DoubleDataType",
        },
    ],
}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values inside a JSON value."""
    inner: Any = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    return [path, *(p for key, each in inner for p in places(each, (*path, key)))]


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    result = copy.deepcopy(value)
    place = result
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = new
    return result


def test_the_revision_that_is_changed_is_valid() -> None:
    assert Revision.from_json_text(json.dumps(REVISION)).columns == ("a", "b", "c")


@given(path=st.sampled_from(places(REVISION)), value=VALUES)
@example(path=("transformations", 2, "quantiles", 0), value=-(10**400))
@example(path=("transformations", 0, "maxNumber"), value=10**400)
@example(path=("transformations", 0, "minNumber"), value=-(2**63) - 1)
@example(path=("transformations", 0, "nullValue"), value=10**400)
@example(path=("desiredCubeSize",), value=2**63)
@example(path=("transformations", 0, "orderedDataType"), value="x" * 1000)
@example(path=("columnTransformers", 0, "columnName"), value=["x" * 1000])
@settings(max_examples=150)
def test_a_changed_revision_is_understood_or_counts_as_broken(path: Any, value: Any) -> None:
    text = json.dumps(changed(REVISION, path, value))
    found = IndexConfiguration.read({f"{REVISION_KEY_PREFIX}1": text, LAST_REVISION_KEY: "1"})
    assert set(found.revisions) | set(found.broken) == {1}
    assert all(len(reason) < 1000 for reason in found.broken.values())
    try:
        revision = Revision.from_json_text(text)
    except CorruptMetadata:
        return
    # What is accepted can be written again, and compared with statistics and filters.
    assert Revision.from_json_text(revision.to_json_text()) == revision
    corner = np.zeros((1, revision.dimensions))
    for name, transformation in zip(revision.columns, revision.transformations, strict=False):
        may_match(Or((IsNull(name), Comparison(name, ">", 1))), revision, corner, corner)
        if isinstance(transformation, LinearTransformation):
            transformation.may_have(1, 2)


@given(
    st.dictionaries(
        st.one_of(
            st.text(max_size=10),
            st.sampled_from(
                [
                    LAST_REVISION_KEY,
                    SAMPLE_KEY_PROPERTY,
                    f"{REVISION_KEY_PREFIX}1",
                    f"{REVISION_KEY_PREFIX}{HUGE}",
                    f"{REVISION_KEY_PREFIX}x",
                    "qbeast.replicatedSet.1",
                    f"qbeast.replicatedSet.{HUGE}",
                ]
            ),
        ),
        st.one_of(
            st.text(max_size=30),
            VALUES.map(json.dumps),
            st.sampled_from([HUGE, DEEP, "[]", "1", json.dumps(REVISION)]),
        ),
    )
)
@settings(max_examples=120)
def test_any_configuration_can_be_read(configuration: dict[str, str]) -> None:
    found = IndexConfiguration.read(configuration)
    assert found.unused_id > 0
    assert replicated_revisions(configuration) <= {1}


BLOCK = {"cubeId": "gw", "minWeight": -5, "maxWeight": 5, "elementCount": 3}


@given(path=st.sampled_from(places([BLOCK, BLOCK])), value=VALUES, dimensions=st.integers(1, 8))
@settings(max_examples=120)
def test_changed_blocks_are_understood_or_refused(path: Any, value: Any, dimensions: int) -> None:
    try:
        blocks = parse_blocks(json.dumps(changed([BLOCK, BLOCK], path, value)), dimensions)
    except ValueError as problem:
        assert len(str(problem)) < 1000
    else:
        assert all(block.element_count >= 0 for block in blocks)


@pytest.mark.parametrize("text", [DEEP, TOO_LONG, f"[{HUGE}]", '[{"cubeId":' + DEEP + "}]", ""])
def test_texts_beyond_the_limits_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_blocks(text, 2)
    with pytest.raises(CorruptMetadata):
        Revision.from_json_text(text)
    if text:
        with pytest.raises(InvalidOptions):
            parse_column_stats(text)


@pytest.mark.parametrize(("dimensions", "symbols"), [(2, 1), (8, 2)])
def test_a_cube_is_as_deep_as_doubles_can_tell_points_apart(dimensions: int, symbols: int) -> None:
    assert CubeId.parse("A" * MAX_LEVELS * symbols, dimensions).depth == MAX_LEVELS
    with pytest.raises(ValueError, match="more than 1,074 levels"):
        CubeId.parse("A" * (MAX_LEVELS + 1) * symbols, dimensions)


def test_json_is_as_deep_and_as_long_as_allowed_and_no_more() -> None:
    deepest = "[" * MAX_NESTING + "]" * MAX_NESTING
    assert parse_json(deepest)
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json(f"[{deepest}]")
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json('{"a":' * (MAX_NESTING + 1) + "1" + "}" * (MAX_NESTING + 1))
    with pytest.raises(ValueError, match="characters; 33,554,432 are allowed"):
        parse_json(TOO_LONG)


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("17", 17), ("9" * 18, 10**18 - 1), ("9" * 19, None), (HUGE, None), ("", None)],
)
def test_an_id_is_a_number_of_up_to_18_digits(text: str, number: int | None) -> None:
    assert parse_id(text) == number


@pytest.mark.parametrize(
    "text", ["-1", "+1", "1.0", "1 ", "\N{ARABIC-INDIC DIGIT ONE}", "²", "0x1"]
)
def test_other_texts_are_not_ids(text: str) -> None:
    assert parse_id(text) is None


def test_a_revision_that_could_not_be_read_again_is_not_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    revision = Revision(
        1, 0, "t", 10, (StringQuantilesTransformer("b"),), (StringQuantiles(("a" * 900, "b")),)
    )
    assert len(revision.to_json_text()) < 2000
    monkeypatch.setattr(json_text, "MAX_TEXT_LENGTH", 1000)
    with pytest.raises(InvalidOptions, match=r"'b' is too large .* by hash instead of quantiles"):
        revision.to_json_text()


@given(
    st.one_of(
        st.text(max_size=40),
        VALUES.map(json.dumps),
        st.dictionaries(
            st.sampled_from(["a", "a_min", "a_max", "b_quantiles", "b", "c", "c_quantiles", "x"]),
            st.one_of(
                VALUES,
                st.fixed_dictionaries({"min": VALUES, "max": VALUES}),
                st.fixed_dictionaries({"quantiles": st.lists(VALUES, max_size=3)}),
            ),
            max_size=3,
        ),
    )
)
@settings(max_examples=150)
def test_column_stats_are_understood_or_refused(value: Any) -> None:
    transformers = (
        LinearTransformer("a", DataType.INTEGER),
        StringQuantilesTransformer("b"),
        NumericQuantilesTransformer("c", DataType.TIMESTAMP),
    )
    try:
        found = resolve_column_stats(parse_column_stats(value), transformers)
    except InvalidOptions as problem:
        assert len(str(problem)) < 2000
    else:
        assert len(found) == 3
