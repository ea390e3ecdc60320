"""The values of an indexed column at even steps of its coordinate, as people write them.

A *step* is a range of values. A choice of steps `i` to `j` of a column stands for a condition on
it: at or above the lower bound of step `i`, and at or below the upper bound of step `j`. The first
step has no lower bound and the last one no upper bound, because rows outside the range of a
revision lie in its outermost cubes.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from qbeast_core.model.datatypes import EPOCH, MILLIS_PER_DAY, DataType
from qbeast_core.model.transformation import (
    HashTransformation,
    LinearTransformation,
    NumericQuantiles,
    StringHistogram,
    StringQuantiles,
    Transformation,
)
from qbeast_core.names import quoted_text

MAX_STEPS = 64
_EXACT = Context(prec=60)
_SECOND = 1000
_TIME_UNITS = (1, _SECOND, 60 * _SECOND, 3600 * _SECOND, MILLIS_PER_DAY)
_MAX_LABEL_LENGTH = 24


@dataclass(frozen=True)
class Bound:
    """One end of a range of values."""

    value: Any
    """As `tree.query` compares it."""
    sql: str
    """As a literal in Spark's SQL."""
    label: str


@dataclass(frozen=True)
class ColumnSteps:
    """An indexed column and the steps by which a range of it can be chosen."""

    column: str
    kind: Literal["ordered", "hashed", "single"]
    """`hashed` columns have no ranges, and `single` ones have one value at most."""
    lower: tuple[Bound, ...] = ()
    """Of all steps but the first, rising."""
    upper: tuple[Bound, ...] = ()
    """Of all steps but the last, rising."""
    upper_op: Literal["<=", "<"] = "<="
    edges: tuple[float, ...] = (0.0, 1.0)
    """The coordinates between the steps, with both ends."""
    marks: tuple[tuple[float, str], ...] = ()
    """Labels for a scale: coordinates with the values there."""

    @property
    def count(self) -> int:
        """How many steps there are; 1 for a column without ranges."""
        return len(self.edges) - 1


def column_steps(
    column: str,
    transformation: Transformation | None,
    most: int = MAX_STEPS,
    decimal_scale: int | None = None,
) -> ColumnSteps:
    """The steps of a column, not more than `most`.

    Args:
        transformation: None for a revision without data.
        decimal_scale: of a column of decimals. A literal with more digits than the column has would
            make Spark cast the column, and then no index can judge the condition.
    """
    match transformation:
        case HashTransformation():
            return ColumnSteps(column, "hashed")
        case StringQuantiles(texts) | StringHistogram(texts):
            return _text_steps(column, texts, transformation, most)
        case LinearTransformation(data_type=data_type):
            low, high = Decimal(str(transformation.minimum)), Decimal(str(transformation.maximum))
            return _number_steps(
                column,
                transformation,
                lambda at: low + Decimal(at) * (high - low),
                most,
                _Writing(data_type, decimal_scale),
            )
        case NumericQuantiles(quantiles, data_type):
            coordinates = np.linspace(0.0, 1.0, len(quantiles))
            return _number_steps(
                column,
                transformation,
                lambda at: Decimal(float(np.interp(at, coordinates, quantiles))),
                most,
                _Writing(data_type, decimal_scale),
            )
    return ColumnSteps(column, "single")


@dataclass(frozen=True)
class _Writing:
    """How numbers of a type are rounded and written."""

    data_type: DataType
    decimal_scale: int | None

    def unit(self, width: Decimal) -> Decimal:
        """What bounds are rounded to in steps of this width: a tenth of it or less."""
        if self.data_type is DataType.DATE:
            return Decimal(MILLIS_PER_DAY)
        if self.data_type is DataType.TIMESTAMP:
            fitting = [unit for unit in _TIME_UNITS if unit * 10 <= width]
            return Decimal(fitting[-1] if fitting else 1)
        exponent = width.adjusted() - 1
        if self.data_type.is_whole:
            exponent = max(exponent, 0)
        elif self.data_type is DataType.DECIMAL and self.decimal_scale is not None:
            exponent = max(exponent, -self.decimal_scale)
        return Decimal(1).scaleb(exponent)

    def bound(self, number: Decimal) -> Bound:
        match self.data_type:
            case DataType.DATE:
                date = (EPOCH + datetime.timedelta(milliseconds=int(number))).date()
                return Bound(date, f"date '{date}'", str(date))
            case DataType.TIMESTAMP:
                instant = EPOCH + datetime.timedelta(milliseconds=int(number))
                # The year of `strftime` can have fewer than four digits.
                text = f"{instant.year:04d}-{instant:%m-%d %H:%M:%S}"
                if instant.microsecond:
                    text += f".{instant.microsecond // 1000:03d}"
                label = text.removesuffix(":00").removesuffix(" 00:00")
                return Bound(instant, f"timestamp '{text} UTC'", label)
            case DataType.INTEGER | DataType.LONG:
                return Bound(int(number), str(int(number)), _grouped(number))
            case DataType.DECIMAL:
                return Bound(number, _plain(number), _grouped(number))
            case DataType.FLOAT:
                value = float(np.float32(float(number)))
                return Bound(value, _floating_literal(number, "F"), _grouped(number))
            case _:
                return Bound(float(number), _floating_literal(number, "D"), _grouped(number))


def _number_steps(
    column: str,
    transformation: Transformation,
    value_at: Callable[[float], Decimal],
    most: int,
    writing: _Writing,
) -> ColumnSteps:
    """Steps that end just below where the next one begins, so that they share no cube with it."""
    try:
        values = [value_at(i / most) for i in range(most + 1)]
        lower, upper, edges = _rounded(values, writing, transformation)
        marks = tuple(_marks(values, writing))
    except (ValueError, ArithmeticError):
        # Literals cannot express the range, which ends outside the years 1 to 9999, for example.
        return ColumnSteps(column, "single")
    return ColumnSteps(
        column, "ordered", lower=lower, upper=upper, edges=(0.0, *edges, 1.0), marks=marks
    )


def _rounded(
    values: Sequence[Decimal], writing: _Writing, transformation: Transformation
) -> tuple[tuple[Bound, ...], tuple[Bound, ...], tuple[float, ...]]:
    widths = [high - low for low, high in pairwise(values)]
    lower: list[Bound] = []
    upper: list[Bound] = []
    edges: list[float] = []
    last = values[0]
    for value, before, after in zip(values[1:-1], widths, widths[1:], strict=False):
        width = min(width for width in (before, after, values[-1] - values[0]) if width > 0)
        unit = writing.unit(width)
        begins = (value / unit).to_integral_value(ROUND_CEILING, _EXACT) * unit
        place = transformation.transform(writing.bound(begins).value)
        # Repeated quantiles and few whole numbers make fewer steps.
        if begins - unit < last or not (edges[-1] if edges else 0.0) < place < 1.0 + 1e-9:
            continue
        lower.append(writing.bound(begins))
        upper.append(writing.bound(begins - unit))
        edges.append(min(place, 1.0))
        last = begins
    return tuple(lower), tuple(upper), tuple(edges)


def _marks(values: Sequence[Decimal], writing: _Writing) -> Iterator[tuple[float, str]]:
    last = len(values) - 1
    for i in range(0, last + 1, max(1, last // 4)):
        width = max(values[min(i + 1, last)] - values[max(i - 1, 0)], Decimal(0))
        number = values[i]
        if width > 0:
            unit = writing.unit(width)
            number = (number / unit).to_integral_value(context=_EXACT) * unit
        yield i / last, writing.bound(number).label


def _text_steps(
    column: str,
    texts: Sequence[str],
    transformation: StringQuantiles | StringHistogram,
    most: int,
) -> ColumnSteps:
    distinct = list(dict.fromkeys(texts))
    if len(distinct) > most:
        chosen = np.linspace(0, len(distinct) - 1, most).round().astype(int)
        distinct = [distinct[i] for i in chosen]
    # Where UTF-16 and UTF-8 order texts differently, the index answers "any file".
    ends = [text for text in distinct[1:] if not any(c >= "\ud800" for c in text)]
    bounds = tuple(Bound(text, quoted_text(text), _short(text)) for text in ends)
    edges = tuple(transformation.transform(text) for text in ends)
    marks = [(transformation.transform(text), _short(text)) for text in distinct]
    return ColumnSteps(
        column,
        "ordered",
        lower=bounds,
        upper=bounds,
        upper_op="<",
        edges=(0.0, *edges, 1.0),
        marks=tuple(marks[:: max(1, len(marks) // 4)]),
    )


def _floating_literal(number: Decimal, suffix: str) -> str:
    """Without an exponent where the number is short enough for people."""
    plain = _plain(number)
    return f"{number:E}{suffix}" if len(plain) > 20 else f"{plain}{suffix}"


def _short(text: str) -> str:
    return text if len(text) <= _MAX_LABEL_LENGTH else text[: _MAX_LABEL_LENGTH - 1] + "…"


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _grouped(number: Decimal) -> str:
    """For people: a year stays as it is, longer numbers get separators."""
    if number and not -6 <= number.adjusted() < 15:
        return f"{float(number):.4g}"
    whole, _, rest = _plain(number).partition(".")
    digits = whole.lstrip("-")
    sign = whole[: len(whole) - len(digits)]
    grouped = f"{int(digits):,}" if len(digits) > 4 else digits
    return sign + grouped + (f".{rest}" if rest else "")
