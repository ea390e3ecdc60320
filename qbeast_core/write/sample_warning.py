"""The warning that samples of a table are less precise than their size suggests."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from qbeast_core.spark.indexable_columns import sample_indexable_columns
from qbeast_core.spark.statistics import InputStatistics
from qbeast_core.tree.clusters import is_cluster_sample, rows_per_weight
from qbeast_core.tree.column_choice import most_distinct


def sample_warnings(
    rows: DataFrame, schema: StructType, statistics: InputStatistics, indexed: Sequence[str]
) -> tuple[str, ...]:
    """Warn if many rows share their values of the indexed columns, and name a column that helps.

    Reads part of the rows once more, but only if there is a warning.
    """
    alike = rows_per_weight(statistics.sample.weights, statistics.rows)
    if not is_cluster_sample(alike, statistics.rows):
        return ()
    best = most_distinct(sample_indexable_columns(rows, schema))
    advice = (
        "set sample_key='all', because no single column has many distinct values"
        if best is None
        else f"add a column with many distinct values to columns_to_index, such as {best.name!r}, "
        f"or set sample_key={best.name!r}"
    )
    return (
        f"on average {alike:,.0f} rows share {', '.join(indexed)} and are sampled together, so "
        f"samples are only as precise as samples {alike:,.0f} times smaller. For better samples, "
        f"{advice}",
    )
