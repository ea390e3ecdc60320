"""The index page counts what samples and queries of real tables read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from pyspark.sql import DataFrame, SparkSession

from qbeast_core import QbeastTable, write_table
from tests.support.index_page import Shown, opened

DAYS = "date_add(date'2024-01-01', cast(pmod(hash(id, 1), {days}) as int)) as day"
FARE = "if(id % 50 = 0, null, 10 + pmod(hash(id, 2), 100000) / 1000D) as fare"


def written(path: str, **options: object) -> None:
    rows = options.pop("rows")
    assert isinstance(rows, DataFrame)
    write_table(rows.coalesce(1), path=path, **options)  # type: ignore[arg-type]


def appended(spark: SparkSession, path: str) -> None:
    """Dates and doubles with nulls, three writes, the last one beyond the range of the first."""
    for number, days in enumerate((40, 40, 90)):
        rows = spark.range(3000 * number, 3000 * (number + 1)).selectExpr(
            "id", DAYS.format(days=days), FARE
        )
        written(path, rows=rows, columns_to_index=["day", "fare"], cube_size=150)
    foreign = spark.range(500).selectExpr("id", DAYS.format(days=20), FARE)
    foreign.write.format("delta").mode("append").save(path)


def skewed(spark: SparkSession, path: str) -> None:
    """Decimals and texts by quantiles, with many equal values."""
    rows = spark.range(6000).selectExpr(
        "cast(exp(pmod(hash(id, 1), 1000) / 150D) as decimal(10,2)) as price",
        "concat(chr(97 + cast(25 * pow(pmod(hash(id, 2), 100) / 100D, 3) as int)), chr(39), "
        "cast(id % 30 as string)) as name",
    )
    columns = ["price:quantiles", "name:quantiles"]
    written(path, rows=rows, columns_to_index=columns, cube_size=150)


def of_other_types(spark: SparkSession, path: str) -> None:
    """Timestamps, a few whole numbers and floats."""
    rows = spark.range(6000).selectExpr(
        "timestamp_millis(1700000000000 + pmod(hash(id, 1), 86400000)) as at",
        "cast(id % 10 as smallint) as `the-grade`",
        "cast(pmod(hash(id, 3), 1000) / 7 as float) as share",
    )
    columns = ["at", "the-grade", "share"]
    written(path, rows=rows, columns_to_index=columns, cube_size=100)


def hashed(spark: SparkSession, path: str) -> None:
    """One column with a range and one without."""
    rows = spark.range(6000).selectExpr("id * 1000 as number", "cast(id % 97 as string) as kind")
    written(path, rows=rows, columns_to_index=["number", "kind"], cube_size=150)


@pytest.mark.parametrize("write", [appended, skewed, of_other_types, hashed])
def test_the_page_counts_what_is_read(
    spark: SparkSession, browser: Browser, tmp_path: Path, write: object
) -> None:
    path = str(tmp_path / "table")
    assert callable(write)
    write(spark, path)
    table = QbeastTable.for_path(spark, path)
    drawn = table.visualize_index(str(tmp_path / "index.html"))
    with opened(browser, drawn) as page:
        choices = [page.shown, *page.random_choices(25, seed=len(write.__name__))]
        assert page.problems == []
    assert any(shown.where for shown in choices)
    assert len({shown.files for shown in choices}) > 5
    for shown in choices:
        assert_is_read(table, shown)


def test_other_columns_are_chosen_in_the_page(
    spark: SparkSession, browser: Browser, tmp_path: Path
) -> None:
    path = str(tmp_path / "table")
    of_other_types(spark, path)
    table = QbeastTable.for_path(spark, path)
    drawn = table.visualize_index(str(tmp_path / "i.html"), columns=["share", "at"])
    with opened(browser, drawn) as page:
        across, upwards = page.page.locator("#pair select").all()
        assert [across.input_value(), upwards.input_value()] == ["2", "0"]
        upwards.select_option("the-grade")
        shown = page.choose(fraction=99, from_1=3, to_1=4)
        assert page.problems == []
    assert shown.where == "`the-grade` >= 3 and `the-grade` <= 4"
    assert_is_read(table, shown)


def assert_is_read(table: QbeastTable, shown: Shown) -> None:
    where = shown.where or None
    entries = table.files(shown.fraction, where)
    read = (len(entries), sum(entry.size_bytes for entry in entries))
    assert (shown.files, shown.bytes) == read, shown
    assert shown.rows == sum(entry.rows or 0 for entry in entries), shown
    if shown.fraction < 1:
        inputs = table.sample(shown.fraction, where).inputFiles()
        assert names(inputs) == names(entry.path for entry in entries), shown


def names(paths: Iterable[str]) -> set[str]:
    return {path.rpartition("/")[2] for path in paths}
