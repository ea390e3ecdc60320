"""Values as text for messages. Python lacks some of Spark's values, such as the year 10000."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType


def value_text(value: Column, kind: DataType) -> Column:
    """The value as Spark writes it; a string is in quotes."""
    text = value.cast("string")
    if isinstance(kind, StringType):
        text = F.concat(F.lit("'"), text, F.lit("'"))
    return F.coalesce(text, F.lit("null"))


def row_text(names: Iterable[str], texts: Iterable[str]) -> str:
    """The named values of a row, such as `id 7, kind 'view'`."""
    return ", ".join(f"{name} {text}" for name, text in zip(names, texts, strict=True))
