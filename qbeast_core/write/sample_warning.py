"""The warning that samples of a table say less than one would think."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from qbeast_core.spark.candidates import sample_candidates
from qbeast_core.spark.statistics import InputStatistics
from qbeast_core.tree.clusters import is_cluster_sample, rows_per_weight
from qbeast_core.tree.column_choice import most_distinct


def sample_warnings(
    rows: DataFrame, schema: StructType, statistics: InputStatistics, indexed: Sequence[str]
) -> tuple[str, ...]:
    """What samples suffer from that go by the indexed columns; it names a column that helps.

    The rows are read once more, in part, only if there is something to warn of.
    """
    alike = rows_per_weight(statistics.sample.weights, statistics.rows)
    if not is_cluster_sample(alike, statistics.rows):
        return ()
    best = most_distinct(sample_candidates(rows, schema))
    advice = (
        "no column by itself has many different values, so set sample_key='all'"
        if best is None
        else f"add a column with many different values to columns_to_index, such as {best.name!r}, "
        f"or set sample_key={best.name!r}"
    )
    return (
        f"a row has the same {', '.join(indexed)} as {alike - 1:,.0f} others on average, and such "
        "rows are in a sample together or not at all: a sample tells about as much as one of "
        f"{alike:,.0f} times fewer rows. For better samples, {advice}",
    )
