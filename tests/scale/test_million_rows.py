"""A million rows of every type, each looked up in its block by Spark SQL.

Coordinates are worked out here from the JSON of the stored revision, by SQL that the library has no
part in; for hashes and quantiles of the few distinct values, by the plain Python of the model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qbeast_core import write_table
from qbeast_core.model.revision import Revision
from tests.support.delta_log import (
    blocks_of,
    configuration,
    live_adds,
    plain,
    revisions,
    weight_columns,
)
from tests.support.oracles import point_of

ROWS = 1_000_000
TYPES = {
    "tiny": "cast(pmod({h}, 200) - 100 as tinyint)",
    "small": "cast(pmod({h}, 30000) - 15000 as smallint)",
    "whole": "cast({h} as int)",
    "big": "{h} * 1000003",
    "real": "cast(sin({h}) * 1000 as float)",
    "fine": "exp(pmod({h}, 5000) / 500D)",
    "money": "cast(pmod({h}, 9999) / 100 as decimal(12, 2))",
    "day": "date_add(date'1999-12-31', cast(pmod({h}, 9000) as int))",
    "at": "timestamp_micros({h} * 1000003)",
    "word": "concat('é', pmod({h}, 3000))",
}
INDEXES = [
    # Columns, cube size and partitions; one partition means one task for all rows.
    ("tiny,small,whole,big,real,fine,money,day", 20_000, 2),
    ("at,word,whole:hash,fine:hash,money:hash,tiny:hash,big:hash,real:hash", 20_000, 1),
    ("money:quantiles,word:quantiles,day:quantiles,fine:quantiles,small:quantiles", 2_000, 2),
]


def rows(spark: SparkSession, partitions: int) -> DataFrame:
    """Every column by a hash of its own, one in thirty null."""
    columns = (
        f"if(pmod(hash(id, {i}), 30) = 0, null, "
        f"{sql.format(h=f'(pmod(xxhash64(id, {i}), 4000) - 2000)')}) as {name}"
        for i, (name, sql) in enumerate(TYPES.items())
    )
    return spark.range(0, ROWS, 1, partitions).selectExpr("id", *columns)


@pytest.mark.parametrize(("columns", "cube_size", "partitions"), INDEXES)
def test_every_row_is_in_its_block(
    spark: SparkSession, tmp_path: Path, columns: str, cube_size: int, partitions: int
) -> None:
    path = str(tmp_path)
    write_table(rows(spark, partitions), path=path, columns_to_index=columns, cube_size=cube_size)
    known = revisions(path)
    revision = known[max(known)]
    stored = json.loads(configuration(path)[f"qbeast.revision.{revision.revision_id}"])
    listed = list(_blocks(path, known))
    bounds = [f"{end}{i} double" for i in range(revision.dimensions) for end in ("low", "high")]
    schema = ["number int", "in_file string", "lightest int", "heaviest int", *bounds]
    blocks = spark.createDataFrame([entry[1:] for entry in listed], ", ".join(schema))

    placed = plain(spark, path)
    for i, transformation in enumerate(stored["transformations"]):
        placed = _with_coordinate(placed, revision, i, transformation)
    weight, file = F.hash(*weight_columns(path)), F.col("_metadata.file_name")
    coordinates = [f"x{i}" for i in range(revision.dimensions)]
    placed = placed.select(weight.alias("weight"), file.alias("file"), *coordinates)
    inside = F.expr(
        " and ".join(
            ["file = in_file", "weight between lightest and heaviest"]
            + [
                f"low{i} <= x{i} and (x{i} < high{i} or high{i} = 1)"
                for i in range(len(coordinates))
            ]
        )
    )
    counted = placed.join(F.broadcast(blocks), inside, "left").groupBy("number")
    found = {
        row["number"]: (row["rows"], row["least"])
        for row in counted.agg(F.count("*").alias("rows"), F.min("weight").alias("least")).collect()
    }
    assert found == {
        number: (count, lightest) for count, number, _, lightest, *_ in listed if count
    }
    assert sum(count for count, _ in found.values()) == ROWS


def _blocks(path: str, known: dict[int, Revision]) -> Iterator[tuple[Any, ...]]:
    """Element count, number, file, weights and cube of every block."""
    number = 0
    for add in live_adds(path).values():
        for block in blocks_of(add, known):
            ends = zip(block.cube.lower, block.cube.upper, strict=True)
            weights = (block.min_weight, block.max_weight)
            corners = (corner for pair in ends for corner in pair)
            yield (block.element_count, number, add["path"], *weights, *corners)
            number += 1


def _with_coordinate(
    rows: DataFrame, revision: Revision, i: int, stored: dict[str, Any]
) -> DataFrame:
    """The rows with the coordinate of an indexed column as `x<i>`."""
    column = revision.columns[i]
    spark_type = dict(rows.dtypes)[column]
    if not stored["className"].endswith(".LinearTransformation"):
        before, after = [None] * i, [None] * (revision.dimensions - i - 1)
        pairs = [
            (value, point_of(revision, [*before, value, *after])[i])
            for (value,) in rows.select(column).distinct().collect()
        ]
        table = rows.sparkSession.createDataFrame(pairs, f"key{i} {spark_type}, x{i} double")
        return rows.join(F.broadcast(table), F.col(column).eqNullSafe(F.col(f"key{i}")), "left")
    number = {
        "date": f"unix_date({column}) * 86400000L",
        "timestamp": f"floor(unix_micros({column}) / 1000)",
    }.get(spark_type, column)
    # The log has the bounds of a float column as the shortest text of the 32 bits.
    kind = "float" if spark_type == "float" else "double"
    low, high, null = (
        f"cast(cast('{stored[key]}' as {kind}) as double)"
        for key in ("minNumber", "maxNumber", "nullValue")
    )
    value = f"coalesce(cast({number} as double), {null})"
    return rows.withColumn(f"x{i}", F.expr(f"({value} - {low}) * (1D / ({high} - {low}))"))
