"""What a user says of a column's values beforehand: `column_stats` (docs/format.md 2.3).

A table can so start with a wider range than its first rows have, and quantiles can be given. Two
forms say the same: `{"price": {"min": 0, "max": 10}}`, and the format's own `{"price_min": 0,
"price_max": 10}`, as a mapping or as JSON text.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from qbeast_core.errors import InvalidOptions
from qbeast_core.model.datatypes import EPOCH, DataType, Number, to_bound, to_millis, to_ordinate
from qbeast_core.model.json_text import to_json_text
from qbeast_core.model.quantiles import NumericQuantiles, StringQuantiles
from qbeast_core.model.transformer import (
    LinearTransformer,
    NumericQuantilesTransformer,
    StringQuantilesTransformer,
    Transformer,
)
from qbeast_core.names import closest

MAX_QUANTILES = 10_000

_MEASURES = ("min", "max", "quantiles")
_WHOLE_RANGES = {DataType.INTEGER: 1 << 31, DataType.LONG: 1 << 63}
_TEXT = re.compile(r"""("(?:[^"\\]|\\.)*")|'((?:[^'\\]|\\.)*)'""", re.DOTALL)


@dataclass(frozen=True)
class ColumnStats:
    """What is given of one column; nothing by default.

    Bounds are ordinates (`model.datatypes.to_bound`), quantiles numbers or texts in order.
    """

    minimum: Number | None = None
    maximum: Number | None = None
    quantiles: tuple[float, ...] | tuple[str, ...] = ()


def parse_column_stats(value: str | Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The keys and values of the option; empty for None and for a blank text.

    JSON texts may have single quotes, which the format allows. Raises InvalidOptions.
    """
    given: Any = value
    if value is None or (isinstance(value, str) and not value.strip()):
        return {}
    if isinstance(value, str):
        try:
            given = json.loads(_TEXT.sub(_double_quoted, value))
        except ValueError as problem:
            raise InvalidOptions(
                f"column_stats is no JSON ({problem}): {value!r:.200}; write it like "
                '{"price_min": 0, "price_max": 10}'
            ) from None
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise InvalidOptions(
            f"column_stats must be a mapping from columns, got {value!r:.200}; write it like "
            '{"price": {"min": 0, "max": 10}}'
        )
    return given


def resolve_column_stats(
    given: Mapping[str, Any], transformers: Sequence[Transformer]
) -> tuple[ColumnStats, ...]:
    """What is given of each indexed column.

    Raises:
        InvalidOptions: a key names no indexed column, or a value does not fit the column: its type,
            its kind of index, a minimum not below the maximum, quantiles out of order.
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
    """The JSON text that tables store under `columnStats`; empty where nothing was given."""
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
    """(column, measure, value) of each entry, whichever form it has."""
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
                        f"column_stats of {key!r} has {measure!r}; it takes {', '.join(_MEASURES)}"
                    )
                yield by_name[key.lower()], measure, number
        elif key.lower() in by_key:
            yield *by_key[key.lower()], value
        else:
            close = closest(key, [*by_name, *by_key])
            meant = f" (did you mean {close!r}?)" if close else ""
            raise InvalidOptions(
                f"column_stats has {key!r}, which says nothing of an indexed column{meant}; the "
                f"indexed columns are {', '.join(map(repr, columns))}, each with "
                '{"min": ..., "max": ...} or {"quantiles": [...]}'
            )


def _stats(transformer: Transformer, measures: Mapping[str, Any]) -> ColumnStats:
    column = transformer.column
    if not measures:
        raise InvalidOptions(f"column_stats of {column!r} gives no value; remove it")
    if isinstance(transformer, LinearTransformer):
        if set(measures) != {"min", "max"}:
            raise InvalidOptions(
                f"column_stats of {column!r} gives {', '.join(measures)}; a linear column takes "
                "min and max, both of them"
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
                f"column_stats of {column!r} gives {', '.join(measures)}; a column indexed by "
                "quantiles takes quantiles"
            )
        return ColumnStats(quantiles=_quantiles(transformer, measures["quantiles"]))
    raise InvalidOptions(
        f"column_stats of {column!r}: a column indexed by {transformer.kind} takes none; remove it"
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
            raise ValueError("quantiles of texts must be texts")
        return StringQuantiles(tuple(given)).quantiles
    except ValueError as problem:
        raise InvalidOptions(f"column_stats of {column!r}: {problem}") from None


def _ordinate(value: Any, data_type: DataType) -> float:
    """A quantile as a double; dates and timestamps also as milliseconds, as the format has them."""
    if isinstance(value, bool) or value is None:
        raise ValueError(f"{value!r} is no quantile of a column of type {data_type.value}")
    is_number = isinstance(value, int | float | Decimal)
    if data_type in (DataType.DATE, DataType.TIMESTAMP) and not is_number:
        return float(to_millis(_moment(value, data_type)))
    ordinate = to_ordinate(value, DataType.DOUBLE)
    assert ordinate is not None
    return ordinate


def _bound(column: str, value: Any, data_type: DataType) -> Number:
    try:
        if isinstance(value, bool):
            raise ValueError(f"{value!r} is no number")
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
    """A date or an instant; a time without a zone is in UTC. Raises ValueError."""
    moment = value
    if isinstance(value, str):
        text = re.sub(r"\s*Z$", "+00:00", value.strip())
        read = datetime.date if data_type is DataType.DATE else datetime.datetime
        moment = read.fromisoformat(text)
    if data_type is DataType.DATE:
        if isinstance(moment, datetime.date) and not isinstance(moment, datetime.datetime):
            return moment
        raise ValueError(f"{value!r} is no date; write it like '2024-12-31'")
    if isinstance(moment, datetime.date) and not isinstance(moment, datetime.datetime):
        moment = datetime.datetime.combine(moment, datetime.time())
    if not isinstance(moment, datetime.datetime):
        raise ValueError(f"{value!r} is no timestamp; write it like '2024-12-31 18:30:00'")
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.timezone.utc)


def _stored(bound: Number | None, data_type: DataType) -> Any:
    if data_type not in (DataType.DATE, DataType.TIMESTAMP):
        return bound
    assert bound is not None
    moment = EPOCH + datetime.timedelta(milliseconds=int(bound))
    if data_type is DataType.DATE:
        return moment.date().isoformat()
    return moment.strftime("%Y-%m-%d %H:%M:%S.%fZ")


def _double_quoted(match: re.Match[str]) -> str:
    if match[1] is not None:
        return match[1]
    return '"' + match[2].replace("\\'", "'").replace('"', '\\"') + '"'
