"""Aggregates of a query's rows, and a bounded uniform sample of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from qbeast_core.errors import SourceChanged
from qbeast_core.jvm.catalyst import about_rows, max_rows
from qbeast_core.spark.evaluation import is_scan

ROWS = "rows"
"""Under this name `aggregated_and_drawn` finds how many rows there are."""

_SEED = 7
_POSITION_BITS = 33
_MANY_ROWS = 1 << 23
"""As Spark expects them, which is rather too many: about a million. A second job for fewer takes
longer than what it spares."""


def aggregated_and_drawn(
    rows: DataFrame,
    source: DataFrame,
    aggregates: Sequence[Column],
    sample_rows: Callable[[int], int],
) -> tuple[dict[str, Any], pa.Table]:
    """What the aggregates and `ROWS` say of the rows, and a uniform sample of them.

    Args:
        rows: they are read again for the sample where that costs less (ADR 18).
        source: the columns that they are computed of.
        sample_rows: how many of them the sample may have, by how many there are, or are expected.

    Raises:
        SourceChanged: there were rows, and are none any more.
    """
    counting = [F.count(F.lit(1)).alias(ROWS), *aggregates]
    expected = about_rows(rows)
    if expected >= _MANY_ROWS and is_scan(source):
        return _scanned_twice(rows, counting, sample_rows)
    return _observed(rows, counting, sample_rows(expected))


def drawn_rows(rows: DataFrame, at_most: int) -> DataFrame:
    """Not more than so many of the rows, each as likely as any other."""
    known = max_rows(rows)
    if known is not None and known <= at_most:
        # Spark would drop the limit, sort everything, and evaluate the rows twice for that.
        return rows
    # Of the rows before it in its partition, `draw * before` have a smaller number. Where these are
    # surely enough, Spark need not copy the row to compare it.
    surely_enough = at_most + 8 * at_most**0.5 + 40
    before = F.monotonically_increasing_id().bitwiseAND((1 << _POSITION_BITS) - 1)
    drawn = rows.withColumns({"draw": F.rand(_SEED), "before": before})
    candidates = drawn.where(F.col("draw") * F.col("before") < surely_enough)
    return candidates.orderBy("draw").limit(at_most).drop("draw", "before")


def _observed(
    rows: DataFrame, aggregates: Sequence[Column], at_most: int
) -> tuple[dict[str, Any], pa.Table]:
    """By one evaluation.

    The rows with the smallest of independent random numbers are a uniform sample of a known size
    without knowing the number of rows first.
    """
    observation = Observation()
    sample = drawn_rows(rows.observe(observation, *aggregates), at_most).toArrow()
    return observation.get, sample


def _scanned_twice(
    rows: DataFrame, aggregates: Sequence[Column], sample_rows: Callable[[int], int]
) -> tuple[dict[str, Any], pa.Table]:
    """By two readings, each in code that Spark generates, which observing rows is not."""
    counted = rows.agg(*aggregates).head()
    assert counted is not None
    found = counted.asDict()
    share = sample_rows(found[ROWS]) / max(1, found[ROWS])
    drawn = rows.where(F.rand(_SEED) < share) if share < 1 else rows
    sample = drawn.toArrow()
    if found[ROWS] and not sample.num_rows:
        raise SourceChanged(
            f"no row is left of the {found[ROWS]} that were counted before; the source changed in "
            "between. Nothing was committed; run the write again"
        )
    return found, sample
