"""The warnings that samples of a table are less precise than they seem, or not what they seem."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from qbeast_core.spark.indexable_columns import sample_indexable_columns
from qbeast_core.spark.statistics import InputStatistics
from qbeast_core.tree.clusters import is_cluster_sample, rows_per_weight, sampled_share
from qbeast_core.tree.column_choice import most_distinct


def stored_sample_warnings(
    statistics: InputStatistics, weight_columns: Sequence[str]
) -> tuple[str, ...]:
    """Warn if the rows are themselves a sample by the columns that samples of them will use."""
    share = sampled_share(statistics.sample.weights, statistics.rows)
    if share == 1.0:
        return ()
    return (
        f"these rows are themselves a sample of about {100 * share:.2g} %, by the hash of "
        f"{', '.join(weight_columns)}. A smaller sample of this table has {1 / share:.2g} times "
        "as many rows as its fraction says, and a larger one has all rows. To sample the table "
        "evenly, set another sample_key",
    )


def cluster_warnings(
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
