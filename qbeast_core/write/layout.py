"""The Spark expressions that put each row of a write into its cube, file and place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from qbeast_core.jvm.catalyst import Catalyst, in_one_partition, repartition_by_id
from qbeast_core.model.revision import Revision
from qbeast_core.spark import columns
from qbeast_core.spark.paths import cells
from qbeast_core.spark.slices import row_slice
from qbeast_core.tree.assignment import Assignment
from qbeast_core.tree.curve import RowOrder
from qbeast_core.tree.path import WORD_BITS
from qbeast_core.write.plan import TreePlan

_SLICE_BITS = 6


@dataclass(frozen=True, eq=False)
class RowLayout:
    """The Spark expressions that place a row in a cube and a file."""

    catalyst: Catalyst
    assignment: Assignment
    cells: list[Column]
    weight: Column
    place: Column
    """The row's place in the order of its file."""

    @cached_property
    def words(self) -> list[Column]:
        """The words of the row's path, with as many levels as the tree."""
        layout, levels = self.assignment.layout, self.assignment.levels
        return columns.path_words(self.catalyst, self.cells, layout, levels)

    @cached_property
    def depth(self) -> Column:
        """The depth of the row's cube. The driver finds the cubes of few rows itself."""
        return columns.depth(self.catalyst, self.assignment, self.words, self.weight)

    @staticmethod
    def of(catalyst: Catalyst, plan: TreePlan) -> RowLayout:
        cells_of_row = cells(catalyst, plan.revision)
        weight = columns.weight(plan.revision.weight_columns)
        place = columns.place(catalyst, cells_of_row, plan.cuts.order)
        return RowLayout(catalyst, plan.assignment, cells_of_row, weight, place)


def placed(rows: DataFrame, plan: TreePlan, row_layout: RowLayout, by_slice: bool) -> DataFrame:
    """The rows in one Spark partition per file, each sorted along the space-filling curve.

    With `by_slice`, rows are sorted by slice first, so that a sample that ends within a file reads
    only the end of it.

    File and order are expressions of the shuffle and the sort rather than columns, because dropping
    extra columns would copy every row once more.
    """
    cuts = plan.cuts
    if cuts.files == 1:
        in_files = in_one_partition(rows)
    else:
        file = columns.file(row_layout.catalyst, cuts, row_layout.place, row_layout.weight)
        in_files = repartition_by_id(rows, cuts.files, file)
    return in_order(in_files, plan.revision, cuts.order, row_layout.place, by_slice)


def in_order(
    partitions: DataFrame, revision: Revision, order: RowOrder, place: Column, by_slice: bool
) -> DataFrame:
    """Sort the rows of each partition into the order of a file, as `placed` does.

    Args:
        place: the row's place in `order`.
    """
    # Neighbours in space become neighbours in the file, so readers can skip row groups and pages.
    # Spark sorts by a single bigint in linear time.
    if not by_slice:
        return partitions.sortWithinPartitions(place)
    slices = row_slice(revision.weight_columns).cast("bigint")
    too_many = max(0, order.bits + _SLICE_BITS - WORD_BITS)
    return partitions.sortWithinPartitions(
        F.shiftleft(slices, order.bits - too_many).bitwiseOR(F.shiftright(place, too_many))
    )
