"""A program with several Spark sessions: a table is read and changed in the one that opened it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from qbeast_core import QbeastTable, write_table
from tests.integration.core.other_threads import in_other_thread
from tests.support.delta_log import plain

WHERE = "ts >= timestamp'2024-01-01 00:00:00'"
SHOWN = ("id", "cast(ts as string) as shown")


def session_in(spark: SparkSession, zone: str) -> SparkSession:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    return session


@pytest.fixture
def here(spark: SparkSession) -> SparkSession:
    return session_in(spark, "UTC")


@pytest.fixture
def elsewhere(spark: SparkSession) -> SparkSession:
    return session_in(spark, "Pacific/Honolulu")


def moments(session: SparkSession, first: int, last: int, s: str) -> DataFrame:
    """A row per minute; `WHERE` is true from row 1120 on, and in Honolulu from row 1720 on."""
    columns = ["id", "timestamp_seconds(1704000000 + id * 60) as ts", f"'{s}' as s"]
    return session.range(first, last).selectExpr(*columns)


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    write_table(moments(spark, 0, 4800, "old"), path=path, columns_to_index="ts", cube_size=50)
    return path


def make_rows(session: SparkSession, path: str) -> None:
    session.createDataFrame([(1,)], "x int")


def open_table(session: SparkSession, path: str) -> None:
    QbeastTable.for_path(session, path)


@pytest.mark.parametrize("use", [make_rows, open_table])
def test_a_table_is_read_in_its_own_session_after_another_one_was_used(
    here: SparkSession,
    elsewhere: SparkSession,
    path: str,
    use: Callable[[SparkSession, str], None],
) -> None:
    table = QbeastTable.for_path(here, path)
    files = table.files(where=WHERE)
    expected = sorted(plain(here, path).where(WHERE).selectExpr(*SHOWN).collect())

    use(elsewhere, path)
    assert table.files(where=WHERE) == files
    use(elsewhere, path)
    assert sorted(table.sample(1.0, where=WHERE).selectExpr(*SHOWN).collect()) == expected
    use(elsewhere, path)
    assert sorted(table.dataframe().where(WHERE).selectExpr(*SHOWN).collect()) == expected


def test_a_table_is_read_in_its_own_session_by_another_thread(
    elsewhere: SparkSession, path: str
) -> None:
    table = QbeastTable.for_path(elsewhere, path)
    expected = sorted(plain(elsewhere, path).where(WHERE).selectExpr(*SHOWN).collect())

    found = in_other_thread(lambda: table.sample(1.0, where=WHERE).selectExpr(*SHOWN).collect())
    assert sorted(found) == expected


def test_a_sample_has_the_functions_and_the_views_of_its_tables_session(
    here: SparkSession, elsewhere: SparkSession, path: str
) -> None:
    here.sql("create temporary function is_even(id bigint) returns boolean return id % 2 = 0")
    table = QbeastTable.for_path(here, path)
    make_rows(elsewhere, path)

    table.sample(1.0, where="is_even(id)").createTempView("even")
    assert here.table("even").count() == 2400


def test_a_merge_of_rows_of_another_session_matches_the_rows_that_deltas_merge_matches(
    here: SparkSession, elsewhere: SparkSession, path: str, tmp_path: Path
) -> None:
    twin = str(tmp_path / "twin")
    moments(here, 0, 4800, "old").write.format("delta").save(twin)
    source, where = moments(elsewhere, 1000, 2000, "new"), f"target.{WHERE}"

    result = QbeastTable.for_path(here, path).merge(source, "id", where=where)
    merge = (
        DeltaTable.forPath(here, twin)
        .alias("target")
        .merge(source.alias("source"), f"target.id = source.id and {where}")
    )
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    assert (result.rows_updated, result.rows_inserted) == (880, 120)
    assert sorted(plain(here, path).collect()) == sorted(plain(here, twin).collect())


def test_rows_of_another_session_replace_the_rows_that_their_own_condition_selects(
    here: SparkSession, elsewhere: SparkSession, path: str
) -> None:
    source = moments(elsewhere, 1120, 2000, "new")
    result = QbeastTable.for_path(here, path).replace_where(source, WHERE)

    assert (result.rows_deleted, result.rows_inserted) == (3680, 880)
    expected = [
        *moments(here, 0, 1120, "old").collect(),
        *moments(here, 1120, 2000, "new").collect(),
    ]
    assert sorted(plain(here, path).collect()) == sorted(expected)


def test_the_rows_of_a_streams_batch_are_merged_in_the_session_of_the_table(
    here: SparkSession, path: str, tmp_path: Path
) -> None:
    moments(here, 1000, 2000, "new").write.parquet(str(tmp_path / "source"))
    table, results = QbeastTable.for_path(here, path), []

    def write(batch: DataFrame, _: int) -> None:
        # A stream runs in a copy of its session.
        batch.sparkSession.conf.set("spark.sql.session.timeZone", "Pacific/Honolulu")
        results.append(table.merge(batch, "id", where=f"target.{WHERE}"))

    source = here.readStream.schema("id long, ts timestamp, s string")
    stream = source.parquet(str(tmp_path / "source")).writeStream.foreachBatch(write)
    stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    stream.trigger(availableNow=True).start().awaitTermination()

    (result,) = results
    assert (result.rows_updated, result.rows_inserted) == (880, 120)
    assert plain(here, path).where("s = 'new'").count() == 1000
