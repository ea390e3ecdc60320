"""Tables whose rows are sampled by columns of the user's choice."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from qbeast_core import QbeastTable, write_table
from qbeast_core.errors import IndexMismatch, InvalidOptions
from qbeast_core.model.weight import weight_of_fraction
from tests.support.delta_log import configuration, last_version, live_adds, plain
from tests.support.invariants import assert_rows_in_their_cubes, assert_sound


def test_a_join_of_two_samples_has_exactly_the_keys_of_the_fraction(
    spark: SparkSession, tmp_path: Path
) -> None:
    orders, lines = str(tmp_path / "orders"), str(tmp_path / "lines")
    made = spark.range(1000).selectExpr("id", "id * 7 as order_id", "id % 90 as day")
    write_table(made, path=orders, columns_to_index="day", sample_key="ORDER_ID", cube_size=100)
    made = spark.range(4000).selectExpr(
        "id", "id div 4 * 7 as order_id", "id % 4 as line", "pmod(hash(id), 500) as price"
    )
    write_table(
        made, path=lines, columns_to_index="price,line", sample_key=["order_id"], cube_size=300
    )
    for path, ids in ((orders, range(1000)), (lines, range(4000))):
        assert configuration(path)["qbeast.sampleKey"] == '["order_id"]'
        assert all(add["tags"]["weightKey"] == '["order_id"]' for add in live_adds(path).values())
        table = assert_sound(spark, path, ids)
        assert_rows_in_their_cubes(spark, path)
        assert table.sample_key == ["order_id"]
        assert len(table.files(fraction=0.05)) < len(table.files())
    fraction = 0.2
    sampled = [QbeastTable.for_path(spark, path).sample(fraction) for path in (orders, lines)]
    joined = sampled[0].select("order_id").join(sampled[1].drop("id"), "order_id")
    below = F.hash("order_id") < weight_of_fraction(fraction)
    keys = {row.order_id for row in plain(spark, orders).where(below).collect()}
    found = [row.order_id for row in joined.collect()]
    assert set(found) == keys and len(found) == 4 * len(keys)


def test_every_change_of_such_a_table_keeps_the_key(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    rows = spark.range(1000).selectExpr("id", "id % 3 as a", "id div 2 as pair")
    write_table(rows, path=path, columns_to_index="a", sample_key="pair", cube_size=100)
    more = rows.selectExpr("id + 1000 as id", "a + 5 as a", "pair + 500 as pair")
    assert write_table(more.limit(200), path=path, sample_key="pair").new_revision
    table = QbeastTable.for_path(spark, path)
    table.update({"pair": "pair + 7"}, "id < 50")
    table.delete("id % 10 = 3")
    table.merge(spark.range(1190, 1210).selectExpr("id", "9L as a", "id as pair"), on="id")
    ids = [i for i in range(1200) if i % 10 != 3 or i >= 1190] + list(range(1200, 1210))
    assert_sound(spark, path, ids, where="a = 2")
    assert_rows_in_their_cubes(spark, path)
    # The files of another writer are read whenever anything is.
    rows.limit(10).selectExpr("id + 5000 as id", "a", "pair").write.format("delta").mode(
        "append"
    ).save(path)
    table = assert_sound(spark, path, [*ids, *range(5000, 5010)])
    assert table.check().unindexed_files
    assert table.optimize().changed
    table = assert_sound(spark, path, [*ids, *range(5000, 5010)])
    assert not table.check().unindexed_files
    assert all(add["tags"]["weightKey"] == '["pair"]' for add in live_adds(path).values())


def test_the_key_is_fixed_until_a_rebuild(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    rows = spark.range(100).selectExpr("id", "id % 3 as a", "map(1, id) as m")
    for key, told in (
        ("nope", "'nope' of the sample key"),
        (["m"], "Spark cannot hash it"),
        ("a,A", "'a' twice"),
        ([], "must be 'all' or name columns"),
        (["a", 3], "must be 'all' or name columns"),
    ):
        with pytest.raises(InvalidOptions, match=told):
            write_table(rows, path=path, columns_to_index="a", sample_key=key)  # type: ignore[arg-type]
    assert last_version(path) == -1
    write_table(rows, path=path, columns_to_index="a", sample_key="all")
    assert json.loads(configuration(path)["qbeast.sampleKey"]) == ["id", "a"]
    assert QbeastTable.for_path(spark, path).sample_key == "all"
    write_table(rows, path=path, sample_key="all")
    write_table(rows, path=path)
    for other in ("id", ["a", "id"]):
        with pytest.raises(IndexMismatch, match="mode='overwrite'"):
            write_table(rows, path=path, sample_key=other)
    assert last_version(path) == 2
    write_table(rows.drop("m"), path=path, mode="overwrite")
    assert QbeastTable.for_path(spark, path).sample_key == "all"
    write_table(rows, path=path, mode="overwrite", columns_to_index="a")
    assert QbeastTable.for_path(spark, path).sample_key is None
    assert "qbeast.sampleKey" not in configuration(path)
    with pytest.raises(IndexMismatch, match="has no sample key"):
        write_table(rows, path=path, sample_key="id")
    assert_sound(spark, path, range(100))
