"""Count the contents of newly written files from their rows instead of trusting the plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from qbeast_core.errors import SourceChanged
from qbeast_core.model.block import Block
from qbeast_core.model.cube import CubeId
from qbeast_core.model.datatypes import FLOATING
from qbeast_core.model.murmur import spark_hash
from qbeast_core.model.revision import Revision
from qbeast_core.model.transformation import LinearTransformation
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT
from qbeast_core.spark import columns
from qbeast_core.spark.grouping import grouped
from qbeast_core.spark.statistics import RowSample
from qbeast_core.spark.working_columns import WorkingColumns
from qbeast_core.tree.path import PathLayout
from qbeast_core.write.layout import RowLayout
from qbeast_core.write.plan import TreePlan
from qbeast_core.write.sizing import MAX_SAMPLE_ROWS

_KEY_SEEDS = 16


class RowsOutside(SourceChanged):
    """Written rows lie outside the revision's space, although the plan excludes them."""


@dataclass
class FileContents:
    """The blocks of one file."""

    blocks: list[Block] = field(default_factory=list)
    """In pre-order of their cubes, then anchors."""
    highest_weight: int | None = None
    """The highest weight of the file's rows, if the write divides rows by weight."""


@dataclass(frozen=True, eq=False)
class Counting:
    """The Spark expressions that count the contents of files; they only need the plan."""

    plan: TreePlan
    names: WorkingColumns
    row_layout: RowLayout

    @staticmethod
    def of(
        plan: TreePlan, row_layout: RowLayout, column_names: Sequence[str], rows: int
    ) -> Counting:
        """The expressions for rows with these columns, which `row_layout` places in the write.

        Args:
            rows: the expected number of rows.
        """
        names = WorkingColumns(column_names, plan.revision.dimensions)
        counting = Counting(plan, names, row_layout)
        # Built now, because this runs while Spark writes.
        _ = counting.of_row
        if rows > MAX_SAMPLE_ROWS:
            _ = counting.of_cube, counting.of_rows
        return counting

    @cached_property
    def of_row(self) -> Sequence[Column]:
        names, layout = self.names, self.row_layout
        return [
            layout.weight.alias(names.weight),
            _outside(self.plan.revision).alias(names.outside),
            *(word.alias(name) for word, name in zip(layout.words, names.words, strict=True)),
        ]

    @cached_property
    def of_cube(self) -> Mapping[str, Column]:
        """The path words of a row's cube, computed from those of the row and the cube's depth."""
        names, layout = self.names, self.plan.assignment.layout
        return {
            name: _prefix(F.col(name), F.col(names.depth), layout, position)
            for position, name in enumerate(names.words)
        }

    @cached_property
    def of_rows(self) -> Sequence[Column]:
        weight = self.names.weight
        return [
            F.min(weight).alias("min_weight"),
            F.max(weight).alias("max_weight"),
            F.count(F.lit(1)).alias("rows"),
            F.max(self.names.outside).alias("outside"),
        ]


class _Group(NamedTuple):
    """The rows of a cube in a file."""

    file_key: Any
    block: Block
    highest_weight: int


def contents_of(
    counting: Counting, rows: DataFrame, file_bytes: Mapping[str, int], row_count: int | None
) -> dict[str, FileContents]:
    """The contents of each file, by its name.

    Args:
        rows: read from these files.
        file_bytes: the size of each file in bytes, by its name.
        row_count: the number of rows in the files, if known. The driver counts them if they are
            few, which saves Spark an aggregation.

    Raises:
        RowsOutside: a row lies outside the revision's space.
    """
    plan = counting.plan
    file_key, file_by_key = _file_key(columns.file_metadata(rows), file_bytes)
    file_column = file_key.alias(counting.names.file)
    if row_count is not None and row_count <= MAX_SAMPLE_ROWS:
        groups = _grouped_by_driver(counting, rows, file_column)
    else:
        groups = _grouped_by_spark(counting, rows, file_column, is_one_file=len(file_bytes) == 1)
    contents = {name: FileContents() for name in file_bytes}
    for group in groups:
        of_file = contents[file_by_key[group.file_key]]
        of_file.blocks.append(group.block)
        if plan.cuts.by_weight:
            known = of_file.highest_weight
            highest = group.highest_weight
            of_file.highest_weight = highest if known is None else max(known, highest)
    for of_file in contents.values():
        of_file.blocks.sort(key=lambda block: block.cube.preorder_key)
    return contents


def _grouped_by_spark(
    counting: Counting, rows: DataFrame, file_key: Column, *, is_one_file: bool
) -> Iterator[_Group]:
    names, depth = counting.names, counting.row_layout.depth
    placed = rows.select(file_key, depth.alias(names.depth), *counting.of_row).withColumns(
        dict(counting.of_cube)
    )
    if is_one_file:
        # One task reads the file, so it can count without a shuffle.
        placed = placed.coalesce(1)
    by_cube = [F.col(name) for name in (names.file, names.depth, *names.words)]
    cubes = grouped(placed, by_cube, *counting.of_rows).toArrow()
    _check_inside(cubes.column("outside"))
    depths = cubes.column(names.depth).to_numpy().astype(np.int32)
    words = _words(cubes, names)
    distinct, cube_of_group = counting.plan.assignment.layout.cubes_of(words, depths)
    columns_of_group = (
        cubes.column(name).to_pylist() for name in (names.file, "min_weight", "rows", "max_weight")
    )
    for number, key, lowest, count, highest in zip(cube_of_group, *columns_of_group, strict=True):
        block = _block(counting.plan, distinct[number], lowest, count)
        yield _Group(key, block, highest)


def _grouped_by_driver(counting: Counting, rows: DataFrame, file_key: Column) -> Iterator[_Group]:
    names, plan = counting.names, counting.plan
    table = rows.select(file_key, *counting.of_row).toArrow()
    _check_inside(table.column(names.outside))
    weights = table.column(names.weight).to_numpy().astype(np.int32)
    cubes, cube_of_row = plan.assignment.cubes_of(_words(table, names), weights)
    keys = table.column(names.file).combine_chunks().dictionary_encode()
    in_files = keys.indices.to_numpy().astype(np.int64)
    groups, group_of_row = np.unique(in_files * len(cubes) + cube_of_row, return_inverse=True)
    rows_of = np.bincount(group_of_row, minlength=len(groups))
    lowest = np.full(len(groups), MAX_WEIGHT)
    highest = np.full(len(groups), MIN_WEIGHT)
    np.minimum.at(lowest, group_of_row, weights)
    np.maximum.at(highest, group_of_row, weights)
    found = zip(groups.tolist(), lowest.tolist(), rows_of.tolist(), highest.tolist(), strict=True)
    for group, min_weight, count, max_weight in found:
        in_file, cube = divmod(group, len(cubes))
        key = keys.dictionary[in_file].as_py()
        yield _Group(key, _block(plan, cubes[cube], min_weight, count), max_weight)


def _block(plan: TreePlan, cube: CubeId, min_weight: int, rows: int) -> Block:
    return Block(cube, min_weight, plan.max_weight(cube), rows)


def _check_inside(outside: pa.ChunkedArray) -> None:
    if True in outside.to_pylist():
        raise RowsOutside(
            "a written row is outside the range that was measured first; the source changed in "
            "between. Nothing was committed; run the write again"
        )


def _words(table: pa.Table, names: WorkingColumns) -> NDArray[np.int64]:
    """The path words of the rows of a table, int64[words, rows]."""
    return np.array([table.column(name).to_numpy() for name in names.words], dtype=np.int64)


def contents_of_all(plan: TreePlan, sample: RowSample) -> FileContents:
    """The contents of a file if the sample has all of its rows."""
    words = sample.words(plan.revision)
    cubes, cube_of_row = plan.assignment.cubes_of(words, sample.weights)
    rows = np.bincount(cube_of_row, minlength=len(cubes))
    lowest = np.full(len(cubes), MAX_WEIGHT)
    np.minimum.at(lowest, cube_of_row, sample.weights)
    blocks = [
        _block(plan, cube, min_weight, count)
        for cube, min_weight, count in zip(cubes, lowest.tolist(), rows.tolist(), strict=True)
    ]
    blocks.sort(key=lambda block: block.cube.preorder_key)
    return FileContents(blocks, int(sample.weights.max()) if plan.cuts.by_weight else None)


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
