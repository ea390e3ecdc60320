"""What files hold that were just written: counted from their rows, not believed."""

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
    """Rows lie outside of the revision's space, whose files say that there are none."""


@dataclass
class FileContents:
    """What one file holds."""

    blocks: list[Block] = field(default_factory=list)
    """In pre-order of their cubes."""
    highest_weight: int | None = None
    """Of its rows, in a file with a band of the root and nothing else."""


@dataclass(frozen=True, eq=False)
class Counting:
    """The expressions that count what files hold; they need the plan of the files only."""

    plan: TreePlan
    names: WorkingColumns
    of_row: Sequence[Column]
    of_cube: Mapping[str, Column]
    """The path words of a row's cube, from what `of_row` says."""
    of_rows: Sequence[Column]

    @staticmethod
    def of(plan: TreePlan, row_layout: RowLayout, columns: Sequence[str]) -> Counting:
        """`row_layout` places rows of those columns when they are written."""
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
    """What each of the files holds, by its name.

    Args:
        rows: as read from those files.
        file_bytes: the size of each file, by its name.

    Raises:
        RowsOutside: a row lies outside of the revision's space.
    """
    plan, names = counting.plan, counting.names
    file_key, file_by_key = _file_key(columns.file_metadata(rows), file_bytes)
    placed = rows.select(file_key.alias(names.file), *counting.of_row).withColumns(
        dict(counting.of_cube)
    )
    if len(file_bytes) == 1:
        # One task reads it, which can count without a shuffle.
        placed = placed.coalesce(1)
    by_cube = placed.groupBy(names.file, names.depth, *names.words)
    cubes = by_cube.agg(*counting.of_rows).toArrow()
    if True in cubes.column("outside").to_pylist():
        raise RowsOutside(
            "a row lies outside of the range that was measured before; the source changed in "
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
    """What a file holds whose rows, all of them, are the sample."""
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
    """What tells the files apart, and the file of each key; `file` is what Spark tells of them.

    A number, for Spark groups rows by long strings at several times the cost: the file's size,
    which it knows anyway, or a hash of the name where files are of one size.
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
    # PySpark's shift functions take plain numbers only.
    down = F.call_function("shiftright", word, cleared_bits)
    return F.call_function("shiftleft", down, cleared_bits)


def _outside(revision: Revision) -> Column:
    """Whether a row has a value beyond a bound of the revision; NaN and infinities are within.

    By the values, as the bounds are measured: no file is read for a filter beyond a bound, and the
    point of a row just beyond it may be rounded to the edge.
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
