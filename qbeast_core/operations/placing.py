"""Which cube and which file each row of a write goes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from qbeast_core import phases
from qbeast_core.model.cube import CubeId
from qbeast_core.model.revision import Revision
from qbeast_core.model.weight import MAX_WEIGHT
from qbeast_core.operations.sizing import smallest_band_rows
from qbeast_core.spark import columns
from qbeast_core.spark.catalyst import Catalyst, repartition_by_id
from qbeast_core.spark.location import coordinates, path_to
from qbeast_core.spark.slices import row_slice
from qbeast_core.spark.statistics import RowSample
from qbeast_core.tree.assignment import Assignment
from qbeast_core.tree.bands import root_bands
from qbeast_core.tree.build import estimate_weights
from qbeast_core.tree.otree import OTree
from qbeast_core.tree.path import WORD_BITS, PathLayout
from qbeast_core.tree.rollup import expected_rows, plan_files

_SLICE_BITS = 6


@dataclass(frozen=True)
class TreePlan:
    """Which cube and file each row of a write goes to."""

    revision: Revision
    weights: Mapping[CubeId, int]
    assignment: Assignment
    files: int
    banded: bool
    """Whether the root lies in several files, by weight."""
    without_dictionary: tuple[str, ...]
    """The columns whose values hardly repeat within a file."""

    def max_weight(self, cube: CubeId) -> int:
        """The weight that a block of the cube is tagged with."""
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
    """Plan where `rows` rows of the schema go, of which `sample` is a uniform sample.

    `existing` is the tree of the revision's other files, which the new rows grow. Rows that were
    taken out of that tree do not grow it: without `grows` they go back to where they were.
    """
    phases.enter(phases.PLANNING)
    layout = PathLayout(revision.dimensions)
    words = layout.path_words(sample.coordinates(revision))
    size = revision.desired_cube_size
    if existing is not None and not grows:
        weights = dict(existing.weights)
    else:
        weights = estimate_weights(layout, words, sample.weights, rows, size, existing)
    scale = rows / len(sample.weights)
    in_cubes = expected_rows(layout, weights, words, sample.weights, scale)
    file_of = plan_files(in_cubes, size)
    files = max(file_of.values()) + 1
    bands = root_bands(
        weights, file_of, in_cubes.keys(), sample.weights, scale, smallest_band_rows(schema)
    )
    # The last band goes to the file that the root has anyway.
    file_of_band = [(end, files + number) for number, end in enumerate(bands)]
    assignment = Assignment.of(layout, weights, file_of, file_of_band)
    varied = sample.varied(revision.transformers)
    return TreePlan(revision, weights, assignment, files + len(bands), bool(bands), varied)


@dataclass(frozen=True, eq=False)
class Placing:
    """The expressions that place a row of the table."""

    point: list[Column]
    words: list[Column]
    weight: Column
    target: columns.Target

    @staticmethod
    def of(catalyst: Catalyst, plan: TreePlan) -> Placing:
        point = coordinates(catalyst, plan.revision)
        words = path_to(catalyst, point)
        weight = columns.weight(plan.revision.weight_columns)
        target = columns.target(catalyst, plan.assignment, words, weight)
        return Placing(point, words, weight, target)


def placed(rows: DataFrame, plan: TreePlan, placing: Placing, by_slice: bool) -> DataFrame:
    """The rows, one Spark partition per file, sorted along the path inside it.

    With `by_slice` the rows of a slice lie together, sorted along the path, so that a small sample
    reads the end of a file only.

    File and path are expressions of the shuffle and of the sort, never columns: rows with columns
    more would have to be copied once again to lose them.
    """
    placed = repartition_by_id(rows, plan.files, placing.target.file.cast("int"))
    # Neighbours in space become neighbours in the file, so that readers skip inside of it. One
    # word is fine enough for that, and Spark sorts by a single bigint in linear time.
    path = placing.words[0]
    if not by_slice:
        return placed.sortWithinPartitions(path)
    slices = row_slice(plan.revision.weight_columns).cast("bigint")
    return placed.sortWithinPartitions(
        F.shiftleft(slices, WORD_BITS - _SLICE_BITS).bitwiseOR(F.shiftright(path, _SLICE_BITS))
    )
