"""Tables that exist, by any of the ways in which people name them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from qbeast_core.delta.catalog import Catalog
from qbeast_core.errors import IncompatibleTable, InvalidOptions, NotAQbeastTable

DELTA, PARQUET = "delta", "parquet"

_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")


@dataclass(frozen=True)
class Address:
    """Where a table lies and what it is stored as."""

    label: str
    """How messages call it."""
    location: str
    format: str
    """`delta` or `parquet`."""
    name: str | None = None
    """`schema.table` of a table in the catalog."""


def resolve_address(spark: SparkSession, text: str) -> Address:
    """The table that a text names: ``delta.`/path` ``, ``parquet.`/path` ``, `/path` or `db.table`.

    Raises:
        InvalidOptions: it is none of these.
        NotAQbeastTable: the catalog has no table of that name.
        IncompatibleTable: it has a view, or a table in another format.
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidOptions(f"{text!r} names no table; {_FORMS}")
    if _ABSOLUTE.match(text):
        return Address(text, text, DELTA)
    catalog = Catalog(spark)
    try:
        parts = catalog.parts(text)
    except ParseException:
        raise InvalidOptions(f"{text!r} names no table; {_FORMS}") from None
    if len(parts) == 2 and parts[0].lower() in (DELTA, PARQUET) and "/" in parts[1]:
        if not _ABSOLUTE.match(parts[1]):
            raise InvalidOptions(f"the path {parts[1]!r} of {text} is not absolute; {_FORMS}")
        return Address(parts[1], parts[1], parts[0].lower())
    entry = catalog.find(text)
    if entry.is_view:
        raise IncompatibleTable(f"{entry.name} is a view; name a table")
    if not entry.exists:
        raise NotAQbeastTable(f"{entry.name} does not exist; {_FORMS}")
    if entry.provider not in (DELTA, PARQUET):
        raise IncompatibleTable(
            f"{entry.name} is stored as {entry.provider or 'an unknown format'}; only tables "
            "stored as Delta or Parquet can keep their files. Write all its rows to another table "
            "by write_table"
        )
    return Address(entry.name, entry.location, entry.provider, entry.name)


_FORMS = (
    "write a table's name as schema.table, or its path as delta.`/path`, parquet.`/path` or, for "
    "Delta, /path"
)
