"""The first pass over the rows of a write, with a sample large enough to plan the tree."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from qbeast_core.jvm.catalyst import Catalyst
from qbeast_core.jvm.gateway import Jvm
from qbeast_core.model.transformer import Transformer
from qbeast_core.spark.statistics import InputStatistics, collect
from qbeast_core.write.sizing import planned_sample_size


def measure(
    rows: DataFrame,
    transformers: Sequence[Transformer],
    weight_columns: Sequence[str],
    cube_size: int | None,
) -> InputStatistics:
    """Count and sample the rows and find their bounds.

    Args:
        weight_columns: the columns whose hash is a row's weight.
        cube_size: in rows; None for the automatic one.
    """
    schema = rows.schema
    return collect(
        Catalyst(Jvm(rows.sparkSession)),
        rows,
        transformers,
        weight_columns,
        lambda about: planned_sample_size(about, cube_size, schema),
    )
