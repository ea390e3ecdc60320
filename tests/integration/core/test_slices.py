"""Tables that store slices: samples by them, in Spark and elsewhere, after every kind of change."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pyspark
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.scans import scanned
from qbeast_core import QbeastTable, convert_to_qbeast, write_table
from qbeast_core.delta.metadata import names_in_files
from qbeast_core.errors import (
    IncompatibleTable,
    IndexMismatch,
    InvalidOptions,
    UnknownColumn,
    UnsupportedColumnType,
)
from qbeast_core.jvm.settings import changed_settings
from qbeast_core.model.slices import SLICE_COLUMN, slice_of_weight
from qbeast_core.model.weight import weight_of_fraction
from tests.support.checksums import assert_checksum
from tests.support.counters import counting
from tests.support.delta_log import (
    actions,
    configuration,
    last_version,
    live_adds,
    plain,
    weight_columns,
)
from tests.support.invariants import assert_rows_in_their_cubes, assert_sound

SAMPLED = f"{SLICE_COLUMN} >= 7"


def rows(spark: SparkSession, count: int, first: int = 0) -> DataFrame:
    return spark.range(first, first + count, 1, 2).selectExpr(
        "id", "pmod(hash(id, 7), 500) as a", "sha2(cast(id as string), 256) as text"
    )


def sliced_table(spark: SparkSession, path: str, count: int = 4000, **options: Any) -> str:
    write_table(
        rows(spark, count),
        path=path,
        columns_to_index="a,id",
        slices=True,
        **{"cube_size": 400, **options},
    )
    return path


def assert_slices(
    spark: SparkSession, path: str, ids: list[int] | None = None, missing: int = 0
) -> QbeastTable:
    """Check the table and its slices, and that only other readers see the slice column."""
    table = assert_sound(spark, path, ids)
    stored = plain(spark, path).select(SLICE_COLUMN, F.hash(*weight_columns(path))).collect()
    assert sum(found is None for found, _ in stored) == missing
    assert all(found in (None, slice_of_weight(weight)) for found, weight in stored)
    assert plain(spark, path).columns == [*table.dataframe().columns, SLICE_COLUMN]
    assert table.slices and SLICE_COLUMN not in table.sample(0.1).columns
    return table


def test_a_table_stores_the_slices_of_its_rows(spark: SparkSession, tmp_path: Path) -> None:
    path = sliced_table(spark, str(tmp_path))
    assert_slices(spark, path, list(range(4000)))
    assert_rows_in_their_cubes(spark, path)
    assert configuration(path)["qbeast.slices"] == "true"
    for k in range(1, 6):
        by_slice = plain(spark, path).where(f"{SLICE_COLUMN} >= {k}").select("id")
        by_weight = QbeastTable.for_path(spark, path).sample(0.5**k).select("id")
        assert sorted(by_slice.collect()) == sorted(by_weight.collect())
    found = QbeastTable.for_path(spark, path).estimate("avg(id)", tolerance=0.2)
    assert found.groups[0].value == pytest.approx(2000, rel=0.3)


def test_every_change_keeps_the_slices_right(spark: SparkSession, tmp_path: Path) -> None:
    path = sliced_table(spark, str(tmp_path), properties={"delta.enableChangeDataFeed": "true"})

    def read() -> DataFrame:
        """As a model does that selects everything from its own table."""
        return plain(spark, path)

    shifted = read().where("id < 500").withColumn("id", F.col("id") + 4000)
    assert write_table(shifted, path=path).rows == 500
    assert write_table(shifted.withColumn("id", F.col("id") + 500), path=path, slices=True).rows
    table = QbeastTable.for_path(spark, path)
    changed = read().where("id < 40").withColumn("a", F.lit(3)).withColumn(SLICE_COLUMN, F.lit(9))
    assert table.merge(changed, on="id").rows_updated == 40
    # A file of an older revision has got new tags, and is counted once.
    version, live = last_version(path), live_adds(path)
    assert [add["dataChange"] for add in actions(path, version, "add")].count(False) == 1
    assert_checksum(path, version, [add["size"] for add in live.values()])
    assert table.merge(read().where("id = 60"), on="id", update=["text"]).rows_updated == 1
    table.update({"a": "a + 1"}, "id between 100 and 120")
    table.delete("id % 10 = 3")
    assert table.replace_where(read().where("id = 7"), "id = 7").rows_inserted == 1
    assert table.replace_matching(read().where("id = 8"), on="id").rows_inserted == 1
    ids = [i for i in range(5000) if i % 10 != 3]
    assert_slices(spark, path, ids)
    assert write_table(read(), path=path, mode="overwrite").new_revision
    assert_slices(spark, path, ids)
    with pytest.raises(UnknownColumn, match=SLICE_COLUMN):
        table.update({SLICE_COLUMN: "1"})


def test_other_programs_fill_the_column_or_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = sliced_table(spark, str(tmp_path))
    table = f"delta.`{path}`"
    spark.sql(f"insert into {table} (id, a, text) select id + 9000, 1, 'x' from range(50)")
    rows(spark, 50, 9100).write.format("delta").mode("append").save(path)
    spark.sql(f"update {table} set a = 77 where id < 10")
    spark.sql(f"delete from {table} where id = 20")
    spark.sql(
        f"merge into {table} t using (select 5L as id, 9 as a) s on t.id = s.id "
        "when matched then update set a = s.a"
    )
    ids = [i for i in range(4000) if i != 20] + [*range(9000, 9050), *range(9100, 9150)]
    assert assert_slices(spark, path, ids).optimize().changed
    assert_slices(spark, path, ids)
    version = last_version(path)
    with pytest.raises(Exception, match=rf"Generated Column.*{SLICE_COLUMN}"):
        spark.sql(f"insert into {table} select 1L, 1, 'x', 1Y")
    arrow = DeltaTable(path).to_pyarrow_table(filters=[("id", "=", 5)])
    without, wrong = arrow.drop_columns([SLICE_COLUMN]), arrow.drop_columns([SLICE_COLUMN])
    wrong = wrong.append_column(SLICE_COLUMN, pa.array([None], "int8"))
    for rows_of_another in (without, wrong):
        # delta-rs cannot compute the expression, and says so.
        with pytest.raises(Exception, match='No field named "CASE"'):
            write_deltalake(path, rows_of_another, mode="append")
    assert last_version(path) == version


@pytest.mark.parametrize(
    ("is_own", "key", "properties"),
    [
        pytest.param(True, "spark.sql.parquet.outputTimestampType", {}, id="write_table"),
        pytest.param(False, "spark.sql.parquet.outputTimestampType", {}, id="plain append"),
        pytest.param(
            True,
            "spark.databricks.delta.table.parquetV2.timestampOutputType",
            {"delta.parquet.format.version": "2.12.0"},
            marks=pytest.mark.skipif(
                pyspark.__version__ < "4.2", reason="Delta 4.3 is the first with this property"
            ),
            id="Parquet 2.12",
        ),
    ],
)
def test_sessions_that_store_milliseconds_write_rows_that_are_sampled(
    spark: SparkSession, tmp_path: Path, is_own: bool, key: str, properties: dict[str, str]
) -> None:
    path, milliseconds = str(tmp_path), {key: "TIMESTAMP_MILLIS"}
    moments = spark.range(6000).selectExpr("id", "timestamp_micros(170000000000 + id * 1237) as at")
    first = moments.where(f"id < {1 if not is_own else 3000}")
    rest = moments.exceptAll(first)
    with changed_settings(spark, milliseconds):
        write_table(
            first,
            path=path,
            columns_to_index="at",
            slices=True,
            cube_size=500,
            properties=properties,
        )
        if is_own:
            write_table(rest, path=path)
        else:
            rest.write.format("delta").mode("append").save(path)
    table = QbeastTable.for_path(spark, path)
    assert table.sample(0.1).count() == pytest.approx(600, rel=0.2)
    if is_own:
        assert table.dataframe().exceptAll(moments).isEmpty()
        with changed_settings(spark, milliseconds):
            table.update({"id": "id + 1"}, "id < 100")
            table.optimize()
        assert_slices(spark, path)
        assert_rows_in_their_cubes(spark, path)


def test_a_small_sample_reads_a_part_of_a_file(spark: SparkSession, tmp_path: Path) -> None:
    # What begins with `parquet.` among a table's properties reaches the writer of its files.
    properties = {"parquet.page.row.count.limit": "1000"}
    path = sliced_table(spark, str(tmp_path), 50_000, cube_size=10**6, properties=properties)
    table = QbeastTable.for_path(spark, path)
    assert len(table.files()) == 1
    for fraction, at_most in ((0.001, 1000), (0.01, 2000), (0.1, 8000), (0.7, 50_000)):
        sample = table.sample(fraction)
        taken = len(sample.collect())
        assert taken <= scanned(sample).rows <= at_most
    cold = table.sample(0.01, where="a < 100")
    cold.collect()
    assert scanned(cold).rows <= 2000


def test_another_engine_samples_with_less_reading(spark: SparkSession, tmp_path: Path) -> None:
    path = sliced_table(
        spark,
        str(tmp_path),
        40_000,
        cube_size=4000,
        properties={"parquet.block.row.count.limit": "1000"},
    )
    sampled = sorted(row.id for row in QbeastTable.for_path(spark, path).sample(1 / 128).collect())
    assert 200 < len(sampled) < 440

    ids, bytes_of_sample = with_duckdb(tmp_path, f"where {SAMPLED}")
    assert ids == sampled
    everything, bytes_of_all = with_duckdb(tmp_path, "")
    assert len(everything) == 40_000
    assert bytes_of_sample < bytes_of_all / 5

    table = DeltaTable(path)
    found = table.to_pyarrow_dataset().to_table(filter=ds.field(SLICE_COLUMN) >= 7)
    assert sorted(found["id"].to_pylist()) == sampled
    adds = [json.loads(add["stats"]) for add in live_adds(path).values()]
    needed = [add for add in adds if add["maxValues"][SLICE_COLUMN] >= 7]
    assert all(add["minValues"][SLICE_COLUMN] >= 0 for add in adds)
    assert sum(add["numRecords"] for add in needed) < 10_000 and len(needed) < len(adds) / 2


def with_duckdb(path: Path, where: str) -> tuple[list[int], int]:
    """The ids that a query of the table's files finds in order, and the bytes that it reads."""
    profile = path.with_name("profile.json")
    with duckdb.connect() as connection:
        connection.execute("pragma enable_profiling = 'json'")
        connection.execute(f"set profiling_output = '{profile}'")
        query = f"select id, a, text from '{path}/*.parquet' {where}"
        found = connection.execute(query).fetchall()
    told = json.loads(profile.read_text())
    # DuckDB 2 keeps it one level deeper.
    return sorted(row[0] for row in found), told.get("io", told)["total_bytes_read"]


@pytest.mark.parametrize("name", ["a{}", "a {}"], ids=["as they are", "mapped"])
def test_a_wide_table_has_statistics_of_its_slices(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    wide = rows(spark, 4000).select("*", *(F.col("a").alias(name.format(i)) for i in range(40)))
    path = str(tmp_path)
    write_table(wide, path=path, columns_to_index="id,a", cube_size=400, slices=True)
    (metadata,) = actions(path, 0, "metaData")
    in_files = names_in_files(metadata)[SLICE_COLUMN]
    assert (in_files == SLICE_COLUMN) == (name == "a{}")
    described = [json.loads(add["stats"]) for add in live_adds(path).values()]
    highest = [statistics["maxValues"][in_files] for statistics in described]
    assert max(highest) > 7 > min(highest)
    by_file = plain(spark, path).groupBy("_metadata.file_path").agg(F.max(SLICE_COLUMN))
    assert sorted(found for _, found in by_file.collect()) == sorted(highest)
    assert_slices(spark, path)


def test_a_table_with_mapped_names_stores_slices(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    named = rows(spark, 1000).withColumnRenamed("a", "a b")
    for _ in range(2):
        write_table(
            named,
            path=path,
            mode="overwrite",
            columns_to_index=["id", "a b"],
            slices=True,
            cube_size=100,
        )
        assert assert_sound(spark, path, range(1000)).slices
    with pytest.raises(Exception, match="DEPENDENT_COLUMN"):
        spark.sql(f"alter table delta.`{path}` rename column id to key")


def test_a_converted_table_has_slices_after_an_optimize(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    rows(spark, 1000).write.format("delta").save(path)
    assert convert_to_qbeast(spark, f"delta.`{path}`", "a,id", 100, slices=True).changed
    assert_slices(spark, path, list(range(1000)), missing=1000)
    assert not convert_to_qbeast(spark, f"delta.`{path}`", "a,id", slices=True).changed
    with pytest.raises(IndexMismatch, match="stores slices"):
        convert_to_qbeast(spark, f"delta.`{path}`", "a,id", slices=False)
    write_table(rows(spark, 500, 1000), path=path)
    table = assert_slices(spark, path, list(range(1500)), missing=1000)
    # The rows without one are right for Delta only when they are written by us.
    with pytest.raises(Exception, match="Generated Column"):
        spark.sql(f"delete from delta.`{path}` where id = 5")
    table.optimize(revision_id="all")
    assert_slices(spark, path, list(range(1500)))
    spark.sql(f"delete from delta.`{path}` where id = 5")
    assert_slices(spark, path, [i for i in range(1500) if i != 5])


def test_slices_stay_until_a_rebuild(spark: SparkSession, tmp_path: Path) -> None:
    path, more = str(tmp_path / "table"), rows(spark, 100, 500)
    write_table(rows(spark, 500), path=path, columns_to_index="id")
    with pytest.raises(IndexMismatch, match=r"does not store slices.*mode='overwrite'"):
        write_table(more, path=path, slices=True)
    with pytest.raises(InvalidOptions, match="true or false"):
        write_table(more, path=path, slices="yes")  # type: ignore[arg-type]
    write_table(more, path=path, slices=False)
    write_table(rows(spark, 500), path=path, mode="overwrite", slices=True)
    assert_slices(spark, path, list(range(500)))
    with pytest.raises(IndexMismatch, match=r"stores slices.*mode='overwrite'"):
        write_table(more, path=path, slices=False)
    copy = str(tmp_path / "copy")
    spark.sql(f"create table delta.`{copy}` shallow clone delta.`{path}`")
    assert QbeastTable.for_path(spark, copy).slices
    own = plain(spark, path)
    write_table(own, path=path, mode="overwrite", columns_to_index="id")
    assert not assert_sound(spark, path, range(500)).slices
    assert plain(spark, path).columns == ["id", "a", "text"]
    assert "qbeast.slices" not in configuration(path)


def test_a_column_of_that_name_stays_a_users_own(spark: SparkSession, tmp_path: Path) -> None:
    own, converted = str(tmp_path / "own"), str(tmp_path / "converted")
    with_own = rows(spark, 200).withColumn("_QBEAST_slice", F.lit(77))
    write_table(with_own, path=own, columns_to_index="id")
    write_table(with_own, path=own)
    table = assert_sound(spark, own, [*range(200)] * 2)
    assert {row[-1] for row in table.dataframe().collect()} == {77}
    with_own.write.format("delta").save(converted)
    with pytest.raises(IncompatibleTable, match="already has a column _qbeast_slice"):
        convert_to_qbeast(spark, f"delta.`{converted}`", "id", slices=True)
    write_table(with_own, path=own, mode="overwrite", columns_to_index="id", slices=True)
    assert_slices(spark, own, list(range(200)))
    # If another program rewrites the schema, the column becomes an ordinary one.
    overwrite = plain(spark, own).write.format("delta").mode("overwrite")
    overwrite.option("overwriteSchema", "true").save(own)
    assert not QbeastTable.for_path(spark, own).slices
    assert_sound(spark, own, range(200))


KEY_CHANGES = {
    "removed": "unset tblproperties ('qbeast.sampleKey')",
    "changed": """set tblproperties ('qbeast.sampleKey' = '["id"]')""",
}


@pytest.mark.parametrize("key", [None, "day,id"])
def test_slices_of_a_generated_column_are_refused_before_anything_is_computed(
    spark: SparkSession, tmp_path: Path, key: str | None
) -> None:
    path = str(tmp_path)
    spark.sql(
        f"create table delta.`{path}` (id bigint, day bigint generated always as (id div 7)) "
        "using delta"
    )
    options: dict[str, Any] = {"columns_to_index": "id" if key else "day", "sample_key": key}
    with pytest.raises(UnsupportedColumnType, match="'day' cannot be part of slices"):
        convert_to_qbeast(spark, f"delta.`{path}`", slices=True, **options)
    options |= {"mode": "overwrite", "overwrite_schema": False}
    with (
        counting(spark) as asked,
        pytest.raises(UnsupportedColumnType, match="'day' cannot be part of slices"),
    ):
        write_table(spark.range(20), path=path, slices=True, **options)
    assert not asked.jobs
    write_table(spark.range(20), path=path, **options)


def test_slices_of_a_name_that_spark_replaces_are_refused_before_anything_is_computed(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.range(20).withColumnRenamed("id", "${id}")
    with (
        counting(spark) as asked,
        pytest.raises(UnsupportedColumnType, match=r"Spark replaces \$\{...\} in SQL"),
    ):
        write_table(rows, path=str(tmp_path), columns_to_index=["${id}"], slices=True)
    assert not asked.jobs


def test_an_ordinary_column_of_that_name_gets_no_slices(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    rows = spark.range(100).selectExpr("id", "cast(id as int) as _qbeast_slice")
    write_table(rows, path=path, columns_to_index="id")
    new = {"columns_to_index": "id", "slices": True, "mode": "overwrite"}
    with pytest.raises(IncompatibleTable, match="already has a column _qbeast_slice"):
        write_table(spark.range(50), path=path, overwrite_schema=False, **new)
    assert write_table(spark.range(50), path=path, **new).rows == 50


@pytest.mark.parametrize("change", KEY_CHANGES.values(), ids=KEY_CHANGES)
def test_a_table_whose_slices_do_not_fit_its_samples_takes_no_rows(
    spark: SparkSession, tmp_path: Path, change: str
) -> None:
    path = sliced_table(spark, str(tmp_path), sample_key="a")
    spark.sql(f"alter table delta.`{path}` {change}")
    table = QbeastTable.for_path(spark, path)
    refused = (
        lambda: write_table(rows(spark, 10, 9000), path=path),
        lambda: table.delete("id = 5"),
        lambda: table.optimize(revision_id="all"),
    )
    for write in refused:
        with pytest.raises(IncompatibleTable, match=r"from hash\(`a`\), but its samples from .*id"):
            write()
    assert_sampled_by_weight(spark, path)
    write_table(rows(spark, 4000), path=path, mode="overwrite")
    assert_slices(spark, path, list(range(4000)))


@pytest.mark.parametrize("change", KEY_CHANGES.values(), ids=KEY_CHANGES)
def test_slices_of_another_key_lose_no_sampled_row(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    path = sliced_table(spark, str(tmp_path), sample_key="a")
    spark.sql(f"alter table delta.`{path}` {change}")
    # An earlier version accepted rows then.
    monkeypatch.setattr("qbeast_core.locate.compatibility._check_slices", lambda _: None)
    write_table(rows(spark, 4000, 4000), path=path)
    assert any(file.revision_id for file in QbeastTable.for_path(spark, path).files())
    assert_sampled_by_weight(spark, path)


def assert_sampled_by_weight(spark: SparkSession, path: str) -> None:
    """Samples have all rows whose present weight is in them, and no others."""
    weight = F.hash(*weight_columns(path)).alias("weight")
    read = plain(spark, path).select("id", weight).collect()
    table = QbeastTable.for_path(spark, path)
    for fraction in (0.1, 0.02):
        limit = weight_of_fraction(fraction)
        sampled = sorted(row.id for row in table.sample(fraction).collect())
        assert sampled == sorted(row.id for row in read if row.weight < limit)


def test_check_finds_a_wrong_slice(spark: SparkSession, tmp_path: Path) -> None:
    path = sliced_table(spark, str(tmp_path), 100)
    # A writer that does not keep to the protocol.
    wrong = pq.ParquetDataset(path).read().set_column(3, SLICE_COLUMN, pa.array([5] * 100, "int8"))
    pq.write_table(wrong, f"{path}/wrong.parquet")
    add = {
        "path": "wrong.parquet",
        "size": (tmp_path / "wrong.parquet").stat().st_size,
        "partitionValues": {},
        "modificationTime": 0,
        "dataChange": True,
    }
    (tmp_path / "_delta_log" / f"{1:020}.json").write_text(json.dumps({"add": add}))
    report = QbeastTable.for_path(spark, path).check()
    told = "with a slice that does not match the weight"
    assert any(told in problem for problem in report.problems), str(report)
