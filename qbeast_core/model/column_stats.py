"""User-supplied statistics of column values: the option `column_stats` (docs/format.md 2.3).

They give a table a wider range than its first rows have, or the quantiles of a column. Two forms
are equivalent: `{"price": {"min": 0, "max": 10}}`, and the format's own `{"price_min": 0,
"price_max": 10}`. Both can be a mapping or JSON text.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from qbeast_core.errors import InvalidOptions
from qbeast_core.model.datatypes import EPOCH, DataType, Number, to_bound, to_millis, to_ordinate
from qbeast_core.model.json_text import check_length, parse_json, to_json_text
from qbeast_core.model.quantiles import NumericQuantiles, StringQuantiles
from qbeast_core.model.transformer import (
    LinearTransformer,
    NumericQuantilesTransformer,
    StringQuantilesTransformer,
    Transformer,
)
from qbeast_core.names import suggestion

MAX_QUANTILES = 10_000

_MEASURES = ("min", "max", "quantiles")
_WHOLE_RANGES = {DataType.INTEGER: 1 << 31, DataType.LONG: 1 << 63}
_TEXT = re.compile(r"""("(?:[^"\\]|\\.)*")|'((?:[^'\\]|\\.)*)'""", re.DOTALL)


@dataclass(frozen=True)
class ColumnStats:
    """The user-supplied statistics of one column; none by default.

    Bounds are ordinates (`model.datatypes.to_bound`); quantiles are sorted numbers or strings.
    """

    minimum: Number | None = None
    maximum: Number | None = None
    quantiles: tuple[float, ...] | tuple[str, ...] = ()


def parse_column_stats(value: str | Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The keys and values of the option; empty for None and for blank text.

    JSON text may use single quotes, which the format allows. Raises InvalidOptions.
    """
    given: Any = value
    if value is None or (isinstance(value, str) and not value.strip()):
        return {}
    if isinstance(value, str):
        try:
            check_length(value)
            given = parse_json(_TEXT.sub(_double_quoted, value))
        except ValueError as problem:
            raise InvalidOptions(
                f"column_stats is not valid JSON ({problem}): {value!r:.200}; write it like "
                '{"price_min": 0, "price_max": 10}'
            ) from None
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise InvalidOptions(
            f"column_stats must map columns to statistics, got {value!r:.200}; write it like "
            '{"price": {"min": 0, "max": 10}}'
        )
    return given


def resolve_column_stats(
    given: Mapping[str, Any], transformers: Sequence[Transformer]
) -> tuple[ColumnStats, ...]:
    """The user-supplied statistics of each indexed column, in the order of `transformers`.

    Raises:
        InvalidOptions: a key names no indexed column, or a value does not fit the column: wrong
            type or kind of index, a minimum not below the maximum, or quantiles out of order.
    """
    by_column: dict[str, dict[str, Any]] = {each.column: {} for each in transformers}
    for column, measure, value in _measures(given, list(by_column)):
        if measure in by_column[column]:
            raise InvalidOptions(f"column_stats gives the {measure} of {column!r} twice")
        by_column[column][measure] = value
    return tuple(
        _stats(each, {k: v for k, v in by_column[each.column].items() if v is not None})
        if by_column[each.column]
        else ColumnStats()
        for each in transformers
    )


def column_stats_text(stats: Sequence[ColumnStats], transformers: Sequence[Transformer]) -> str:
    """The JSON text that tables store under `columnStats`; empty if no statistics were given."""
    members: dict[str, Any] = {}
    for each, transformer in zip(stats, transformers, strict=True):
        column = transformer.column
        if each.minimum is not None and isinstance(transformer, LinearTransformer):
            data_type = transformer.data_type
            members[f"{column}_min"] = _stored(each.minimum, data_type)
            members[f"{column}_max"] = _stored(each.maximum, data_type)
        if each.quantiles:
            members[f"{column}_quantiles"] = each.quantiles
    return to_json_text(members) if members else ""


def _measures(given: Mapping[str, Any], columns: Sequence[str]) -> Iterator[tuple[str, str, Any]]:
    """(column, measure, value) of each entry, in either form."""
    by_name = {column.lower(): column for column in columns}
    by_key = {
        f"{column}_{measure}".lower(): (column, measure)
        for column in columns
        for measure in _MEASURES
    }
    for key, value in given.items():
        if isinstance(value, Mapping) and key.lower() in by_name:
            for measure, number in value.items():
                if measure not in _MEASURES:
                    raise InvalidOptions(
                        f"column_stats of {key!r} has {measure!r}; use {', '.join(_MEASURES)}"
                    )
                yield by_name[key.lower()], measure, number
        elif key.lower() in by_key:
            yield *by_key[key.lower()], value
        else:
            meant = suggestion(key, [*by_name, *by_key])
            raise InvalidOptions(
                f"column_stats has {key!r}, which matches no indexed column{meant}; the "
                f"indexed columns are {', '.join(map(repr, columns))}, and each takes "
                '{"min": ..., "max": ...} or {"quantiles": [...]}'
            )


def _stats(transformer: Transformer, measures: Mapping[str, Any]) -> ColumnStats:
    column = transformer.column
    if not measures:
        raise InvalidOptions(f"column_stats of {column!r} has no values; remove it")
    if isinstance(transformer, LinearTransformer):
        if set(measures) != {"min", "max"}:
            raise InvalidOptions(
                f"column_stats of {column!r} has {', '.join(measures)}; a linear column needs "
                "min and max, and nothing else"
            )
        low, high = (_bound(column, measures[k], transformer.data_type) for k in ("min", "max"))
        if not float(low) < float(high):
            raise InvalidOptions(
                f"column_stats of {column!r}: the min {measures['min']!r} is not below the max "
                f"{measures['max']!r}"
            )
        return ColumnStats(low, high)
    if isinstance(transformer, NumericQuantilesTransformer | StringQuantilesTransformer):
        if set(measures) != {"quantiles"}:
            raise InvalidOptions(
                f"column_stats of {column!r} has {', '.join(measures)}; a column indexed by "
                "quantiles needs quantiles, and nothing else"
            )
        return ColumnStats(quantiles=_quantiles(transformer, measures["quantiles"]))
    raise InvalidOptions(
        f"column_stats of {column!r}: a column indexed by {transformer.kind} takes no statistics; "
        "remove them"
    )


def _quantiles(transformer: Transformer, given: Any) -> tuple[float, ...] | tuple[str, ...]:
    column = transformer.column
    if not isinstance(given, list | tuple) or not 2 <= len(given) <= MAX_QUANTILES:
        raise InvalidOptions(
            f"column_stats of {column!r}: quantiles must be a list of 2 to {MAX_QUANTILES} values "
            f"in ascending order, got {given!r:.200}"
        )
    try:
        if isinstance(transformer, NumericQuantilesTransformer):
            data_type = transformer.data_type
            numbers = tuple(_ordinate(value, data_type) for value in given)
            return NumericQuantiles(numbers, data_type).quantiles
        if not all(isinstance(value, str) for value in given):
            raise ValueError("quantiles of a string column must be strings")
        return StringQuantiles(tuple(given)).quantiles
    except ValueError as problem:
        raise InvalidOptions(f"column_stats of {column!r}: {problem}") from None


def _ordinate(value: Any, data_type: DataType) -> float:
    """A quantile as a double; dates and timestamps may also be milliseconds, as in the format."""
    if isinstance(value, bool) or value is None:
        raise ValueError(f"{value!r} is not a quantile of a column of type {data_type.value}")
    is_number = isinstance(value, int | float | Decimal)
    if data_type in (DataType.DATE, DataType.TIMESTAMP) and not is_number:
        return float(to_millis(_moment(value, data_type)))
    ordinate = to_ordinate(value, DataType.DOUBLE)
    assert ordinate is not None
    return ordinate


def _bound(column: str, value: Any, data_type: DataType) -> Number:
    try:
        if isinstance(value, bool):
            raise ValueError(f"{value!r} is not a number")
        if data_type in (DataType.DATE, DataType.TIMESTAMP):
            return to_bound(_moment(value, data_type), data_type)
        if data_type is DataType.DECIMAL and isinstance(value, str):
            value = float(value)
        bound = to_bound(value, data_type)
        limit = _WHOLE_RANGES.get(data_type, math.inf)
        if not -limit <= bound < limit:
            raise ValueError(f"{value!r} does not fit the column")
        return bound
    except ValueError as problem:
        raise InvalidOptions(f"column_stats of {column!r}: {problem}") from None


def _moment(value: Any, data_type: DataType) -> datetime.date:
    """A date or an instant; a time without a zone counts as UTC. Raises ValueError."""
    moment = value
    if isinstance(value, str):
        text = re.sub(r"\s*Z$", "+00:00", value.strip())
        read = datetime.date if data_type is DataType.DATE else datetime.datetime
        moment = read.fromisoformat(text)
    if data_type is DataType.DATE:
        if isinstance(moment, datetime.date) and not isinstance(moment, datetime.datetime):
            return moment
        raise ValueError(f"{value!r} is not a date; write it like '2024-12-31'")
    if isinstance(moment, datetime.date) and not isinstance(moment, datetime.datetime):
        moment = datetime.datetime.combine(moment, datetime.time())
    if not isinstance(moment, datetime.datetime):
        raise ValueError(f"{value!r} is not a timestamp; write it like '2024-12-31 18:30:00'")
    if not moment.tzinfo:
        return moment.replace(tzinfo=datetime.timezone.utc)
    try:
        return moment.astimezone(datetime.timezone.utc)
    except OverflowError:
        raise ValueError(f"{value!r} is outside the years 1 to 9999 in UTC") from None


def _stored(bound: Number | None, data_type: DataType) -> Any:
    if data_type not in (DataType.DATE, DataType.TIMESTAMP):
        return bound
    assert bound is not None
    moment = EPOCH + datetime.timedelta(milliseconds=int(bound))
    if data_type is DataType.DATE:
        return moment.date().isoformat()
    return moment.replace(tzinfo=None).isoformat(" ", "microseconds") + "Z"


def _double_quoted(match: re.Match[str]) -> str:
    if match[1] is not None:
        return match[1]
    return '"' + match[2].replace("\\'", "'").replace('"', '\\"') + '"'
