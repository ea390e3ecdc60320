"""Tables that samples and runs on a sample read, by name or, as in Spark's SQL, by path.

The name of a table by path is "delta.`/lake/events`". The path can end with a version (`@v3`).
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from qbeast_core import QbeastTable

_VERSION_IN_PATH = re.compile(r"@(v\d+|\d{17})$", re.IGNORECASE)


def is_path(parts: Sequence[str]) -> bool:
    """Whether the parts of a name are those of a table by path."""
    return len(parts) == 2 and parts[0].lower() == "delta" and "/" in parts[1]


def without_version(path: str) -> str:
    """The path of a table without the version that it may end with."""
    return _VERSION_IN_PATH.sub("", path)


def open_table(session: "SparkSession", table: str) -> "QbeastTable":
    """Opens an indexed table. Raises as `QbeastTable.for_name` and `for_path`."""
    from qbeast_core import QbeastTable

    path = _path_of(session, table)
    if path is None:
        return QbeastTable.for_name(session, table)
    return QbeastTable.for_path(session, path)


def is_indexed(session: "SparkSession", table: str) -> bool:
    """Whether an indexed table of this name, or at this path, exists."""
    from qbeast_core import InvalidOptions, NotAQbeastTable, QbeastTable

    path = _path_of(session, table)
    if path is None:
        return QbeastTable.is_qbeast(session, table)
    try:
        QbeastTable.for_path(session, path)
    except (InvalidOptions, NotAQbeastTable):
        return False
    return True


def properties_of(session: "SparkSession", table: str) -> Mapping[str, str]:
    """The properties of a table or view; of a table by path, those of its newest version.

    Empty if there is no such table or view.
    """
    from qbeast_core import Catalog, TableSnapshot

    path = _path_of(session, table)
    if path is None:
        return Catalog(session).properties(table)
    snapshot = TableSnapshot.load(session, without_version(path))
    return snapshot.configuration if snapshot.exists else {}


def _path_of(session: "SparkSession", table: str) -> str | None:
    """The path of a table by path; None for other names."""
    from qbeast_core import Catalog

    parts = Catalog(session).parts(table)
    return parts[1] if is_path(parts) else None
