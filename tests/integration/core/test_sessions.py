"""A program with several Spark sessions: a table is read and changed in the one that opened it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from qbeast_core import QbeastTable, write_table
from tests.integration.core.brute_force import plain
from tests.integration.core.other_threads import in_other_thread

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
