"""Qbeast tables on Spark and Delta Lake: an index over several columns, with sampling built in.

>>> from qbeast_core import QbeastTable, write_table  # doctest: +SKIP
>>> write_table(df, table="db.events", columns_to_index=["ts", "user_id:hash"])  # doctest: +SKIP
>>> QbeastTable.for_name(spark, "db.events").sample(0.01).count()  # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qbeast_core.maintain.convert import ConvertResult as ConvertResult
    from qbeast_core.maintain.convert import convert_to_qbeast as convert_to_qbeast
    from qbeast_core.maintain.migrate import MigrateResult as MigrateResult
    from qbeast_core.maintain.migrate import migrate_format as migrate_format
    from qbeast_core.table import QbeastTable as QbeastTable
    from qbeast_core.write.request import WriteResult as WriteResult
    from qbeast_core.write.table import write_table as write_table

_PUBLIC = {
    "ConvertResult": "qbeast_core.maintain.convert",
    "MigrateResult": "qbeast_core.maintain.migrate",
    "QbeastTable": "qbeast_core.table",
    "WriteResult": "qbeast_core.write.request",
    "convert_to_qbeast": "qbeast_core.maintain.convert",
    "migrate_format": "qbeast_core.maintain.migrate",
    "write_table": "qbeast_core.write.table",
}

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    # On first use, so that the format (`qbeast_core.model`) can be imported without Spark.
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)
