"""Rows with their place in a revision's space: the path to their point, and their weight."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame

from qbeast_core.model.revision import Revision
from qbeast_core.spark import columns
from qbeast_core.spark.catalyst import Catalyst
from qbeast_core.tree.path import PathLayout


class WorkingColumns:
    """Names for the columns that are added on the way, which no column of the data has."""

    def __init__(self, taken: Sequence[str], dimensions: int) -> None:
        prefix = "_qbeast_"
        while any(name.lower().startswith(prefix) for name in taken):
            prefix = "_" + prefix
        self.weight = prefix + "weight"
        self.depth = prefix + "depth"
        self.file = prefix + "file"
        self.row = prefix + "row"
        self.outside = prefix + "outside"
        self.words = [f"{prefix}path{i}" for i in range(PathLayout(dimensions).words)]


def coordinates(catalyst: Catalyst, revision: Revision) -> list[Column]:
    """The coordinates of a row, one column for each dimension."""
    return [
        columns.coordinate(catalyst, columns.column(transformer.column), transformation)
        for transformer, transformation in zip(
            revision.transformers, revision.transformations, strict=True
        )
    ]


def path_to(catalyst: Catalyst, point: Sequence[Column]) -> list[Column]:
    """The words of the path to a row's point, one bigint column each.

    A word names the cell of each dimension many times; Spark computes it once for a row.
    """
    layout = PathLayout(len(point))
    return columns.path_words(catalyst, [columns.cell(place, layout) for place in point], layout)


def located(
    catalyst: Catalyst, rows: DataFrame, revision: Revision, names: WorkingColumns
) -> DataFrame:
    """The rows with `names.weight` (int) and `names.words` (bigint each) added."""
    words = path_to(catalyst, coordinates(catalyst, revision))
    return rows.withColumns(
        {
            names.weight: columns.weight(revision.weight_columns),
            **dict(zip(names.words, words, strict=True)),
        }
    )
