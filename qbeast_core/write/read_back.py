"""Count the contents of newly written files from their rows instead of trusting the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from qbeast_core.errors import SourceChanged
from qbeast_core.model.block import Block
from qbeast_core.model.datatypes import FLOATING
from qbeast_core.model.murmur import spark_hash
from qbeast_core.model.revision import Revision
from qbeast_core.model.transformation import LinearTransformation
from qbeast_core.model.weight import MAX_WEIGHT
from qbeast_core.spark import columns
from qbeast_core.spark.location import WorkingColumns
from qbeast_core.spark.statistics import RowSample
from qbeast_core.tree.path import PathLayout
from qbeast_core.write.plan import RowLayout, TreePlan

_KEY_SEEDS = 16


class RowsOutside(SourceChanged):
    """Written rows lie outside the revision's space, although the plan excludes them."""


@dataclass
class FileContents:
    """The blocks of one file."""

    blocks: list[Block] = field(default_factory=list)
    """In pre-order of their cubes."""
    highest_weight: int | None = None
    """The highest weight of the file's rows, if it holds a band of the root and nothing else."""


@dataclass(frozen=True, eq=False)
class Counting:
    """The Spark expressions that count the contents of files; they only need the plan."""

    plan: TreePlan
    names: WorkingColumns
    of_row: Sequence[Column]
    of_cube: Mapping[str, Column]
    """The path words of a row's cube, computed from the columns of `of_row`."""
    of_rows: Sequence[Column]

    @staticmethod
    def of(plan: TreePlan, row_layout: RowLayout, columns: Sequence[str]) -> Counting:
        """The expressions for rows with these columns, which `row_layout` places in the write."""
        layout = plan.assignment.layout
        names = WorkingColumns(columns, plan.revision.dimensions)
        return Counting(
            plan,
            names,
            of_row=[
                row_layout.weight.alias(names.weight),
                row_layout.target.depth.alias(names.depth),
                _outside(plan.revision).alias(names.outside),
                *(
                    word.alias(name)
                    for word, name in zip(row_layout.words, names.words, strict=True)
                ),
            ],
            of_cube={
                name: _prefix(F.col(name), F.col(names.depth), layout, position)
                for position, name in enumerate(names.words)
            },
            of_rows=[
                F.min(names.weight).alias("min_weight"),
                F.max(names.weight).alias("max_weight"),
                F.count(F.lit(1)).alias("rows"),
                F.max(names.outside).alias("outside"),
            ],
        )


def contents_of(
    counting: Counting, rows: DataFrame, file_bytes: Mapping[str, int]
) -> dict[str, FileContents]:
    """The contents of each file, by its name.

    Args:
        rows: read from these files.
        file_bytes: the size of each file in bytes, by its name.

    Raises:
        RowsOutside: a row lies outside the revision's space.
    """
    plan, names = counting.plan, counting.names
    file_key, file_by_key = _file_key(columns.file_metadata(rows), file_bytes)
    placed = rows.select(file_key.alias(names.file), *counting.of_row).withColumns(
        dict(counting.of_cube)
    )
    if len(file_bytes) == 1:
        # One task reads the file, so it can count without a shuffle.
        placed = placed.coalesce(1)
    by_cube = placed.groupBy(names.file, names.depth, *names.words)
    cubes = by_cube.agg(*counting.of_rows).toArrow()
    if True in cubes.column("outside").to_pylist():
        raise RowsOutside(
            "a row lies outside the range that was measured before; the source changed in "
            "between. Nothing was committed; run the write again"
        )
    files = [file_by_key[key] for key in cubes.column(names.file).to_pylist()]
    contents = {name: FileContents() for name in file_bytes}
    highest_weights = cubes.column("max_weight").to_pylist()
    blocks = _blocks(cubes, plan, names)
    for file, block, highest_weight in zip(files, blocks, highest_weights, strict=True):
        contents[file].blocks.append(block)
        if plan.bands and not block.cube.depth:
            contents[file].highest_weight = highest_weight
    for held in contents.values():
        held.blocks.sort(key=lambda block: block.cube.preorder_key)
        if len(held.blocks) > 1:
            held.highest_weight = None
    return contents


def contents_of_all(plan: TreePlan, sample: RowSample) -> FileContents:
    """The contents of a file if the sample has all of its rows."""
    words = sample.words(plan.revision)
    cubes, cube_of_row = plan.assignment.cubes_of(words, sample.weights)
    rows = np.bincount(cube_of_row, minlength=len(cubes))
    lowest = np.full(len(cubes), MAX_WEIGHT)
    np.minimum.at(lowest, cube_of_row, sample.weights)
    blocks = [
        Block(cube, min_weight, plan.max_weight(cube), count)
        for cube, min_weight, count in zip(cubes, lowest.tolist(), rows.tolist(), strict=True)
    ]
    return FileContents(sorted(blocks, key=lambda block: block.cube.preorder_key))


def _file_key(file: Column, file_bytes: Mapping[str, int]) -> tuple[Column, Mapping[Any, str]]:
    """An expression that identifies a row's file, and the file name of each of its values.

    A number, because grouping by long strings costs Spark several times as much: the file's size,
    which Spark knows anyway, or a hash of the name if two files have the same size.

    Args:
        file: Spark's file metadata of the row.
    """
    by_size = {size: name for name, size in file_bytes.items()}
    if len(by_size) == len(file_bytes):
        return file.getField("file_size"), by_size
    name = file.getField("file_name")
    for seed in range(_KEY_SEEDS):
        by_key = {spark_hash([(seed, "int"), (each, "string")]): each for each in file_bytes}
        if len(by_key) == len(file_bytes):
            return F.hash(F.lit(seed), name), by_key
    return name, {each: each for each in file_bytes}


def _blocks(cubes: pa.Table, plan: TreePlan, names: WorkingColumns) -> list[Block]:
    """The block of each group of rows."""
    words = np.array([cubes.column(name).to_numpy() for name in names.words], dtype=np.int64)
    depths = cubes.column(names.depth).to_numpy().astype(np.int32)
    distinct, cube_of_row = plan.assignment.layout.cubes_of(words, depths)
    of_row = [distinct[number] for number in cube_of_row.tolist()]
    min_weights, rows = (cubes.column(name).to_pylist() for name in ("min_weight", "rows"))
    return [
        Block(cube, min_weight, plan.max_weight(cube), count)
        for cube, min_weight, count in zip(of_row, min_weights, rows, strict=True)
    ]


def _prefix(word: Column, depth: Column, layout: PathLayout, position: int) -> Column:
    """A path word with the digits below `depth` cleared."""
    per_word = layout.levels_per_word
    kept = F.greatest(F.least(depth - position * per_word, F.lit(per_word)), F.lit(0))
    cleared_bits = ((F.lit(per_word) - kept) * layout.dimensions).cast("int")
    # PySpark's shift functions only accept plain numbers, not columns.
    down = F.call_function("shiftright", word, cleared_bits)
    return F.call_function("shiftleft", down, cleared_bits)


def _outside(revision: Revision) -> Column:
    """Whether a row has a value beyond a bound of the revision; NaN and infinities count as inside.

    Compares values rather than coordinates, because a coordinate just beyond a bound can be rounded
    to the edge, and filters beyond a bound prune every file.
    """
    outside = F.lit(False)
    for transformer, transformation in zip(
        revision.transformers, revision.transformations, strict=True
    ):
        # Only a linear transformation has bounds that a row can miss.
        if isinstance(transformation, LinearTransformation):
            kind = transformation.data_type
            number = columns.ordinal(columns.column(transformer.column), kind)
            bounds = (F.lit(transformation.minimum), F.lit(transformation.maximum))
            beyond = (number < bounds[0]) | (number > bounds[1])
            if kind in FLOATING:
                beyond = beyond & (F.abs(number) < F.lit(float("inf")))
            outside = outside | F.coalesce(beyond, F.lit(False))
    return outside
