"""What files hold that were just written: counted from their rows, not believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType

from qbeast_core.errors import SourceChanged
from qbeast_core.model.block import Block
from qbeast_core.model.murmur import spark_hash
from qbeast_core.model.revision import Revision
from qbeast_core.model.transformation import LinearTransformation
from qbeast_core.operations.placing import Placing, TreePlan
from qbeast_core.spark import columns
from qbeast_core.spark.catalyst import Catalyst
from qbeast_core.spark.location import WorkingColumns
from qbeast_core.tree.path import PathLayout

# A coordinate may miss the edge of the space by rounding.
_ROUNDING = 1e-9
_KEY_SEEDS = 16


@dataclass
class FileContents:
    """What one file holds."""

    blocks: list[Block] = field(default_factory=list)
    """In pre-order of their cubes."""
    highest_weight: int | None = None
    """Of its rows, in a file with a band of the root and nothing else."""
    extremes: dict[str, tuple[Decimal, Decimal]] = field(default_factory=dict)
    """The smallest and the largest value of measured columns that have any."""

    def stretch(self, column: str, lowest: Decimal, highest: Decimal) -> None:
        """Take in the extremes of more of the file's rows."""
        known = self.extremes.get(column, (lowest, highest))
        self.extremes[column] = (min(known[0], lowest), max(known[1], highest))


def contents_of(
    catalyst: Catalyst,
    rows: DataFrame,
    plan: TreePlan,
    placing: Placing,
    file_names: Sequence[str],
    measured: Mapping[str, int],
) -> dict[str, FileContents]:
    """What each of the files holds, by its name.

    Args:
        rows: of those files, with their hidden column `_metadata`.
        placing: the expressions that placed the rows when they were written.
        measured: the scale of each column whose extremes are wanted: decimals of at most 18 digits,
            or whole numbers.

    Raises:
        SourceChanged: a row lies outside of the revision's space.
    """
    revision, layout = plan.revision, plan.assignment.layout
    names = WorkingColumns(rows.columns, revision.dimensions)
    file_key, file_by_key = _file_key(F.col("_metadata.file_name"), file_names)
    numbers = [_whole_number(catalyst, rows, name) for name in measured]
    placed = rows.select(
        file_key.alias(names.file),
        placing.weight.alias(names.weight),
        placing.target.depth.alias(names.depth),
        _outside(placing.point, revision).alias(names.outside),
        *(word.alias(name) for word, name in zip(placing.words, names.words, strict=True)),
        *(number.alias(f"number{i}") for i, number in enumerate(numbers)),
    ).withColumns(
        {
            name: _prefix(F.col(name), F.col(names.depth), layout, position)
            for position, name in enumerate(names.words)
        }
    )
    if len(file_names) == 1:
        # One task reads it, which can count without a shuffle.
        placed = placed.coalesce(1)
    cubes = (
        placed.groupBy(names.file, names.depth, *names.words)
        .agg(
            F.min(names.weight).alias("min_weight"),
            F.max(names.weight).alias("max_weight"),
            F.count(F.lit(1)).alias("rows"),
            F.max(names.outside).alias("outside"),
            *(F.min(f"number{i}").alias(f"lowest{i}") for i in range(len(numbers))),
            *(F.max(f"number{i}").alias(f"highest{i}") for i in range(len(numbers))),
        )
        .toArrow()
    )
    if True in cubes.column("outside").to_pylist():
        raise SourceChanged(
            "a row lies outside of the range that was measured before; the source changed in "
            "between. Nothing was committed; run the write again"
        )
    files = [file_by_key[key] for key in cubes.column(names.file).to_pylist()]
    contents = {name: FileContents() for name in file_names}
    highest_weights = cubes.column("max_weight").to_pylist()
    blocks = _blocks(cubes, plan, names)
    for file, block, highest_weight in zip(files, blocks, highest_weights, strict=True):
        contents[file].blocks.append(block)
        if plan.banded and not block.cube.depth:
            contents[file].highest_weight = highest_weight
    for held in contents.values():
        held.blocks.sort(key=lambda block: block.cube.preorder_key)
        if len(held.blocks) > 1:
            held.highest_weight = None
    for i, (column, scale) in enumerate(measured.items()):
        pairs = (cubes.column(f"{side}{i}").to_pylist() for side in ("lowest", "highest"))
        for file, *pair in zip(files, *pairs, strict=True):
            if None not in pair:
                lowest, highest = (Decimal(number).scaleb(-scale) for number in pair)
                contents[file].stretch(column, lowest, highest)
    return contents


def _whole_number(catalyst: Catalyst, rows: DataFrame, name: str) -> Column:
    """The column as bigint, decimals without their point."""
    value = columns.column(name)
    if isinstance(rows.schema[name].dataType, DecimalType):
        return catalyst.unscaled(value)
    return value.cast("bigint")


def _file_key(name: Column, known: Sequence[str]) -> tuple[Column, Mapping[Any, str]]:
    """What tells the known files apart, and the file of each key.

    An int, for Spark groups rows by long strings at several times the cost.
    """
    for seed in range(_KEY_SEEDS):
        by_key = {spark_hash([(seed, "int"), (file, "string")]): file for file in known}
        if len(by_key) == len(known):
            return F.hash(F.lit(seed), name), by_key
    return name, {file: file for file in known}


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


def _outside(point: Sequence[Column], revision: Revision) -> Column:
    """Whether a row's point lies outside of the revision's space; NaN and infinities do not."""
    infinity, farthest = F.lit(float("inf")), F.lit(0.5 + _ROUNDING)
    outside = F.lit(False)
    # Only a linear transformation has bounds that a row can miss.
    linear = [isinstance(t, LinearTransformation) for t in revision.transformations]
    for value in compress(point, linear):
        outside = outside | ((F.abs(value - 0.5) > farthest) & (F.abs(value) < infinity))
    return outside
