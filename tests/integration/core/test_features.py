"""Features of Delta that an index does not keep up are refused before anything is written."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable, convert_to_qbeast, write_table
from qbeast_core.errors import IncompatibleTable, InvalidOptions
from qbeast_core.jvm.settings import changed_settings
from tests.support.delta_log import last_version, plain
from tests.support.invariants import assert_sound

ROW_TRACKING = {"delta.enableRowTracking": "true"}
UNIFORM = {
    "delta.enableIcebergCompatV2": "true",
    "delta.universalFormat.enabledFormats": "iceberg",
    "delta.columnMapping.mode": "name",
}
REFUSED = {
    "row tracking": ROW_TRACKING,
    "row tracking, by its feature": {"delta.feature.rowTracking": "supported"},
    "UniForm": UNIFORM,
    "UniForm for Hudi": {"delta.universalFormat.enabledFormats": "hudi"},
}


@pytest.mark.parametrize("feature", REFUSED)
def test_a_table_is_not_created_with_a_feature_that_fails_later(
    spark: SparkSession, tmp_path: Path, feature: str
) -> None:
    path, rows = str(tmp_path / "t"), spark.range(10)
    with pytest.raises(IncompatibleTable, match="leave out the table property"):
        write_table(rows, path=path, columns_to_index="id", properties=REFUSED[feature])
    assert not Path(path, "_delta_log").exists() or last_version(path) == -1


def test_a_default_of_the_session_counts_too(spark: SparkSession, tmp_path: Path) -> None:
    path, rows = str(tmp_path / "t"), spark.range(10)
    default = "spark.databricks.delta.properties.defaults.enableRowTracking"
    with changed_settings(spark, {default: "true"}):
        with pytest.raises(IncompatibleTable, match="row tracking"):
            write_table(rows, path=path, columns_to_index="id")
        off = {"delta.enableRowTracking": "false"}
        write_table(rows, path=path, columns_to_index="id", properties=off)
    write_table(rows, path=path)
    assert_sound(spark, path)
    source = str(tmp_path / "parquet")
    rows.write.parquet(source)
    with changed_settings(spark, {default: "true"}), pytest.raises(IncompatibleTable):
        convert_to_qbeast(spark, f"parquet.`{source}`", ["id"])
    assert not Path(source, "_delta_log").exists()


@pytest.mark.parametrize("name", ["delta.feature.noSuchFeature", "delta.noSuchProperty"])
def test_a_property_that_delta_does_not_know_is_refused(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    with pytest.raises(InvalidOptions, match=r"(?i)noSuch"):
        write_table(
            spark.range(3),
            path=str(tmp_path / "t"),
            columns_to_index="id",
            properties={name: "supported"},
        )


def clustered(spark: SparkSession, path: str) -> None:
    spark.sql(f"create table delta.`{path}` (id bigint, a bigint) using delta cluster by (a)")


def with_properties(properties: dict[str, str]) -> Callable[[SparkSession, str], None]:
    def make(spark: SparkSession, path: str) -> None:
        spark.range(5).write.format("delta").options(**properties).save(path)

    return make


@pytest.mark.parametrize(
    "make", [clustered, with_properties(ROW_TRACKING), with_properties(UNIFORM)]
)
def test_the_advice_makes_the_table_writable(
    spark: SparkSession, tmp_path: Path, make: Callable[[SparkSession, str], None]
) -> None:
    path = str(tmp_path / "t")
    make(spark, path)
    before = last_version(path)
    rows = spark.range(10).selectExpr("id", "id as a")
    attempts: list[Callable[[], Any]] = [
        lambda: write_table(rows, path=path, mode="overwrite", columns_to_index="id"),
        lambda: convert_to_qbeast(spark, f"delta.`{path}`", ["id"]),
    ]
    messages = []
    for attempt in attempts:
        with pytest.raises(IncompatibleTable) as refused:
            attempt()
        messages.append(str(refused.value))
    assert last_version(path) == before

    statements = re.findall(r"ALTER TABLE .*?(?= and ALTER| first)", messages[0])
    assert statements and messages[0] == messages[1]
    for statement in statements:
        spark.sql(statement).collect()
    convert_to_qbeast(spark, f"delta.`{path}`", ["id"])
    write_table(rows.select("id"), path=path)
    write_table(rows, path=path, mode="overwrite", columns_to_index="id")
    write_table(rows, path=path)
    QbeastTable.for_path(spark, path).optimize()
    assert_sound(spark, path)


def test_a_change_is_refused_before_its_source_is_computed(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    write_table(spark.range(10), path=path, columns_to_index="id")
    spark.sql(f"alter table delta.`{path}` cluster by (id)").collect()
    failing = spark.range(1).selectExpr("raise_error('computed') is null as id")
    table = QbeastTable.for_path(spark, path)
    changes: list[Callable[[], Any]] = [
        lambda: table.merge(failing, on="id"),
        lambda: table.replace_matching(failing, on="id"),
        lambda: table.replace_where(failing, "id > 5"),
        lambda: write_table(failing, path=path),
        lambda: write_table(failing, path=path, mode="overwrite"),
    ]
    for change in changes:
        with pytest.raises(IncompatibleTable, match="CLUSTER BY NONE"):
            change()


def test_a_property_cannot_bring_the_feature_to_a_table_that_exists(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, rows = str(tmp_path / "t"), spark.range(10)
    write_table(rows, path=path, columns_to_index="id")
    with pytest.raises(IncompatibleTable, match="row tracking"):
        write_table(rows, path=path, mode="overwrite", properties=ROW_TRACKING)
    assert last_version(path) == 0


@pytest.fixture(scope="module")
def indexed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table that no test changes."""
    path = tmp_path_factory.mktemp("indexed") / "t"
    rows = spark.range(200).selectExpr("id", "id * 31 % 211 as a")
    write_table(rows, path=str(path), columns_to_index="a", cube_size=20)
    return path


def protocol_of(reader: int, writer: int, *features: str) -> dict[str, Any]:
    """A protocol that Delta may have one day."""
    readers = {"readerFeatures": features} if reader > 1 else {}
    return {
        "minReaderVersion": reader,
        "minWriterVersion": writer,
        "writerFeatures": features,
        **readers,
    }


@pytest.mark.parametrize(
    ("protocol", "is_readable", "named"),
    [
        (protocol_of(1, 7, "fromTheFuture"), True, "fromTheFuture"),
        (protocol_of(3, 7, "fromTheFuture"), False, "fromTheFuture"),
        (protocol_of(4, 8), False, "reader version 4 and writer version 8"),
    ],
    ids=["for writers", "for readers", "version"],
)
def test_a_table_of_a_newer_delta_is_refused_and_stays_as_it_is(
    spark: SparkSession,
    indexed: Path,
    tmp_path: Path,
    protocol: dict[str, Any],
    is_readable: bool,
    named: str,
) -> None:
    root, path = tmp_path / "t", str(tmp_path / "t")
    shutil.copytree(indexed, root)
    (root / "_delta_log" / f"{1:020}.json").write_text(json.dumps({"protocol": protocol}))
    before = sorted(file.relative_to(root) for file in root.rglob("*"))
    rows = spark.range(5).selectExpr("id", "id as a")

    def table() -> QbeastTable:
        return QbeastTable.for_path(spark, path)

    attempts: list[Callable[[], Any]] = [
        lambda: write_table(rows, path=path),
        lambda: write_table(rows, path=path, mode="overwrite", columns_to_index="a"),
        lambda: table().merge(rows, "id"),
        lambda: table().update({"a": "0"}),
        lambda: table().delete("id < 5"),
        lambda: table().replace_where(rows, "id < 5"),
        lambda: table().drop_columns("id"),
        lambda: table().optimize("all"),
        lambda: convert_to_qbeast(spark, f"delta.`{path}`", "a"),
    ]
    if is_readable:
        attempts.pop()  # nothing to convert
        found = sorted(table().sample(0.4).collect())
        assert found == sorted(plain(spark, path).where(table().sample_condition(0.4)).collect())
        assert len(found) > 40 and table().check().ok
    else:
        attempts += [lambda: table().sample(0.4), lambda: table().check()]
    for attempt in attempts:
        with pytest.raises(IncompatibleTable, match=named) as refused:
            attempt()
        assert re.search(r"newer Delta Lake|another table", str(refused.value))
        assert "\n" not in str(refused.value)
    assert sorted(file.relative_to(root) for file in root.rglob("*")) == before


def test_rows_of_an_append_only_table_cannot_be_changed_even_if_there_are_none(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, other = str(tmp_path / "t"), str(tmp_path / "plain")
    rows = spark.range(10).selectExpr("id", "0 as n")
    properties = {"delta.appendOnly": "true"}
    write_table(rows, path=path, columns_to_index="id", properties=properties)
    rows.write.format("delta").options(**properties).save(other)
    table, new = QbeastTable.for_path(spark, path), spark.range(100, 101).selectExpr("id", "0 as n")
    failing = new.selectExpr("id", "if(raise_error('computed') is null, 0, 1) as n")
    for ours, delta in (
        (lambda: table.delete("id > 50"), f"delete from delta.`{other}` where id > 50"),
        (
            lambda: table.update({"n": "1"}, "id > 50"),
            f"update delta.`{other}` set n = 1 where id > 50",
        ),
        (
            lambda: table.replace_where(failing, "id >= 100"),
            f"insert into delta.`{other}` replace where id >= 100 select 100L, 0",
        ),
        (
            lambda: table.replace_matching(failing, "id"),
            f"delete from delta.`{other}` where id = 100",
        ),
        (lambda: table.drop_columns("n"), f"delete from delta.`{other}`"),
        (
            lambda: write_table(failing, path=path, mode="overwrite"),
            f"insert overwrite delta.`{other}` select 1L, 0",
        ),
    ):
        with pytest.raises(Exception, match="DELTA_CANNOT_MODIFY_APPEND_ONLY"):
            spark.sql(delta)
        with pytest.raises(IncompatibleTable, match=r"append-only.*appendOnly' = 'false'"):
            ours()
    assert last_version(path) == 0
    write_table(new, path=path)
    table.optimize()
    assert_sound(spark, path, [*range(10), 100])


def test_a_table_without_rows_is_append_only_too(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    spark.sql(
        f"create table delta.`{path}` (id bigint) using delta "
        "tblproperties ('delta.appendOnly' = 'true')"
    )
    with pytest.raises(IncompatibleTable, match="append-only"):
        write_table(spark.range(5), path=path, mode="overwrite", columns_to_index="id")
    assert last_version(path) == 0
    convert_to_qbeast(spark, f"delta.`{path}`", "id")
    write_table(spark.range(5), path=path)
    assert_sound(spark, path, range(5))


def test_a_merge_into_an_append_only_table_can_only_insert(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    properties = {"delta.appendOnly": "true"}
    write_table(
        spark.range(10).selectExpr("id", "0 as n"),
        path=path,
        columns_to_index="id",
        properties=properties,
    )
    table = QbeastTable.for_path(spark, path)
    with pytest.raises(IncompatibleTable, match="append-only"):
        table.merge(spark.range(5, 15).selectExpr("id", "1 as n"), on="id")
    assert last_version(path) == 0
    new = spark.range(5, 15).selectExpr("id", "1 as n")
    assert table.merge(new, on="id", update=False).rows_inserted == 5
    assert table.merge(spark.range(20, 25).selectExpr("id", "1 as n"), on="id").rows_inserted == 5
    assert_sound(spark, path, [*range(15), *range(20, 25)])


def test_an_anchor_is_put_on_a_file_without_a_deletion_vector(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Delta adds no file with a deletion vector while the table's property is off."""
    path = str(tmp_path / "t")
    key = "delta.enableDeletionVectors"
    write_table(
        spark.range(2000), path=path, columns_to_index="id", cube_size=100, properties={key: "true"}
    )
    rows = plain(spark, path).selectExpr("id", "_metadata.file_name", "hash(id)").collect()
    whole = max(rows, key=lambda row: row[2]).file_name
    hidden = [row.id for row in rows if row.file_name != whole and row.id % 10 == 0]
    spark.sql(f"delete from delta.`{path}` where id in ({', '.join(map(str, hidden))})")
    spark.sql(f"alter table delta.`{path}` set tblproperties('{key}' = 'false')")
    where = "hash(id) < -1717986918"
    left = [row.id for row in plain(spark, path).where(f"not ({where})").collect()]
    QbeastTable.for_path(spark, path).delete(where)
    assert_sound(spark, path, left)
