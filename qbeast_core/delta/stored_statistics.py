"""Reads the statistics that the log has of a file."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Collection, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

import numpy as np
from pyspark.sql.types import StructType

from qbeast_core.delta.metadata import name_in_files
from qbeast_core.errors import UnsupportedColumnType
from qbeast_core.model.datatypes import (
    MILLIS_PER_MINUTE,
    WHOLE_MINUTES_MILLIS,
    DataType,
    to_millis,
)
from qbeast_core.tree.extremes import Extremes
from qbeast_core.tree.query import REPLACED

# `json.loads` with a parameter makes a new decoder for each text.
_WITH_FLOATS = json.JSONDecoder()
_WITH_DECIMALS = json.JSONDecoder(parse_float=Decimal)


class StoredColumn(NamedTuple):
    """A column whose statistics can be read."""

    name: str
    """In files and statistics, which can differ from the column's name."""
    data_type: DataType


def parse_statistics(text: str, decoder: json.JSONDecoder = _WITH_FLOATS) -> dict[str, Any]:
    """A file's statistics in the log; what cannot be understood is left out, as Delta does."""
    if not text:
        return {}
    try:
        found = decoder.decode(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    by_column = ("minValues", "maxValues", "nullCount")
    return {k: v for k, v in found.items() if k not in by_column or isinstance(v, dict)}


def stored_columns(schema: StructType, names: Collection[str]) -> dict[str, StoredColumn]:
    """Those of the named columns that have a type whose statistics can be read."""
    found = {}
    for field in schema.fields:
        if field.name in names:
            try:
                data_type = DataType.of_spark(field.dataType.simpleString())
            except UnsupportedColumnType:
                continue
            found[field.name] = StoredColumn(name_in_files(field), data_type)
    return found


def file_extremes(statistics: str, columns: Mapping[str, StoredColumn]) -> dict[str, Extremes]:
    """What a file's statistics, as JSON text, say of each column."""
    parsed = parse_statistics(statistics, _WITH_DECIMALS)
    lowest, highest = parsed.get("minValues", {}), parsed.get("maxValues", {})
    nulls, rows = parsed.get("nullCount", {}), parsed.get("numRecords")
    found = {}
    for column, (name, data_type) in columns.items():
        minimum = _values(lowest.get(name), data_type)
        maximum = _values(highest.get(name), data_type, may_be_shortened=True)
        found[column] = Extremes(
            minimum=min(minimum, default=None),
            maximum=max(maximum, default=None),
            only_nulls=not minimum and rows is not None and nulls.get(name) == rows,
            no_nulls=nulls.get(name) == 0,
        )
    return found


def _values(stored: Any, data_type: DataType, *, may_be_shortened: bool = False) -> list[Any]:
    """The values that a stored minimum or maximum can stand for; empty if it cannot be read.

    Delta ends a text that it shortens to a maximum with U+FFFD.
    """
    try:
        match data_type, stored:
            case _, bool() | None:
                return []
            case DataType.STRING, str():
                known = stored[:-1] if may_be_shortened else stored
                return [] if REPLACED in known else [stored]
            case DataType.DATE, str():
                return [datetime.date.fromisoformat(stored)]
            case DataType.TIMESTAMP, str():
                return _instants(datetime.datetime.fromisoformat(stored.replace("Z", "+00:00")))
            case (DataType.INTEGER | DataType.LONG, int()) | (DataType.DECIMAL, int() | Decimal()):
                return [stored]
            case DataType.FLOAT | DataType.DOUBLE, _:
                return _floating(float(stored), data_type)
    except (ValueError, TypeError, OverflowError, InvalidOperation):
        pass
    return []


def _instants(stored: datetime.datetime) -> list[datetime.datetime]:
    if stored.tzinfo is None:
        return []
    # Delta writes the offset of the session's time zone without its seconds.
    lost = datetime.timedelta(0)
    if to_millis(stored) < WHOLE_MINUTES_MILLIS:
        lost = datetime.timedelta(milliseconds=MILLIS_PER_MINUTE)
    return [stored - lost, stored + _MILLISECOND + lost]


def _floating(number: float, data_type: DataType) -> list[float]:
    if math.isnan(number):  # above every number, in Spark's order
        return [math.inf]
    with np.errstate(over="ignore"):
        rounded = float(np.float32(number))
    # A column that was float before it became double has the shortest text of its 32 bits.
    return [rounded] if data_type is DataType.FLOAT else [number, rounded]


_MILLISECOND = datetime.timedelta(milliseconds=1)
"""Delta rounds timestamps down to milliseconds."""
