"""Group rows, whatever the session's settings are."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame


def grouped(
    rows: DataFrame,
    keys: Sequence[Column],
    *aggregates: Column,
    sets: Sequence[Sequence[Column]] | None = None,
) -> DataFrame:
    """The keys and the aggregates of each group of rows.

    Spark leaves out the keys if `spark.sql.retainGroupColumns` is false.

    Args:
        sets: the grouping sets, if rows are grouped more than once.
    """
    groups = rows.groupBy(*keys) if sets is None else rows.groupingSets(sets, *keys)
    has_keys = str(rows.sparkSession.conf.get("spark.sql.retainGroupColumns"))
    return groups.agg(*([] if has_keys.strip().lower() == "true" else keys), *aggregates)
