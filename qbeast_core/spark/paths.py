"""The paths of rows to their points in a revision's space, and their weights."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame

from qbeast_core.jvm.catalyst import Catalyst
from qbeast_core.model.revision import Revision
from qbeast_core.spark import columns
from qbeast_core.spark.working_columns import WorkingColumns
from qbeast_core.tree.path import PathLayout


def cells(catalyst: Catalyst, revision: Revision) -> list[Column]:
    """The cells of a row, one column per dimension."""
    layout = PathLayout(revision.dimensions)
    return [
        columns.cell(catalyst, columns.column(transformer.column), transformation, layout)
        for transformer, transformation in zip(
            revision.transformers, revision.transformations, strict=True
        )
    ]


def located(
    catalyst: Catalyst, rows: DataFrame, revision: Revision, names: WorkingColumns
) -> DataFrame:
    """The rows with `names.weight` (int) and `names.words` (bigint each) added."""
    layout = PathLayout(revision.dimensions)
    words = columns.path_words(catalyst, cells(catalyst, revision), layout, layout.max_depth)
    return rows.withColumns(
        {
            names.weight: columns.weight(revision.weight_columns),
            **dict(zip(names.words, words, strict=True)),
        }
    )
