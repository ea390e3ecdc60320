"""Aggregates over a query's rows, together with a bounded uniform sample of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from qbeast_core.errors import SourceChanged
from qbeast_core.jvm.catalyst import (
    ONE_TASK_BYTES,
    collect_arrow,
    estimated_bytes,
    estimated_rows,
    max_rows,
)
from qbeast_core.jvm.gateway import Jvm
from qbeast_core.jvm.settings import session_with, setting
from qbeast_core.spark.evaluation import is_scan

ROWS = "rows"
"""The name under which `aggregated_and_drawn` returns the number of rows."""

_SEED = 7
_POSITION_BITS = 33
_MANY_ROWS = 1 << 23
"""In Spark's estimate, which is usually too high: really about a million rows. With fewer rows, a
second job costs more than it saves."""
_SORTS_ALL = "spark.sql.execution.topKSortFallbackThreshold"
"""From this limit on, Spark sorts all rows to find the first ones, which evaluates them twice."""


def all_rows(rows: DataFrame, sample_rows: Callable[[int], int]) -> pa.Table | None:
    """All rows, if a sample would have all of them; None if there are or may be more.

    One task reads them. If they are more than expected, it stops.
    """
    expected = estimated_rows(rows)
    at_most = sample_rows(expected)
    if expected > at_most or estimated_bytes(rows) > ONE_TASK_BYTES:
        return None
    table = collect_arrow(rows.coalesce(1).limit(at_most + 1))
    return table if table.num_rows <= at_most else None


def aggregated_and_drawn(
    rows: DataFrame,
    source: DataFrame,
    aggregates: Sequence[Column],
    sample_rows: Callable[[int], int],
) -> tuple[dict[str, Any], pa.Table]:
    """The aggregates of the rows, with the number of rows under `ROWS`, and a uniform sample.

    Args:
        rows: the rows. They are read a second time for the sample if this costs less (ADR 18).
        source: the columns from which the rows are computed.
        sample_rows: gives the largest size of the sample from the counted or expected number of
            rows.

    Raises:
        SourceChanged: the first reading found rows, the second found none.
    """
    counting = [F.count(F.lit(1)).alias(ROWS), *aggregates]
    expected = estimated_rows(rows)
    if expected >= _MANY_ROWS and is_scan(source):
        return _scanned_twice(rows, counting, sample_rows)
    return _observed(rows, counting, sample_rows(expected))


def drawn_rows(rows: DataFrame, at_most: int) -> DataFrame:
    """A uniform sample of at most `at_most` rows."""
    known = max_rows(rows)
    if known is not None and known <= at_most:
        # Spark would drop the limit and sort all rows, which evaluates them twice.
        return rows
    # About `draw * before` of the earlier rows in the partition have a smaller random number. If
    # these are certainly enough for the sample, Spark need not copy the row to compare it.
    surely_enough = at_most + 8 * at_most**0.5 + 40
    before = F.monotonically_increasing_id().bitwiseAND((1 << _POSITION_BITS) - 1)
    drawn = rows.withColumns({"draw": F.rand(_SEED), "before": before})
    candidates = drawn.where(F.col("draw") * F.col("before") < surely_enough)
    return candidates.orderBy("draw").limit(at_most).drop("draw", "before")


def _observed(
    rows: DataFrame, aggregates: Sequence[Column], at_most: int
) -> tuple[dict[str, Any], pa.Table]:
    """Aggregates and samples in one evaluation.

    The rows with the smallest of independent random numbers are a uniform sample of fixed size,
    even if the number of rows is not known in advance.
    """
    observation = Observation()
    with _not_sorted(rows, at_most) as once:
        sample = collect_arrow(drawn_rows(once.observe(observation, *aggregates), at_most))
    return observation.get, sample


@contextmanager
def _not_sorted(rows: DataFrame, at_most: int) -> Iterator[DataFrame]:
    """The rows in a session in which Spark does not sort all of them to draw `at_most`."""
    spark = rows.sparkSession
    if at_most < setting(spark, _SORTS_ALL):
        yield rows
        return
    jvm = Jvm(spark)
    with session_with(spark, {_SORTS_ALL: str(at_most + 1)}) as copy:
        yield jvm.dataframe(jvm.in_session(copy, rows))


def _scanned_twice(
    rows: DataFrame, aggregates: Sequence[Column], sample_rows: Callable[[int], int]
) -> tuple[dict[str, Any], pa.Table]:
    """Aggregates and samples in two readings. Spark generates code for both of them, which it does
    not for observed rows."""
    counted = rows.agg(*aggregates).head()
    assert counted is not None
    found = counted.asDict()
    share = sample_rows(found[ROWS]) / max(1, found[ROWS])
    drawn = rows.where(F.rand(_SEED) < share) if share < 1 else rows
    sample = collect_arrow(drawn)
    if found[ROWS] and not sample.num_rows:
        raise SourceChanged(
            f"the source changed during the write: it had {found[ROWS]} rows at first, and none "
            "later. Nothing was committed; run the write again"
        )
    return found, sample
