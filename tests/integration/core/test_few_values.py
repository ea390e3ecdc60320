"""Few distinct values, and trees for readers that walk from the root (docs/format.md 8.3)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from qbeast_core import QbeastTable, write_table
from tests.support.delta_log import plain
from tests.support.invariants import assert_rows_in_their_cubes, assert_sound, assert_walkable


@pytest.mark.parametrize("distinct", [3, 50, 1000])
@pytest.mark.parametrize("columns", [["v"], ["v", "v2"], ["v:hash"]])
def test_few_distinct_values_make_no_file_much_larger_than_meant(
    spark: SparkSession, tmp_path: Path, distinct: int, columns: list[str]
) -> None:
    size = 4000
    rows = spark.range(0, 120_000, 1, 2).selectExpr(
        "id", f"hash(id) % {distinct} as v", f"hash(id) % {distinct} div 2 as v2"
    )
    rows = rows.selectExpr("id", "abs(v) as v", "abs(v2) as v2")
    path = str(tmp_path)
    write_table(rows, path=path, columns_to_index=columns, cube_size=size)
    of_one_value = {
        row.file: row.largest
        for row in plain(spark, path)
        .groupBy(F.col("_metadata.file_name").alias("file"), "v", "v2")
        .count()
        .groupBy("file")
        .agg(F.max("count").alias("largest"))
        .collect()
    }
    table = QbeastTable.for_path(spark, path)
    for file in table.files():
        assert file.rows <= 3 * size or of_one_value[file.path] > size, file
        if of_one_value[file.path] > size:
            assert file.rows <= 3 * size + of_one_value[file.path], file
    assert table.check().ok
    assert_walkable(spark, path)


def test_few_rows_that_lower_a_weight_lose_no_row_to_a_walking_reader(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    rows = spark.range(0, 6000, 1, 2).selectExpr(
        "id", "pmod(hash(id), 1000) as a", "pmod(hash(id, 1), 1000) as b"
    )
    write_table(rows, path=path, columns_to_index=["a", "b"], cube_size=300)
    before = weights_of_cubes(spark, path)
    # All in one corner, where the tree must make room by lowering weights.
    corner = spark.range(6000, 6005, 1, 1).selectExpr("id", "id % 3 as a", "id % 2 as b")
    result = write_table(corner, path=path)
    assert result.revision_id == 1
    assert_sound(spark, path, range(6005))
    assert_walkable(spark, path)
    # Weights were lowered; otherwise this test checks nothing.
    assert weights_of_cubes(spark, path) - before


def weights_of_cubes(spark: SparkSession, path: str) -> set[tuple[str, int]]:
    blocks = QbeastTable.for_path(spark, path).blocks()
    return {(row.cubeId, row.maxWeight) for row in blocks.collect()}


def test_many_small_appends_keep_the_tree_walkable(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    for number in range(8):
        rows = spark.range(number * 400, number * 400 + 400, 1, 1).selectExpr(
            "id",
            # Each append has its own corner, after a first one that spans the space.
            f"if({number} = 0, pmod(hash(id), 1000), pmod(hash(id), 40) + {number} * 100) as a",
            f"if({number} = 0, pmod(hash(id, 1), 1000), pmod(hash(id, 1), 40) + 300) as b",
        )
        result = write_table(rows, path=path, columns_to_index=["a", "b"], cube_size=60)
        assert result.revision_id == 1
    table = assert_sound(spark, path, range(3200))
    assert_walkable(spark, path)
    assert_rows_in_their_cubes(spark, path)
    table.optimize()
    assert_sound(spark, path, range(3200))
    assert_walkable(spark, path)


def test_a_delete_in_an_upper_file_leaves_samples_right(
    spark: SparkSession, tmp_path: Path
) -> None:
    from delta.tables import DeltaTable

    path = str(tmp_path)
    rows = spark.range(0, 2400, 1, 2).selectExpr(
        "id", "pmod(hash(id), 1000) as a", "pmod(hash(id, 1), 1000) as b"
    )
    for part in ("id < 1600", "id >= 1600"):
        write_table(rows.where(part), path=path, columns_to_index=["a", "b"], cube_size=150)
    root = QbeastTable.for_path(spark, path).blocks().where("cubeId = ''").collect()[-1].path
    victim = plain(spark, path).where(F.col("_metadata.file_name") == root).select("id").head().id
    DeltaTable.forPath(spark, path).delete(f"id = {victim}")
    left = [i for i in range(2400) if i != victim]
    table = assert_sound(spark, path, left, where="a < 300")
    assert [file for file in table.files() if file.revision_id == 0]
    table.optimize(revision_id="all")
    assert_sound(spark, path, left)
    assert_walkable(spark, path)


def test_appends_do_not_make_small_samples_read_much_more(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    rows = spark.range(0, 40_000, 1, 2).selectExpr(
        "id", "pmod(hash(id), 10000) as a", "pmod(hash(id, 1), 10000) as b"
    )
    write_table(rows, path=path, columns_to_index=["a", "b"], cube_size=1000)
    table = QbeastTable.for_path(spark, path)
    total = sum(file.rows for file in table.files())
    assert sum(file.rows for file in table.files(0.01)) <= 0.05 * total
    assert sum(file.rows for file in table.files(0.1)) <= 0.4 * total


def test_an_anchor_describes_no_rows_whatever_its_weight(
    spark: SparkSession, tmp_path: Path
) -> None:
    written, path = tmp_path / "written", tmp_path / "t"
    write_table(spark.range(100), path=str(written), columns_to_index=["id"])
    shutil.copytree(written, path)
    first = path / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    (add,) = (action["add"] for action in actions if "add" in action)
    root, *others = json.loads(add["tags"]["blocks"])
    # As left by the removal of a file, if that is the weight of a row here.
    anchor = {**root, "maxWeight": root["minWeight"], "elementCount": 0}
    add["tags"]["blocks"] = json.dumps([anchor, root, *others])
    first.write_text("".join(json.dumps(action) + "\n" for action in actions))
    for checksum in (first.with_suffix(".crc"), first.with_name(f".{first.name}.crc")):
        checksum.unlink(missing_ok=True)
    report = QbeastTable.for_path(spark, str(path)).check()
    assert (report.problems, report.rows) == ((), 100)
