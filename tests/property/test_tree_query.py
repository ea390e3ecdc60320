"""A filter never rules out a cube that holds a row which satisfies it."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from qbeast_core.model.datatypes import DataType
from qbeast_core.model.revision import Revision
from qbeast_core.model.transformation import (
    HashTransformation,
    LinearTransformation,
    NumericQuantiles,
    StringHistogram,
    StringQuantiles,
    range_transformation,
)
from qbeast_core.model.transformer import (
    HashTransformer,
    LinearTransformer,
    NumericQuantilesTransformer,
    StringHistogramTransformer,
    StringQuantilesTransformer,
)
from qbeast_core.tree.path import PathLayout
from qbeast_core.tree.query import (
    And,
    Anything,
    Comparison,
    In,
    IsNull,
    Or,
    Predicate,
    may_match,
)
from tests.support.oracles import cube_bounds, holds, point_of

UTC = datetime.timezone.utc
VALUES: dict[DataType, st.SearchStrategy[Any]] = {
    DataType.INTEGER: st.integers(-(2**31), 2**31 - 1) | st.integers(-5, 5),
    DataType.LONG: st.integers(-(2**63), 2**63 - 1) | st.integers(2**53, 2**53 + 9),
    DataType.FLOAT: st.floats(width=32),
    DataType.DOUBLE: st.floats() | st.sampled_from([0.0, -0.0, 1e308, -1e308, 5e-324]),
    DataType.DECIMAL: st.decimals(
        min_value=-(10**20), max_value=10**20, places=18, allow_nan=False
    ),
    DataType.TIMESTAMP: st.datetimes(timezones=st.just(UTC)),
    DataType.DATE: st.dates(),
    DataType.STRING: st.text(max_size=3),
}


@st.composite
def columns(draw: st.DrawFn, name: str) -> tuple[Any, Any, st.SearchStrategy[Any]]:
    """A transformer, a transformation made from some values, and a strategy for values."""
    data_type = draw(st.sampled_from(list(DataType)))
    known = draw(st.lists(VALUES[data_type], min_size=2, max_size=6))
    values = st.one_of(st.sampled_from(known), VALUES[data_type])
    if data_type is DataType.STRING:
        texts = tuple(sorted(known, key=lambda text: text.encode("utf-16-be", "surrogatepass")))
        kind = draw(st.sampled_from(["hash", "quantiles", "histogram"]))
        if kind == "quantiles":
            return StringQuantilesTransformer(name), StringQuantiles(texts), values
        if kind == "histogram":
            return StringHistogramTransformer(name, data_type), StringHistogram(texts), values
    elif draw(st.booleans()) or data_type in (DataType.DATE, DataType.TIMESTAMP):
        finite = [v for v in known if not isinstance(v, float) or np.isfinite(v)] or [0.0]
        ordinates = sorted(float(ordinate(v)) for v in finite)
        # The distance of neighbours must fit a double.
        fit = all(high - low < math.inf for low, high in pairwise(ordinates))
        is_decimal = data_type is DataType.DECIMAL
        if draw(st.booleans()) and fit and len(ordinates) > 1 and not is_decimal:
            quantiles = NumericQuantiles(tuple(ordinates), data_type)
            return NumericQuantilesTransformer(name, data_type), quantiles, values
        transformation = range_transformation(
            min(finite), max(finite), data_type, lambda low, high, _: low
        )
        return LinearTransformer(name, data_type), transformation, values
    return HashTransformer(name, data_type), HashTransformation(draw(st.integers(0, 99))), values


def ordinate(value: Any) -> float:
    if isinstance(value, datetime.datetime):
        return (value - datetime.datetime(1970, 1, 1, tzinfo=UTC)) // datetime.timedelta(
            milliseconds=1
        )
    if isinstance(value, datetime.date):
        return (value - datetime.date(1970, 1, 1)).days * 86_400_000
    return float(value)


def rows_of(_: Any, transformation: Any, values: st.SearchStrategy[Any]) -> Any:
    """Values that a write could have put under the revision: finite ones lie in its range."""
    if not isinstance(transformation, LinearTransformation):
        return values
    if transformation.data_type in (DataType.FLOAT, DataType.DOUBLE):
        return values
    low, high = transformation.minimum, transformation.maximum
    return values.filter(lambda value: low <= float(ordinate(value)) <= high)


@st.composite
def predicates(draw: st.DrawFn, of: dict[str, st.SearchStrategy[Any]], depth: int) -> Predicate:
    name = draw(st.sampled_from(list(of)))
    kind = draw(st.sampled_from(["compare", "in", "null", "any", "and", "or"]))
    if kind in ("and", "or") and depth:
        parts = draw(st.lists(predicates(of, depth - 1), min_size=1, max_size=3))
        return And(tuple(parts)) if kind == "and" else Or(tuple(parts))
    if kind == "in":
        return In(name, tuple(draw(st.lists(of[name] | st.none(), max_size=3))))
    if kind == "null":
        return IsNull(name)
    if kind == "any":
        return Anything()
    op: Any = draw(st.sampled_from(["<", "<=", "=", ">=", ">"]))
    return Comparison(name, op, draw(of[name]))


@given(st.data())
@settings(max_examples=300)
def test_a_cube_with_a_matching_row_may_match(data: st.DataObject) -> None:
    names = ["a", "b", "c"][: data.draw(st.integers(1, 3))]
    drawn = {name: data.draw(columns(name)) for name in names}
    revision = Revision(
        1,
        0,
        "t",
        10,
        tuple(transformer for transformer, _, _ in drawn.values()),
        tuple(transformation for _, transformation, _ in drawn.values()),
    )
    values = {name: strategy for name, (_, _, strategy) in drawn.items()}
    row = {name: data.draw(st.none() | rows_of(*column)) for name, column in drawn.items()}
    layout = PathLayout(len(names))
    words = layout.path_words(np.array([point_of(revision, list(row.values()))]))
    depths = data.draw(st.lists(st.integers(0, layout.max_depth), min_size=1, max_size=4))
    cubes = [layout.cube_of(words[:, 0], depth) for depth in depths]
    lower, upper = cube_bounds(cubes, layout.dimensions)
    for _ in range(4):
        predicate = data.draw(predicates(values, 2))
        if holds(predicate, row):
            assert may_match(predicate, revision, lower, upper).all()


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 6))
@settings(max_examples=200)
def test_no_more_is_selected_than_the_format_does(low: int, high: int, depth: int) -> None:
    """The rule of qbeast-spark (docs/format.md 9.3), written out for one linear column."""
    transformation = range_transformation(0, 1000, DataType.INTEGER, lambda a, b, _: a)
    column = LinearTransformer("a", DataType.INTEGER)
    revision = Revision(1, 0, "t", 10, (column,), (transformation,))
    between = And((Comparison("a", ">=", low), Comparison("a", "<", high)))
    cells = 1 << depth
    lower = np.arange(cells)[:, np.newaxis] / cells
    upper = lower + 1 / cells
    f, t = transformation.transform(low), transformation.transform(high)
    past = t + 1.1103e-16
    chosen = may_match(between, revision, lower, upper)
    for i in range(cells):
        cf, ct = float(lower[i, 0]), float(upper[i, 0])
        format_does = f <= t and ((f <= cf < past) or (cf <= f < ct) or f == ct == 1.0)
        assert not chosen[i] or format_does


def test_a_decimal_is_compared_as_it_is_stored() -> None:
    """Two decimals that one double stands for are at one place, whichever is asked for."""
    low, high = Decimal("0.100000000000000001"), Decimal("0.100000000000000002")
    transformation = range_transformation(
        Decimal(0), Decimal(1), DataType.DECIMAL, lambda a, b, _: a
    )
    revision = Revision(
        1, 0, "t", 10, (LinearTransformer("a", DataType.DECIMAL),), (transformation,)
    )
    layout = PathLayout(1)
    words = layout.path_words(np.array([point_of(revision, [high])]))
    bounds = cube_bounds([layout.cube_of(words[:, 0], 50)], 1)
    assert may_match(Comparison("a", ">", low), revision, *bounds).all()
