"""Plan which cube and which file each row of a write goes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from qbeast_core import phases
from qbeast_core.jvm.catalyst import Catalyst, in_one_partition, repartition_by_id
from qbeast_core.model.cube import CubeId
from qbeast_core.model.revision import Revision
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT
from qbeast_core.spark import columns
from qbeast_core.spark.location import cells
from qbeast_core.spark.slices import row_slice
from qbeast_core.spark.statistics import RowSample
from qbeast_core.tree.assignment import Assignment
from qbeast_core.tree.bands import root_bands
from qbeast_core.tree.build import estimate_weights
from qbeast_core.tree.curve import levels_that_part
from qbeast_core.tree.fit import still_fits
from qbeast_core.tree.otree import OTree
from qbeast_core.tree.path import WORD_BITS, PathLayout
from qbeast_core.tree.rollup import expected_rows, plan_files
from qbeast_core.write.sizing import smallest_band_rows

_SLICE_BITS = 6
_EVEN_WEIGHTS = 1 << 20


@dataclass(frozen=True)
class TreePlan:
    """The cube and the file of each row of a write."""

    revision: Revision
    weights: Mapping[CubeId, int]
    assignment: Assignment
    in_cubes: Mapping[CubeId, float]
    """The expected number of rows of each cube, for cubes that get rows."""
    files: int
    bands: int
    """The number of files that hold a weight band of the root, besides the root's own file."""
    without_dictionary: tuple[str, ...]
    """The columns whose values rarely repeat within a file."""
    order_levels: int
    """The number of tree levels by which the rows of a file are sorted."""

    @property
    def expected_rows(self) -> int:
        return round(sum(self.in_cubes.values()))

    def fits(self, in_cubes: Mapping[CubeId, float]) -> bool:
        """Whether the plan suits rows that are distributed over cubes in these numbers."""
        return still_fits(in_cubes, self.files - self.bands, self.revision.desired_cube_size)

    def max_weight(self, cube: CubeId) -> int:
        """The maximum weight in the tag of the cube's blocks."""
        if cube.depth >= self.assignment.depth_limit:
            return MAX_WEIGHT
        return self.weights.get(cube, MAX_WEIGHT)


def plan_tree(
    revision: Revision,
    sample: RowSample,
    rows: int,
    schema: StructType,
    existing: OTree | None = None,
    *,
    grows: bool = True,
) -> TreePlan:
    """Plan where rows go, from a uniform sample of them.

    Args:
        rows: the number of rows to write.
        schema: the table's.
        existing: the tree of the revision's other files, which the new rows join.
        grows: whether the rows are new to the tree. Rows that were taken out of it do not grow it
            but return to their cubes.
    """
    phases.enter(phases.PLANNING)
    layout = PathLayout(revision.dimensions)
    words = sample.words(revision)
    if existing is not None and not grows:
        weights = dict(existing.weights)
    else:
        weights = estimate_weights(
            layout, words, sample.weights, rows, revision.desired_cube_size, existing
        )
    scale = rows / len(sample.weights)
    in_cubes = expected_rows(layout, weights, words, sample.weights, scale)
    high_cardinality = sample.high_cardinality(revision.transformers)
    levels = levels_that_part(layout, words, scale)
    return _planned(revision, schema, weights, in_cubes, sample.weights, high_cardinality, levels)


def plan_again(
    revision: Revision,
    tree: OTree,
    schema: StructType,
    without_dictionary: tuple[str, ...],
    order_levels: int,
) -> TreePlan:
    """Plan where rows go, with the tree of the rows that they replace.

    Args:
        tree: of rows with a similar distribution.
    """
    phases.enter(phases.PLANNING)
    in_cubes = {cube: float(rows) for cube, rows in tree.element_count.items() if rows}
    # Weights are hashes, so they are evenly distributed.
    weights = np.linspace(MIN_WEIGHT, MAX_WEIGHT, _EVEN_WEIGHTS).astype(np.int32)
    return _planned(
        revision, schema, tree.weights, in_cubes, weights, without_dictionary, order_levels
    )


def _planned(
    revision: Revision,
    schema: StructType,
    weights: Mapping[CubeId, int],
    in_cubes: Mapping[CubeId, float],
    sample_weights: NDArray[np.int32],
    without_dictionary: tuple[str, ...],
    order_levels: int,
) -> TreePlan:
    """The plan for cubes with these weights and numbers of rows."""
    file_of = plan_files(in_cubes, revision.desired_cube_size)
    files = max(file_of.values()) + 1
    scale = sum(in_cubes.values()) / len(sample_weights)
    bands = root_bands(
        weights, file_of, in_cubes.keys(), sample_weights, scale, smallest_band_rows(schema)
    )
    # The last band goes to the root's own file.
    file_of_band = [(end, files + number) for number, end in enumerate(bands)]
    layout = PathLayout(revision.dimensions)
    return TreePlan(
        revision,
        weights,
        Assignment.of(layout, weights, file_of, file_of_band),
        in_cubes,
        files + len(bands),
        len(bands),
        without_dictionary,
        order_levels,
    )


@dataclass(frozen=True, eq=False)
class RowLayout:
    """The Spark expressions that place a row in a cube and a file."""

    catalyst: Catalyst
    assignment: Assignment
    words: list[Column]
    """The words of the row's path, with as many levels as the tree."""
    weight: Column
    order: columns.Order
    """The row's position in its file."""

    @cached_property
    def target(self) -> columns.Target:
        """The row's cube and file. Few rows in one file need neither from Spark."""
        return columns.target(self.catalyst, self.assignment, self.words, self.weight)

    @staticmethod
    def of(catalyst: Catalyst, plan: TreePlan) -> RowLayout:
        layout = plan.assignment.layout
        cells_of_row = cells(catalyst, plan.revision)
        words = columns.path_words(catalyst, cells_of_row, layout, plan.assignment.levels)
        weight = columns.weight(plan.revision.weight_columns)
        order = columns.order(catalyst, cells_of_row, layout, plan.order_levels)
        return RowLayout(catalyst, plan.assignment, words, weight, order)


def placed(rows: DataFrame, plan: TreePlan, row_layout: RowLayout, by_slice: bool) -> DataFrame:
    """The rows in one Spark partition per file, each sorted along the space-filling curve.

    With `by_slice`, rows are sorted by slice first, so that a small sample reads only the end of a
    file.

    File and order are expressions of the shuffle and the sort rather than columns, because dropping
    extra columns would copy every row once more.
    """
    if plan.files == 1:
        in_files = in_one_partition(rows)
    else:
        in_files = repartition_by_id(rows, plan.files, row_layout.target.file.cast("int"))
    return in_order(in_files, plan.revision, row_layout.order, by_slice)


def in_order(
    partitions: DataFrame, revision: Revision, order: columns.Order, by_slice: bool
) -> DataFrame:
    """Sort the rows of each partition into the order of a file, as `placed` does."""
    # Neighbours in space become neighbours in the file, so readers can skip row groups and pages.
    # Spark sorts by a single bigint in linear time.
    if not by_slice:
        return partitions.sortWithinPartitions(order.place)
    slices = row_slice(revision.weight_columns).cast("bigint")
    too_many = max(0, order.bits + _SLICE_BITS - WORD_BITS)
    place = F.shiftright(order.place, too_many)
    return partitions.sortWithinPartitions(
        F.shiftleft(slices, order.bits - too_many).bitwiseOR(place)
    )
