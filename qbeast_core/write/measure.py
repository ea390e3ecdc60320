"""The first pass over the rows of a write, with a sample that is as large as its tree needs."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from qbeast_core.jvm.catalyst import Catalyst
from qbeast_core.jvm.gateway import Jvm
from qbeast_core.model.transformer import Transformer
from qbeast_core.spark.statistics import InputStatistics, collect
from qbeast_core.write.sizing import sample_rows


def measure(
    rows: DataFrame,
    transformers: Sequence[Transformer],
    weight_columns: Sequence[str],
    cube_size: int | None,
) -> InputStatistics:
    """Count, bound and sample the rows; without a cube size, the automatic one is expected."""
    schema = rows.schema
    return collect(
        Catalyst(Jvm(rows.sparkSession)),
        rows,
        transformers,
        weight_columns,
        lambda about: sample_rows(about, cube_size, schema),
    )
