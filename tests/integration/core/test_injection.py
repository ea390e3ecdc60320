"""Names, texts and conditions that try to break out of the SQL they are put into."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qbeast_core import (
    QbeastTable,
    changed_settings,
    convert_to_qbeast,
    quoted,
    quoted_text,
    run_statement,
    write_table,
)
from qbeast_core.errors import IncompatibleTable, InvalidOptions, UnsupportedColumnType
from tests.support.delta_log import actions, last_version

TEXTS = st.one_of(st.text(max_size=20), st.text(alphabet="'\"`\\$u0024{};-/*\n\r\0a", max_size=20))


@pytest.fixture
def canary(spark: SparkSession) -> Iterator[str]:
    """A table that every injection tries to drop."""
    spark.sql("create table canary using delta as select 1 as a")
    yield "canary"
    assert spark.table("canary").count() == 1
    spark.sql("drop table canary")


@given(st.lists(TEXTS, min_size=50, max_size=50))
@settings(max_examples=4, suppress_health_check=list(HealthCheck))
def test_spark_reads_names_and_texts_unchanged(spark: SparkSession, texts: list[str]) -> None:
    row = spark.sql("select " + ", ".join(map(quoted_text, texts))).first()
    assert row is not None and list(row) == texts
    names = ["name", *filter(None, texts)]
    named = run_statement(spark, "select " + ", ".join(f"1 as {quoted(name)}" for name in names))
    assert named.columns == names


def test_a_text_never_shows_the_environment_or_a_setting(spark: SparkSession) -> None:
    assert "HOME" in os.environ
    for text in ("${env:HOME}", "${system:user.home}", "${spark.app.name}", "$${env:HOME}"):
        row = spark.sql(f"select {quoted_text(text)}").first()
        assert row is not None and row[0] == text


def test_hostile_names_and_texts_are_data_in_every_operation(
    spark: SparkSession, tmp_path: Path, canary: str
) -> None:
    number, text, key = "x`; drop table canary; --", "s') from canary /*", 'k" \\'
    setting = "${spark.sql.shuffle.partitions}"
    inner = "f>, `b` int) comment 'y"
    hostile = "it's \\'; drop table canary; -- ${env:HOME} \n"

    def rows(first: int, count: int) -> DataFrame:
        ids = spark.range(first, first + count)
        return ids.select(
            "id",
            (F.col("id") * 37 % 211).alias(number),
            F.concat(F.lit("s"), F.col("id") % 13).alias(text),
            F.col("id").alias(key),
            F.struct(F.col("id").alias(inner)).alias("nested"),
            F.col("id").alias(setting),
            F.col("id").alias("2"),  # the value of the setting
        )

    location = str(tmp_path / "a'b; drop table canary -- `")
    write_table(
        rows(0, 200),
        table="hostile",
        location=location,
        columns_to_index=[number, text],
        sample_key=[key],
        slices=True,
        cube_size=50,
        properties={
            "delta.columnMapping.mode": "name",
            hostile: hostile,
        },
        comment=hostile,
        user_metadata=hostile,
    )
    write_table(rows(200, 50), table="hostile")
    table = QbeastTable.for_name(spark, "hostile")
    where = f"{quoted(number)} < 100"
    assert table.columns_to_index == [number, text]
    sampled = table.sample(0.4, where)
    condition = table.sample_condition(0.4)
    expected = spark.table("hostile").where(condition).where(where)
    assert sorted(sampled.select("id").collect()) == sorted(expected.select("id").collect())
    assert table.files(0.4, where)
    assert len(table.estimate(f"avg({quoted(key)})", group_by=quoted(text)).groups) == 13

    table.update({number: f"{quoted(number)} + 1", text: quoted_text(hostile)}, "id < 5")
    table.update({setting: f"{quoted('2')} * 2"}, "id < 5")
    table.merge(rows(248, 4), on=[key], where=f"target.{quoted(number)} >= 0")
    table.replace_matching(rows(10, 5), on=key)
    table.replace_where(rows(20, 5), "id between 20 and 24")
    table.delete(f"{quoted(text)} = {quoted_text(hostile)} and id < 2")
    table.optimize("all")
    write_table(rows(300, 10), path=location, user_metadata=hostile)
    newest = QbeastTable.for_name(spark, "hostile")
    assert newest.check().ok, str(newest.check())
    assert newest.dataframe().count() == 260
    assert spark.table("hostile").where(f"{quoted(text)} = {quoted_text(hostile)}").count() == 3
    with pytest.raises(UnsupportedColumnType, match="Spark replaces"):
        write_table(
            rows(0, 9), table="hostile", mode="overwrite", columns_to_index=[setting], slices=True
        )
    newest.visualize_index(str(tmp_path / "index.html"))
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    newest.drop_columns(["nested", setting])
    assert QbeastTable.for_name(spark, "hostile").dataframe().columns == [
        "id",
        number,
        text,
        key,
        "2",
    ]

    (metadata,) = actions(location, 0, "metaData")
    assert metadata["configuration"][hostile] == metadata["description"] == hostile
    (info,) = actions(location, 0, "commitInfo")
    assert info["userMetadata"] == hostile
    spark.sql("drop table hostile")


def test_conditions_are_expressions_and_no_statements(
    spark: SparkSession, tmp_path: Path, canary: str
) -> None:
    path = str(tmp_path / "t")
    write_table(spark.range(20), path=path, columns_to_index=["id"])
    table = QbeastTable.for_path(spark, path)
    for text in (
        "1 = 1; drop table canary",
        "id > 0) or (1 = 1",
        "id > 0 -- ) \n; drop table canary",
        "drop table canary",
        "id in (select a from canary",
        "",
        "`",
        "'",
        "/*",
        "\0",
    ):
        for call in (table.sample, table.files):
            with pytest.raises(AnalysisException):
                call(0.5, text)
        changes: list[Callable[[str], object]] = [
            table.delete,
            lambda where: table.update({"id": where}),
            lambda where: table.replace_where(spark.range(1), where),
            lambda where: table.merge(spark.range(1), "id", where=where),
            table.estimate,
            lambda group: table.estimate("count(*)", group_by=group),
        ]
        for change in changes:
            with pytest.raises((AnalysisException, InvalidOptions)):
                change(text)
    for name in ("canary; drop table canary", "canary`", "", "a.b.c.d", "\0"):
        with pytest.raises((AnalysisException, InvalidOptions)):
            QbeastTable.for_name(spark, name)
        assert not QbeastTable.is_qbeast(spark, name)
    assert last_version(path) == 0


@pytest.mark.parametrize("place", ["..%2Fother/", "file:{other}/"])
def test_files_that_a_log_names_elsewhere_are_read_but_never_deleted(
    spark: SparkSession, tmp_path: Path, place: str
) -> None:
    """An absolute path can be of a shallow clone, which may change; `..` has no such use."""
    other = tmp_path / "other"
    spark.range(100, 110).coalesce(1).write.format("delta").save(str(other))
    (stolen,) = other.glob("*.parquet")
    (added,) = actions(other, 0, "add")
    path = str(tmp_path / "t")
    write_table(spark.range(10), path=path, columns_to_index=["id"])
    entry = {**added, "path": place.format(other=other) + stolen.name}
    Path(path, "_delta_log", f"{1:020}.json").write_text(json.dumps({"add": entry}))

    table = QbeastTable.for_path(spark, path)
    assert table.dataframe().count() == table.sample(1.0).count() == 20
    assert table.check().unindexed_files == 1
    spark.sql(f"create table delta.`{tmp_path}/clone` shallow clone delta.`{path}`")
    properties = "('qbeast.lastRevisionID', 'qbeast.revision.1', 'qbeast.revision.0')"
    spark.sql(f"alter table delta.`{tmp_path}/clone` unset tblproperties if exists {properties}")
    with pytest.raises(IncompatibleTable, match="files outside its directory"):
        convert_to_qbeast(spark, f"delta.`{tmp_path}/clone`", "id")

    changed = place.startswith("file:")
    if changed:
        table.delete("id = 105")
        QbeastTable.for_path(spark, path).optimize()
    else:
        for change in (lambda: table.delete("id = 105"), table.optimize):
            with pytest.raises(IncompatibleTable, match="1 files outside its directory"):
                change()
        write_table(table.dataframe(), path=path, mode="overwrite")
    short = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}
    with changed_settings(spark, short):
        spark.sql(f"vacuum delta.`{path}` retain 0 hours")
    assert QbeastTable.for_path(spark, path).dataframe().count() == (19 if changed else 20)
    assert stolen.exists()
    assert spark.read.format("delta").load(str(other)).count() == 10
