"""What holds for every table, computed from its log and rows without the library's own reader.

The points come from `qbeast_core.model` in plain Python, and the way to a row's cube is the
doubling that docs/format.md 6.1 describes.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from decimal import Context, Decimal
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType

from qbeast_core import QbeastTable, quoted
from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.model.block import Block
from qbeast_core.model.cube import CubeId
from qbeast_core.model.revision import Revision
from qbeast_core.model.weight import MAX_WEIGHT, weight_of_fraction
from tests.support.checksums import assert_checksum
from tests.support.delta_log import (
    blocks_of,
    configuration,
    files_of_log,
    last_version,
    live_adds,
    plain,
    revisions,
    weight_columns,
)
from tests.support.oracles import point_of

FRACTIONS = (0.01, 0.1, 0.5)


def assert_sound(
    spark: SparkSession,
    path: object,
    ids: Sequence[int] | None = None,
    *,
    fractions: Sequence[float] = FRACTIONS,
    where: str | None = None,
) -> QbeastTable:
    """Check what holds for every table with an `id` column.

    The log and Delta's checksum have the same files. A plain reader sees `ids`. Samples have the
    rows that the weights determine, and grow with the fraction. Blocks count the rows of their
    files, and each row is in its cube (docs/format.md 8.6).
    """
    sizes = [add["size"] for add in live_adds(path).values()]
    assert_checksum(path, last_version(path), sizes)
    table = QbeastTable.for_path(spark, str(path))
    assert TableSnapshot.load(spark, str(path)).files == files_of_log(path)
    weight = F.hash(*(F.col(quoted(name)) for name in weight_columns(path)))
    kept = F.expr(where) if where is not None else F.lit(None)
    rows = plain(spark, path).select("id", weight.alias("w"), kept.alias("kept")).collect()
    if ids is not None:
        assert Counter(row.id for row in rows) == Counter(ids)
    samples = [(fraction, None) for fraction in fractions]
    if where is not None:
        samples += [(fraction, where) for fraction in (*fractions, 1.0)]
    assert_samples(table, [(row.id, row.w, row.kept) for row in rows], samples)
    for add in live_adds(path).values():
        blocks = blocks_of(add, revisions(path))
        if blocks:
            counted = sum(block.element_count for block in blocks)
            statistics = json.loads(add.get("stats") or "{}")
            assert counted == statistics.get("numRecords", counted)
    report = table.check()
    assert report.ok, str(report)
    return table


def assert_samples(
    table: QbeastTable,
    rows: Sequence[tuple[int, int, bool | None]],
    samples: Sequence[tuple[float, str | None]],
) -> None:
    """Each sample has exactly the rows whose weight lies below the fraction's.

    Args:
        rows: id, weight, and whether the filter that samples may have keeps the row.
        samples: fractions, each of the whole table or of what a filter keeps; read in one query.
    """
    sampled = [
        table.sample(fraction, where).select(F.lit(number).alias("sample"), "id")
        for number, (fraction, where) in enumerate(samples)
    ]
    found = defaultdict(list)
    for number, id_ in reduce(DataFrame.unionAll, sampled).collect():
        found[number].append(id_)
    for number, (fraction, where) in enumerate(samples):
        limit = weight_of_fraction(fraction) if fraction < 1.0 else MAX_WEIGHT + 1
        expected = [id_ for id_, w, kept in rows if w < limit and (where is None or kept)]
        assert sorted(found[number]) == sorted(expected), f"sample {fraction} where {where}"


def assert_rows_in_their_cubes(spark: SparkSession, path: object) -> None:
    """Check that each row of an indexed file is in the block of its values (docs/format.md 8.1)."""
    adds, known = live_adds(path), revisions(path)
    last = known[int(configuration(path)["qbeast.lastRevisionID"])]
    rows_by_file = defaultdict(list)
    values = [as_number(plain(spark, path), name) for name in last.columns]
    types = {field.name: field.dataType for field in plain(spark, path).schema}
    weight = F.hash(*(F.col(quoted(name)) for name in weight_columns(path)))
    for *point, row_weight, file in (
        plain(spark, path).select(*values, weight, F.col("_metadata.file_name")).collect()
    ):
        placed = [
            _with_scale(value, types[name]) for value, name in zip(point, last.columns, strict=True)
        ]
        rows_by_file[file].append(([*placed], row_weight))
    for add in adds.values():
        blocks = blocks_of(add, known)
        if not blocks:
            continue
        revision = known[int(add["tags"]["revision"])]
        assert_rows_of_blocks(revision, rows_by_file[add["path"].rsplit("/", 1)[-1]], blocks)


def assert_rows_of_blocks(
    revision: Revision,
    rows: Iterable[tuple[Sequence[Any], int]],
    blocks: Iterable[Block],
    *,
    some_deleted: bool = False,
) -> None:
    """Check that each row, given as indexed values and weight, is counted by exactly one block."""
    filled = [block for block in blocks if block.element_count]
    held = defaultdict(list)
    for values, weight in rows:
        held[_block_of(revision, values, weight, filled)].append(weight)
    if some_deleted:
        assert all(len(weights) <= block.element_count for block, weights in held.items())
        return
    assert set(held) == set(filled)
    for block, weights in held.items():
        assert len(weights) == block.element_count
        assert min(weights) == block.min_weight


def containers(coordinates: Sequence[float]) -> Iterator[CubeId]:
    """The cubes that contain a point, from the root down, endlessly (docs/format.md 6.1)."""
    left, cube = list(coordinates), CubeId.root(len(coordinates))
    while True:
        yield cube
        path = cube.path
        for i, x in enumerate(left):
            bit = 2 * x >= 1
            left[i] = 2 * x - 1 if bit else 2 * x
            path = path << 1 | bit
        cube = CubeId(cube.dimensions, cube.depth + 1, path)


def _block_of(
    revision: Revision, values: Sequence[Any], weight: int, blocks: Sequence[Block]
) -> Block:
    walk = containers([_clamped(x) for x in point_of(revision, values)])
    deepest = max(block.cube.depth for block in blocks)
    around = {next(walk) for _ in range(deepest + 1)}
    found = [
        block
        for block in blocks
        if block.cube in around and block.min_weight <= weight <= block.max_weight
    ]
    assert len(found) == 1, f"{values} of weight {weight} lies in {found}"
    return found[0]


def _clamped(coordinate: float) -> float:
    return 1.0 if math.isnan(coordinate) else min(max(coordinate, 0.0), 1.0)


def _with_scale(value: Any, data_type: DataType) -> Any:
    """A decimal with its column's scale; PySpark adds zeros to small ones."""
    if not isinstance(value, Decimal) or not isinstance(data_type, DecimalType):
        return value
    return value.quantize(Decimal(1).scaleb(-data_type.scale), context=Context(prec=38))


def as_number(rows: DataFrame, name: str) -> Any:
    """The column, dates and timestamps as milliseconds since 1970."""
    kind, column = dict(rows.dtypes)[name], F.col(quoted(name))
    if kind == "timestamp":
        micros = F.unix_micros(column)
        return ((micros - F.pmod(micros, F.lit(1000))) / 1000).cast("bigint")
    return F.unix_date(column).cast("bigint") * 86_400_000 if kind == "date" else column


def assert_walkable(spark: SparkSession, path: str) -> None:
    """Check that a reader that walks the tree from its root finds the rows of each sample."""
    for fraction in (0.003, 0.02, 0.1, 0.35, 0.8):
        sampled = QbeastTable.for_path(spark, path).sample(fraction).select("id").collect()
        assert _walked_sample(spark, path, fraction) == Counter(row.id for row in sampled), fraction


def _files_of_a_walk(table: QbeastTable, fraction: float) -> set[str]:
    """The files that a reader finds which walks the tree as docs/format.md 9.3 says.

    It goes below a cube only where the sample reaches beyond the cube's weight, the smallest of
    its blocks; a cube that is not there is passed through.
    """
    dimensions, limit = len(table.columns_to_index), weight_of_fraction(fraction)
    chosen: set[str] = set()
    by_revision: dict[int, list[Row]] = {}
    for row in table.blocks().collect():
        by_revision.setdefault(row.revision, []).append(row)
    for rows in by_revision.values():
        blocks: dict[CubeId, list[Row]] = {}
        for row in rows:
            blocks.setdefault(CubeId.parse(row.cubeId, dimensions), []).append(row)
        known = set(blocks) | {around for cube in blocks for around in cube.ancestors()}
        waiting = [CubeId.root(dimensions)]
        while waiting:
            cube = waiting.pop()
            if cube in blocks:
                chosen |= {row.path for row in blocks[cube] if row.minWeight < limit}
                if limit <= min(row.maxWeight for row in blocks[cube]):
                    continue
            waiting += [child for child in cube.children() if child in known]
    return chosen


def _walked_sample(spark: SparkSession, path: str, fraction: float) -> Counter[int]:
    """The ids of a sample as a walking reader gives it."""
    table = QbeastTable.for_path(spark, path)
    files = _files_of_a_walk(table, fraction)
    weight = F.hash(*table.columns_to_index)
    rows = plain(spark, path).where(weight < weight_of_fraction(fraction))
    names = rows.select("id", F.col("_metadata.file_name").alias("file")).collect()
    return Counter(row.id for row in names if row.file in files)
