"""Keeps what Spark has cached of a table up to date, as Delta's own commands do.

Spark answers a query from its cache if the query contains a cached plan, even if the table has
changed since. So each commit that changes rows must invalidate that cache.
"""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager

from qbeast_core.jvm.failures import one_line
from qbeast_core.jvm.gateway import Jvm

logger = logging.getLogger(__name__)


def refresh_cached(jvm: Jvm, location: str, newest_versions: AbstractContextManager[None]) -> None:
    """Let Spark compute again what it has cached of the table, when the rows are next read.

    Rows of a fixed version, such as a sample, are computed again too, and stay the same. The change
    is committed, so a failure is only a warning.

    Args:
        newest_versions: inside it, this thread reads the newest version of each table.
    """
    try:
        cache = jvm.session.sharedState().cacheManager()
        if not cache.isEmpty():
            # Delta's commands look for the present plan of the table, which misses plans from
            # before a change of its schema.
            with newest_versions:
                cache.recacheByPath(jvm.session, location)
    except Exception as problem:
        logger.warning(
            "%s has changed, but Spark may still have old rows of it in its cache (%s). To remove "
            "them, call spark.catalog.refreshByPath(%r)",
            location,
            one_line(problem),
            location,
        )
