"""Dropping columns keeps the rest of the table, also during concurrent writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from qbeast_core import QbeastTable, convert_to_qbeast, failpoints, write_table
from qbeast_core.errors import InvalidOptions, UnknownColumn
from qbeast_core.jvm.settings import changed_settings
from tests.integration.core.other_threads import Once
from tests.support.delta_log import actions, configuration, last_version, live_adds, plain
from tests.support.invariants import assert_rows_in_their_cubes, assert_sound


def rows(spark: SparkSession, first: int, count: int) -> DataFrame:
    return spark.range(first, first + count, 1, 1).selectExpr(
        "id", "pmod(hash(id), 1000) as a", "string(id) as `odd``name`", "1 as other"
    )


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    """A table of 600 rows, placed by `a` and sampled by `id`."""
    write_table(
        rows(spark, 0, 600),
        path=str(tmp_path),
        columns_to_index=["a"],
        sample_key="id",
        column_stats={"a": {"min": -5000, "max": 5000}},
        properties={"team": "us"},
        comment="it's ours",
    )
    return str(tmp_path)


def test_one_commit_leaves_all_else_unchanged(spark: SparkSession, path: str) -> None:
    def options() -> dict[str, str]:
        # The revision is a new one; what was left to choose is chosen for the narrower rows.
        own = ("qbeast.revision.", "columnsToIndex", "cubeSize")
        return {k: v for k, v in configuration(path).items() if not k.startswith(own)}

    before = options()
    QbeastTable.for_path(spark, path).drop_columns(["ODD`NAME", "other"])
    assert last_version(path) == 1
    assert plain(spark, path).columns == ["id", "a"]
    assert options() == before
    assert actions(path, 1, "metaData")[0]["description"] == "it's ours"
    (range_of_a,) = QbeastTable.for_path(spark, path).latest_revision.transformations
    assert (range_of_a.minimum, range_of_a.maximum) == (-5000, 5000)
    assert_sound(spark, path, range(600), where="a < 300")
    assert_rows_in_their_cubes(spark, path)


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_a_column_may_be_named_twice(spark: SparkSession, tmp_path: Path, mapping: str) -> None:
    mapped = {"delta.columnMapping.mode": mapping}
    write_table(rows(spark, 0, 9), path=tmp_path, columns_to_index="a", properties=mapped)
    QbeastTable.for_path(spark, tmp_path).drop_columns(["other", "OTHER"])
    assert plain(spark, tmp_path).columns == ["id", "a", "odd`name"]


def test_rows_and_columns_that_come_meanwhile_stay(spark: SparkSession, path: str) -> None:
    def write_more() -> None:
        write_table(rows(spark.newSession(), 600, 50), path=path)
        spark.sql(f"alter table delta.`{path}` add columns (more string)")
        spark.sql(f"insert into delta.`{path}` values (700, 1, 'x', 1, 'kept')")

    meanwhile = Once(write_more)
    with failpoints.at(failpoints.BEFORE_COMMIT, meanwhile):
        QbeastTable.for_path(spark, path).drop_columns("other")
    assert meanwhile.happened
    assert plain(spark, path).columns == ["id", "a", "odd`name", "more"]
    assert [row.id for row in plain(spark, path).where("more = 'kept'").collect()] == [700]
    assert_sound(spark, path, [*range(650), 700])


def test_mapped_columns_are_dropped_in_the_metadata_alone(spark: SparkSession, path: str) -> None:
    spark.sql(f"alter table delta.`{path}` set tblproperties ('delta.columnMapping.mode' = 'name')")
    files = live_adds(path)
    with changed_settings(spark, {"spark.sql.runSQLOnFiles": "false"}):
        QbeastTable.for_path(spark, path).drop_columns(["other"])
    assert plain(spark, path).columns == ["id", "a", "odd`name"]
    assert live_adds(path) == files


def test_delta_says_itself_why_a_mapped_column_stays(spark: SparkSession, path: str) -> None:
    """Also where the table could not be written to."""
    for change in (
        "set tblproperties ('delta.columnMapping.mode' = 'name')",
        "add constraint positive check (other > 0)",
        "set tblproperties ('delta.enableRowTracking' = 'true')",
    ):
        spark.sql(f"alter table delta.`{path}` {change}")
    with pytest.raises(AnalysisException, match="positive"):
        QbeastTable.for_path(spark, path).drop_columns(["other"])


@pytest.mark.parametrize("needed", ["a", "ID"])
def test_what_places_rows_cannot_be_dropped(spark: SparkSession, path: str, needed: str) -> None:
    table = QbeastTable.for_path(spark, path)
    with pytest.raises(InvalidOptions, match=rf"sampled by '{needed.lower()}'.*write_table"):
        table.drop_columns(["other", needed])
    with pytest.raises(UnknownColumn, match=r"'nope'.*the columns are id, a"):
        table.drop_columns(["nope"])
    assert last_version(path) == 0


@pytest.mark.parametrize(
    ("columns", "properties", "why"),
    [
        ("id bigint, v bigint", "'delta.constraints.small' = 'v < 100'", "constraint 'small'"),
        ("id bigint, v bigint", "'delta.dataSkippingStatsColumns' = 'id,v'", "does not accept"),
        (
            "id bigint, v bigint, w bigint generated always as (v + 1)",
            "'delta.appendOnly' = 'false'",
            "does not accept",
        ),
    ],
)
def test_what_delta_needs_cannot_be_dropped(
    spark: SparkSession, tmp_path: Path, columns: str, properties: str, why: str
) -> None:
    path = str(tmp_path / "t")
    spark.sql(f"create table delta.`{path}` ({columns}) using delta tblproperties ({properties})")
    convert_to_qbeast(spark, f"delta.`{path}`", ["id"])
    before = last_version(path)
    with pytest.raises(InvalidOptions, match=why):
        QbeastTable.for_path(spark, path).drop_columns("v")
    assert last_version(path) == before


def test_samples_stay_the_same_if_they_were_to_be_of_all_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, columns = str(tmp_path), ["id", "id % 7 as a"]
    write_table(
        spark.range(3000).selectExpr(*columns), path=path, columns_to_index="id", sample_key="all"
    )
    more = spark.range(3000, 3100).selectExpr(*columns, "'x' as b", "'y' as c")
    write_table(more, path=path, merge_schema=True)
    sampled = [row.id for row in QbeastTable.for_path(spark, path).sample(0.1).collect()]
    keys = {
        k: v
        for k, v in configuration(path).items()
        if k in ("qbeast.sampleKey", "qbeast.automatic")
    }
    QbeastTable.for_path(spark, path).drop_columns("c")
    table = QbeastTable.for_path(spark, path)
    assert sorted(row.id for row in table.sample(0.1).collect()) == sorted(sampled)
    assert keys == {k: v for k, v in configuration(path).items() if k in keys} and len(keys) == 2
