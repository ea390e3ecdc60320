"""Rows into files: plan the tree, place every row, write, and read back what the files hold.

Both a write of new rows and an optimize of old ones end here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from qbeast_core.delta.jvm import Jvm
from qbeast_core.delta.transaction import StagedFile, Transaction
from qbeast_core.errors import SourceChanged
from qbeast_core.model.block import Block, file_tags
from qbeast_core.model.cube import CubeId
from qbeast_core.model.revision import Revision
from qbeast_core.model.weight import MAX_WEIGHT
from qbeast_core.spark import columns
from qbeast_core.spark.catalyst import Catalyst, repartition_by_id
from qbeast_core.spark.statistics import RowSample
from qbeast_core.tree.anchors import missing_anchors
from qbeast_core.tree.assignment import Assignment
from qbeast_core.tree.build import estimate_weights
from qbeast_core.tree.otree import OTree
from qbeast_core.tree.path import PathLayout
from qbeast_core.tree.rollup import expected_rows, plan_files

# A coordinate may miss the edge of the space by rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class IndexedFiles:
    """Files written by one transaction, tagged and not committed yet."""

    staged: tuple[StagedFile, ...] = ()
    cubes: int = 0
    """How many cubes their rows belong to."""

    @property
    def bytes(self) -> int:
        return sum(staged.file.size_bytes for staged in self.staged)


@dataclass(frozen=True)
class TreePlan:
    """Which cube and file each row of a write goes to."""

    revision: Revision
    weights: Mapping[CubeId, int]
    assignment: Assignment
    files: int

    def max_weight(self, cube: CubeId) -> int:
        """The weight that a block of the cube is tagged with."""
        if cube.depth >= self.assignment.depth_limit:
            return MAX_WEIGHT
        return self.weights.get(cube, MAX_WEIGHT)


def plan_tree(
    revision: Revision,
    sample: RowSample,
    rows: int,
    existing: OTree | None,
    *,
    keep_weights: bool = False,
) -> TreePlan:
    """Plan the tree for `rows` rows of which `sample` is a uniform sample.

    `keep_weights` leaves the weights of the existing tree as they are: rows that are in the tree
    already must not make it think that there are more of them.
    """
    layout = PathLayout(revision.dimensions)
    words = layout.path_words(sample.coordinates(revision))
    size = revision.desired_cube_size
    if keep_weights and existing is not None:
        weights: Mapping[CubeId, int] = existing.weights
    else:
        weights = estimate_weights(layout, words, sample.weights, rows, size, existing)
    scale = rows / max(1, len(sample.weights))
    in_cubes = expected_rows(layout, weights, words, sample.weights, scale)
    file_of = plan_files(in_cubes, size)
    assignment = Assignment.of(layout, weights, file_of)
    return TreePlan(revision, weights, assignment, files=max(file_of.values(), default=0) + 1)


def write_indexed(
    transaction: Transaction,
    rows: DataFrame,
    plan: TreePlan,
    *,
    expected_rows: int,
    kept_blocks: Sequence[Block] = (),
) -> IndexedFiles:
    """Write the rows as files of the plan's revision, tagged with what they really hold.

    Args:
        rows: in the table's schema; evaluated once more by this call.
        expected_rows: how many rows the plan was made for.
        kept_blocks: live blocks of the revision that the commit leaves alone.

    Raises:
        SourceChanged: other rows were written than the plan was made for. Nothing is committed.
    """
    catalyst = Catalyst(Jvm(rows.sparkSession))
    staged = transaction.write_files(_placed(catalyst, rows, plan))
    held = _read_back(catalyst, transaction.read_staged(staged), plan) if staged else {}
    blocks = [block for in_file in held.values() for block in in_file]
    written = sum(block.element_count for block in blocks)
    if written != expected_rows:
        raise SourceChanged(
            f"{written} rows were written where {expected_rows} were counted before; the source "
            "changed in between or a task failed. Nothing was committed; run the write again"
        )
    if anchors := missing_anchors([*kept_blocks, *blocks], plan.weights):
        held[staged[0].name] += anchors
    revision_id = plan.revision.revision_id
    return IndexedFiles(
        tuple(file.tagged(file_tags(revision_id, held[file.name])) for file in staged),
        cubes=len({block.cube for block in blocks}),
    )


def _placed(catalyst: Catalyst, rows: DataFrame, plan: TreePlan) -> DataFrame:
    """The rows, one Spark partition per file, sorted along the path inside it."""
    names = _Names(rows.columns)
    located = _located(catalyst, rows, plan, names)
    words = [F.col(name) for name in names.words(plan)]
    target = columns.target(catalyst, plan.assignment, words, F.col(names.weight))
    placed = repartition_by_id(
        located.withColumn(names.file, target.file.cast("int")).drop(names.weight),
        plan.files,
        F.col(names.file),
    )
    # Neighbours in space become neighbours in the file, so that readers skip inside of it.
    ordered = placed.sortWithinPartitions(*words)
    return ordered.select(*(columns.column(name) for name in rows.columns))


def _located(
    catalyst: Catalyst, rows: DataFrame, plan: TreePlan, names: _Names, *extra: Column
) -> DataFrame:
    """The rows with their path words and weight."""
    layout, revision = plan.assignment.layout, plan.revision
    coordinates = [
        columns.coordinate(catalyst, columns.column(transformer.column), transformation)
        for transformer, transformation in zip(
            revision.transformers, revision.transformations, strict=True
        )
    ]
    own = [columns.column(name) for name in rows.columns]
    cells = [names.reserved(f"cell{i}") for i in range(revision.dimensions)]
    # A projection of their own: Spark computes a cell once, however often the path refers to it.
    with_cells = rows.select(
        *own,
        *extra,
        columns.weight(revision.columns).alias(names.weight),
        *(
            columns.cell(coordinate, layout).alias(name)
            for name, coordinate in zip(cells, coordinates, strict=True)
        ),
    )
    words = columns.path_words(catalyst, [F.col(name) for name in cells], layout)
    return with_cells.select(
        "*", *(word.alias(name) for name, word in zip(names.words(plan), words, strict=True))
    ).drop(*cells)


def _read_back(catalyst: Catalyst, rows: DataFrame, plan: TreePlan) -> dict[str, list[Block]]:
    """The blocks of each written file, counted from its rows. Raises SourceChanged."""
    revision, layout = plan.revision, plan.assignment.layout
    indexed = rows.select(
        *(columns.column(name) for name in revision.columns),
        F.col("_metadata.file_name").alias("file"),
        _outside(catalyst, revision).alias("outside"),
    )
    names = _Names(indexed.columns)
    located = _located(catalyst, indexed, plan, names)
    words = [F.col(name) for name in names.words(plan)]
    target = columns.target(catalyst, plan.assignment, words, F.col(names.weight))
    depth = F.col("depth")
    cubes = (
        located.withColumn("depth", target.depth)
        .withColumns(
            {
                name: _prefix(F.col(name), depth, layout, position)
                for position, name in enumerate(names.words(plan))
            }
        )
        .groupBy("file", "depth", *names.words(plan))
        .agg(
            F.min(names.weight).alias("min_weight"),
            F.count(F.lit(1)).alias("rows"),
            F.max("outside").alias("outside"),
        )
        .toArrow()
    )
    if True in cubes.column("outside").to_pylist():
        raise SourceChanged(
            "a row lies outside of the range that was measured before; the source changed in "
            "between. Nothing was committed; run the write again"
        )
    return _blocks_by_file(cubes, plan, names)


def _blocks_by_file(cubes: Any, plan: TreePlan, names: _Names) -> dict[str, list[Block]]:
    words = np.array([cubes.column(name).to_numpy() for name in names.words(plan)], dtype=np.int64)
    depths = cubes.column("depth").to_pylist()
    blocks: dict[str, list[Block]] = defaultdict(list)
    for position, (file, depth, min_weight, rows) in enumerate(
        zip(
            cubes.column("file").to_pylist(),
            depths,
            cubes.column("min_weight").to_pylist(),
            cubes.column("rows").to_pylist(),
            strict=True,
        )
    ):
        cube = plan.assignment.layout.cube_of(words[:, position], depth)
        blocks[file].append(Block(cube, min_weight, plan.max_weight(cube), rows))
    for held in blocks.values():
        held.sort(key=lambda block: block.cube)
    return blocks


def _prefix(word: Column, depth: Column, layout: PathLayout, position: int) -> Column:
    """A path word with the digits below `depth` cleared."""
    per_word = layout.levels_per_word
    kept = F.greatest(F.least(depth - position * per_word, F.lit(per_word)), F.lit(0))
    cleared_bits = ((F.lit(per_word) - kept) * layout.dimensions).cast("int")
    # PySpark's shift functions take plain numbers only.
    down = F.call_function("shiftright", word, cleared_bits)
    return F.call_function("shiftleft", down, cleared_bits)


def _outside(catalyst: Catalyst, revision: Revision) -> Column:
    """Whether a row's point lies outside of the revision's space; NaN and infinities do not."""
    outside = F.lit(False)
    for transformer, transformation in zip(
        revision.transformers, revision.transformations, strict=True
    ):
        value = columns.coordinate(catalyst, columns.column(transformer.column), transformation)
        infinity = F.lit(float("inf"))
        outside = outside | ((value < -_ROUNDING) & (value > -infinity))
        outside = outside | ((value > 1.0 + _ROUNDING) & (value < infinity))
    return outside


class _Names:
    """Names for working columns that no column of the data has."""

    def __init__(self, taken: Sequence[str]) -> None:
        self._prefix = "_qbeast_"
        while any(name.lower().startswith(self._prefix) for name in taken):
            self._prefix = "_" + self._prefix
        self.weight = self.reserved("weight")
        self.file = self.reserved("file")

    def reserved(self, name: str) -> str:
        return self._prefix + name

    def words(self, plan: TreePlan) -> list[str]:
        return [self.reserved(f"path{i}") for i in range(plan.assignment.layout.words)]
