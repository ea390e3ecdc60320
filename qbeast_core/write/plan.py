"""Plan which cube and which file each row of a write goes to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from pyspark.sql.types import StructType

from qbeast_core import phases
from qbeast_core.model.cube import CubeId
from qbeast_core.model.revision import Revision
from qbeast_core.model.weight import MAX_WEIGHT
from qbeast_core.spark.statistics import RowSample
from qbeast_core.tree.assignment import Assignment
from qbeast_core.tree.build import estimate_weights
from qbeast_core.tree.curve import RowOrder
from qbeast_core.tree.cuts import FileCuts, cut_sample, even_sample, row_order
from qbeast_core.tree.fit import still_fits
from qbeast_core.tree.otree import OTree
from qbeast_core.tree.path import PathLayout
from qbeast_core.tree.weighed_sample import WeighedSample
from qbeast_core.write.sizing import smallest_band_rows


@dataclass(frozen=True)
class TreePlan:
    """The cube and the file of each row of a write."""

    revision: Revision
    weights: Mapping[CubeId, int]
    assignment: Assignment
    in_cubes: Mapping[CubeId, float]
    """The expected number of rows of each cube, for cubes that get rows."""
    cuts: FileCuts
    """The file of each row, and the order in the file."""
    without_dictionary: tuple[str, ...]
    """The columns whose values rarely repeat within a file."""

    @property
    def expected_rows(self) -> int:
        return round(sum(self.in_cubes.values()))

    def fits(self, in_cubes: Mapping[CubeId, float]) -> bool:
        """Whether the plan suits rows that are distributed over cubes in these numbers."""
        # Each band except the last can be one small file.
        large_files = self.cuts.files - self.cuts.bands + 1
        return still_fits(in_cubes, large_files, self.revision.desired_cube_size)

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
    existing: OTree | None,
    *,
    grows: bool,
    kept_ends: Collection[int],
) -> TreePlan:
    """Plan where rows go, from a uniform sample of them.

    Args:
        rows: the number of rows to write.
        schema: the table's.
        existing: the tree of the revision's other files, to which the new rows are added.
        grows: whether the rows are new to the tree. Rows that were taken out of it do not grow it
            but return to their cubes.
        kept_ends: the weights where files must end, as for `choose_band_ends`.
    """
    phases.enter(phases.PLANNING)
    layout = PathLayout(revision.dimensions)
    weighed = WeighedSample(sample.words(revision), sample.weights, rows)
    if existing is not None and not grows:
        weights = dict(existing.weights)
    else:
        weights = estimate_weights(layout, weighed, revision.desired_cube_size, existing)
    assignment = Assignment.of(layout, weights)
    cubes, cube_of_row = assignment.cubes_of(weighed.words, weighed.weights)
    counts = np.bincount(cube_of_row, minlength=len(cubes)) * weighed.scale
    order = row_order(layout, weighed, revision.desired_cube_size)
    return TreePlan(
        revision,
        weights,
        assignment,
        dict(zip(cubes, counts.tolist(), strict=True)),
        _cuts(revision, schema, order, weighed, kept_ends),
        sample.high_cardinality(revision.transformers),
    )


def plan_with_tree(
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
    layout, weights = PathLayout(revision.dimensions), tree.weights
    in_cubes = {cube: float(rows) for cube, rows in tree.element_count.items() if rows}
    order = RowOrder(layout, order_levels)
    cuts = _cuts(revision, schema, order, even_sample(layout, weights, in_cubes))
    assignment = Assignment.of(layout, weights)
    return TreePlan(revision, weights, assignment, in_cubes, cuts, without_dictionary)


def _cuts(
    revision: Revision,
    schema: StructType,
    order: RowOrder,
    sample: WeighedSample,
    kept_ends: Collection[int] = (),
) -> FileCuts:
    desired_rows = revision.desired_cube_size
    smallest_rows = smallest_band_rows(schema, desired_rows)
    return cut_sample(order, sample, desired_rows, smallest_rows, kept_ends)
