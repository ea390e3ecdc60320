"""Rows into files: plan the tree, place every row, write, and read back what the files hold.

Both a write of new rows and an optimize of old ones end here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from qbeast_core import phases
from qbeast_core.delta.jvm import Jvm
from qbeast_core.delta.transaction import StagedFile, Transaction
from qbeast_core.errors import SourceChanged
from qbeast_core.model.block import Block, file_tags
from qbeast_core.model.cube import CubeId
from qbeast_core.model.murmur import spark_hash
from qbeast_core.model.revision import Revision
from qbeast_core.model.transformation import LinearTransformation
from qbeast_core.model.weight import MAX_WEIGHT
from qbeast_core.spark import columns
from qbeast_core.spark.catalyst import Catalyst, repartition_by_id
from qbeast_core.spark.location import WorkingColumns, coordinates, path_to
from qbeast_core.spark.statistics import RowSample
from qbeast_core.tree.anchors import missing_anchors
from qbeast_core.tree.assignment import Assignment
from qbeast_core.tree.build import estimate_weights
from qbeast_core.tree.otree import OTree
from qbeast_core.tree.path import PathLayout
from qbeast_core.tree.rollup import expected_rows, plan_files

# A coordinate may miss the edge of the space by rounding.
_ROUNDING = 1e-9
_KEY_SEEDS = 16


@dataclass(frozen=True)
class IndexedFiles:
    """Files written by one transaction, tagged and not committed yet."""

    staged: tuple[StagedFile, ...] = ()
    cubes: int = 0
    """How many cubes their rows belong to."""

    @property
    def bytes(self) -> int:
        return sum(staged.file.size_bytes for staged in self.staged)


NO_FILES = IndexedFiles()


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
    existing: OTree | None = None,
    *,
    grows: bool = True,
) -> TreePlan:
    """Plan where `rows` rows go, of which `sample` is a uniform sample.

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
    assignment = Assignment.of(layout, weights, file_of)
    return TreePlan(revision, weights, assignment, files=max(file_of.values()) + 1)


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
    phases.enter(phases.WRITING)
    placing = _Placing.of(Catalyst(Jvm(rows.sparkSession)), plan)
    staged = transaction.write_files(_placed(rows, plan, placing))
    with transaction.completed(staged) as completed:
        held = _read_back(transaction.read_staged(staged), plan, placing, staged) if staged else {}
    blocks = [block for in_file in held.values() for block in in_file]
    written = sum(block.element_count for block in blocks)
    if written != expected_rows:
        raise SourceChanged(
            f"{written} rows were written where {expected_rows} were counted before; the source "
            "changed in between or a task failed. Nothing was committed; run the write again"
        )
    if anchors := missing_anchors([*kept_blocks, *blocks], plan.weights):
        held[staged[0].name] += anchors
    revision_id, weight_key = plan.revision.revision_id, plan.revision.weight_key
    return IndexedFiles(
        tuple(
            file.tagged(file_tags(revision_id, held[file.name], weight_key))
            for file in completed.result()
        ),
        cubes=len({block.cube for block in blocks}),
    )


@dataclass(frozen=True, eq=False)
class _Placing:
    """The expressions that place a row of the table."""

    point: list[Column]
    words: list[Column]
    weight: Column
    target: columns.Target

    @staticmethod
    def of(catalyst: Catalyst, plan: TreePlan) -> _Placing:
        point = coordinates(catalyst, plan.revision)
        words = path_to(catalyst, point)
        weight = columns.weight(plan.revision.weight_columns)
        target = columns.target(catalyst, plan.assignment, words, weight)
        return _Placing(point, words, weight, target)


def _placed(rows: DataFrame, plan: TreePlan, placing: _Placing) -> DataFrame:
    """The rows, one Spark partition per file, sorted along the path inside it.

    File and path are expressions of the shuffle and of the sort, never columns: rows with columns
    more would have to be copied once again to lose them.
    """
    placed = repartition_by_id(rows, plan.files, placing.target.file.cast("int"))
    # Neighbours in space become neighbours in the file, so that readers skip inside of it. One
    # word is fine enough for that, and Spark sorts by a single bigint in linear time.
    return placed.sortWithinPartitions(placing.words[0])


def _read_back(
    rows: DataFrame, plan: TreePlan, placing: _Placing, staged: Sequence[StagedFile]
) -> dict[str, list[Block]]:
    """The blocks of each written file, counted from its rows. Raises SourceChanged."""
    revision, layout = plan.revision, plan.assignment.layout
    names = WorkingColumns(rows.columns, revision.dimensions)
    file_key, file_by_key = _file_key(F.col("_metadata.file_name"), [file.name for file in staged])
    cubes = (
        rows.select(
            file_key.alias(names.file),
            placing.weight.alias(names.weight),
            placing.target.depth.alias(names.depth),
            _outside(placing.point, revision).alias(names.outside),
            *(word.alias(name) for word, name in zip(placing.words, names.words, strict=True)),
        )
        .withColumns(
            {
                name: _prefix(F.col(name), F.col(names.depth), layout, position)
                for position, name in enumerate(names.words)
            }
        )
        .groupBy(names.file, names.depth, *names.words)
        .agg(
            F.min(names.weight).alias("min_weight"),
            F.count(F.lit(1)).alias("rows"),
            F.max(names.outside).alias("outside"),
        )
        .toArrow()
    )
    if True in cubes.column("outside").to_pylist():
        raise SourceChanged(
            "a row lies outside of the range that was measured before; the source changed in "
            "between. Nothing was committed; run the write again"
        )
    return _blocks_by_file(cubes, plan, names, file_by_key)


def _file_key(name: Column, known: Sequence[str]) -> tuple[Column, Mapping[Any, str]]:
    """What tells the known files apart, and the file of each key.

    An int, for Spark groups rows by long strings at several times the cost.
    """
    for seed in range(_KEY_SEEDS):
        by_key = {spark_hash([(seed, "int"), (file, "string")]): file for file in known}
        if len(by_key) == len(known):
            return F.hash(F.lit(seed), name), by_key
    return name, {file: file for file in known}


def _blocks_by_file(
    cubes: pa.Table, plan: TreePlan, names: WorkingColumns, file_by_key: Mapping[Any, str]
) -> dict[str, list[Block]]:
    words = np.array([cubes.column(name).to_numpy() for name in names.words], dtype=np.int64)
    depths = cubes.column(names.depth).to_numpy().astype(np.int32)
    distinct, cube_of_row = plan.assignment.layout.cubes_of(words, depths)
    files = [file_by_key[key] for key in cubes.column(names.file).to_pylist()]
    min_weights = cubes.column("min_weight").to_pylist()
    rows = cubes.column("rows").to_pylist()
    blocks: dict[str, list[Block]] = defaultdict(list)
    for position, number in enumerate(cube_of_row.tolist()):
        cube = distinct[number]
        block = Block(cube, min_weights[position], plan.max_weight(cube), rows[position])
        blocks[files[position]].append(block)
    for held in blocks.values():
        held.sort(key=lambda block: block.cube.preorder_key)
    return blocks


def _prefix(word: Column, depth: Column, layout: PathLayout, position: int) -> Column:
    """A path word with the digits below `depth` cleared."""
    per_word = layout.levels_per_word
    kept = F.greatest(F.least(depth - position * per_word, F.lit(per_word)), F.lit(0))
    cleared_bits = ((F.lit(per_word) - kept) * layout.dimensions).cast("int")
    # PySpark's shift functions take plain numbers only.
    down = F.call_function("shiftright", word, cleared_bits)
    return F.call_function("shiftleft", down, cleared_bits)


def _outside(point: Sequence[Column], revision: Revision) -> Column:
    """Whether a row's point lies outside of the revision's space; NaN and infinities do not."""
    infinity, farthest = F.lit(float("inf")), F.lit(0.5 + _ROUNDING)
    outside = F.lit(False)
    # Only a linear transformation has bounds that a row can miss.
    linear = [isinstance(t, LinearTransformation) for t in revision.transformations]
    for value in compress(point, linear):
        outside = outside | ((F.abs(value - 0.5) > farthest) & (F.abs(value) < infinity))
    return outside
