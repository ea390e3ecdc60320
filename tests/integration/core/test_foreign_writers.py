"""Tables that other Delta writers change: reads stay correct, and `optimize` repairs the index."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from qbeast_core import QbeastTable, convert_to_qbeast, write_table
from qbeast_core.errors import IncompatibleTable
from qbeast_core.model.weight import weight_of_fraction
from tests.integration.core.merge_tables import rows
from tests.support.delta_log import last_version, live_adds, plain
from tests.support.invariants import assert_rows_in_their_cubes, assert_sound

VECTORS = {"delta.enableDeletionVectors": "true"}


def create(spark: SparkSession, path: str, properties: dict[str, str] | None = None) -> set[int]:
    """A table of several levels; returns the ids of its rows."""
    write_table(
        rows(spark, 0, 400),
        path=path,
        columns_to_index=["a", "b"],
        cube_size=20,
        properties=properties,
    )
    return set(range(400))


@pytest.mark.parametrize("properties", [{}, VECTORS], ids=["copy on write", "deletion vectors"])
def test_a_delete_in_the_upper_cubes_loses_no_sampled_row(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str]
) -> None:
    path = str(tmp_path)
    ids = create(spark, path, properties)
    of_root = QbeastTable.for_path(spark, path).blocks().where("cubeId = ''").collect()
    names = F.col("_metadata.file_name").isin([block.path for block in of_root])
    in_root = plain(spark, path).where(names)
    gone = {row.id for row in in_root.where("hash(a, b) % 3 = 0").select("id").collect()}
    assert len(gone) >= 3
    DeltaTable.forPath(spark, path).delete(f"id in ({', '.join(map(str, gone))})")
    assert any("deletionVector" in add for add in live_adds(path).values()) == bool(properties)
    assert_reads_of_all(spark, path, ids - gone)
    QbeastTable.for_path(spark, path).optimize(revision_id="all")
    assert_reads_of_all(spark, path, ids - gone)
    write_table(rows(spark, 400, 50), path=path)
    assert_reads_of_all(spark, path, ids - gone | set(range(400, 450)))


@pytest.mark.parametrize("properties", [{}, VECTORS], ids=["copy on write", "deletion vectors"])
def test_tables_changed_by_sparks_other_commands_are_read_correctly_and_can_be_indexed(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str]
) -> None:
    path = str(tmp_path)
    ids = create(spark, path, properties)
    foreign = DeltaTable.forPath(spark, path)
    rows(spark, 400, 60).write.format("delta").mode("append").save(path)
    foreign.update("id < 5", {"s": "'set'"})
    source = rows(spark, 455, 10).alias("s")
    merging = foreign.alias("t").merge(source, "s.id = t.id")
    merging.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    ids |= set(range(400, 465))
    table = assert_reads_of_all(spark, path, ids)

    reported = table.check().unindexed_files
    assert reported == sum(file.revision_id == 0 for file in table.files()) > 0
    table.optimize(revision_id="unindexed")
    indexed = assert_reads_of_all(spark, path, ids)
    assert all(file.revision_id for file in indexed.files())
    assert not indexed.optimize(revision_id="unindexed").changed
    if not properties:
        assert_rows_in_their_cubes(spark, path)

    foreign.optimize().executeCompaction()
    foreign.delete("id % 100 = 50")
    spark.sql(f"reorg table delta.`{path}` apply (purge)").collect()
    assert_reads_of_all(spark, path, {id_ for id_ in ids if id_ % 100 != 50})
    foreign.restoreToVersion(0)
    assert_sound(spark, path, range(400), where="b > 700")
    assert {file.revision_id for file in QbeastTable.for_path(spark, path).files()} == {1}
    foreign.restoreToVersion(indexed.version)
    assert_reads_of_all(spark, path, ids)


def test_a_sample_of_an_older_version_has_its_rows(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    create(spark, path)
    table = QbeastTable.for_path(spark, path)
    before = sorted(row.id for row in table.sample(0.2).select("id").collect())
    table.delete("id % 2 = 0")
    table.optimize()
    condition = QbeastTable.for_path(spark, path).sample_condition(0.2)
    for then in ("version as of 0", f"timestamp as of '{time_of(spark, path, 0)}'"):
        older = spark.sql(f"select id from delta.`{path}` {then} where {condition}")
        assert sorted(row.id for row in older.collect()) == before
    # A handle keeps reading the version that it was opened for.
    assert sorted(row.id for row in table.sample(0.2).select("id").collect()) == before


def time_of(spark: SparkSession, path: str, version: int) -> str:
    """The time of a version, as SQL reads it."""
    history = spark.sql(f"describe history delta.`{path}`").where(f"version = {version}")
    (row,) = history.selectExpr("date_format(timestamp, 'yyyy-MM-dd HH:mm:ss.SSSSSS')").collect()
    return str(row[0])


def test_tables_changed_by_delta_rs_are_read_correctly_and_can_be_indexed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It keeps the configuration and gives its files no tags."""
    path = str(tmp_path)
    ids = create(spark, path)
    more = rows(spark, 400, 80).toArrow()
    deltalake.write_deltalake(path, more, mode="append")
    ids |= set(range(400, 480))
    assert_reads_of_all(spark, path, ids)
    deltalake.DeltaTable(path).delete("id % 100 = 7")
    ids -= set(range(7, 480, 100))
    assert_reads_of_all(spark, path, ids)
    deltalake.DeltaTable(path).optimize.compact()
    table = assert_reads_of_all(spark, path, ids)
    assert {file.revision_id for file in table.files()} == {0}
    table.optimize()
    after = assert_sound(spark, path, sorted(ids), where="a < 250")
    assert all(file.revision_id for file in after.files())
    assert_rows_in_their_cubes(spark, path)
    deltalake.DeltaTable(path).create_checkpoint()
    assert_sound(spark, path, sorted(ids))
    deltalake.DeltaTable(path).optimize.z_order(["a", "b"])
    assert_reads_of_all(spark, path, ids)
    deltalake.write_deltalake(path, more, mode="overwrite")
    assert_reads_of_all(spark, path, set(range(400, 480)))


def assert_reads_of_all(spark: SparkSession, path: str, ids: Collection[int]) -> QbeastTable:
    """All rows, and of each sample and each filter exactly the rows that are in it."""
    table = QbeastTable.for_path(spark, path)
    read = plain(spark, path).selectExpr("id", "hash(a, b) as weight", "a < 300 as few").collect()
    assert sorted(row.id for row in read) == sorted(ids)
    assert sorted(row.id for row in table.dataframe().select("id").collect()) == sorted(ids)
    for fraction in (0.02, 0.3):
        limit = weight_of_fraction(fraction)
        for where in (None, "a < 300"):
            wanted = [row.id for row in read if row.weight < limit and (row.few or not where)]
            sampled = table.sample(fraction, where).select("id").collect()
            assert sorted(row.id for row in sampled) == sorted(wanted)
    report = table.check()
    assert report.ok, str(report)
    return table


def test_a_name_that_delta_only_reads_is_an_error_of_its_own(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Delta checks all names in each change of a table's properties, as in ALTER TABLE."""
    path = str(tmp_path)
    deltalake.write_deltalake(path, pa.table({"id": [1, 2], "a b": [3, 4]}))
    with pytest.raises(IncompatibleTable, match=r"which the index is stored: .*INVALID_CHARACTERS"):
        convert_to_qbeast(spark, path, "id")
    assert last_version(path) == 0
