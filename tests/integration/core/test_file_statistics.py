"""Writes log the same statistics of files as Delta does."""

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession

from benchmarks.scans import scanned
from qbeast_core import write_table
from qbeast_core.delta import statistics as late_statistics
from qbeast_core.delta import transaction
from qbeast_core.jvm.settings import changed_settings, session_with
from tests.support.counters import counting
from tests.support.delta_log import live_adds
from tests.support.invariants import assert_sound

COLUMNS = {
    "id": "id",
    "word": "concat('wörd-', id)",
    "missing": "cast(null as string)",
    "some_missing": "if(id % 3 = 0, cast(id as string), null)",
    "longer_than_a_prefix": "concat(repeat('z', 60), id)",
    "wide": "concat(repeat('z', id % 3), repeat('𐀀', 40), id)",
    "as_large_as_it_can_be": "concat(repeat('z', 32), repeat('\U0010ffff', id % 20))",
    "amount": "cast(id as decimal(38, 10)) / 3",
    "price": "cast((id - 700) / 8 as decimal(18, 4))",
    "tiny": "cast(id / 1000000000 as decimal(18, 12))",
    "some_missing_price": "if(id % 7 = 0, null, cast(id - 20 as decimal(7, 2)))",
    "missing_price": "cast(null as decimal(9, 3))",
    "at": "timestamp_millis(id * 1000)",
    "day": "date_add(date'2020-01-01', cast(id as int))",
    "even": "id % 2 = 0",
    "bytes": "cast(cast(id as string) as binary)",
    "micros": "timestamp_micros(id * 1234567 - 900000000)",
    "local": "cast(timestamp_micros(900000000 - id * 1234567) as timestamp_ntz)",
    "x": "cast(id as double) / 7",
    "minus_x": "cast(id as double) / -1e30",
    "ratio": "if(id % 11 = 0, null, cast(id as float) / 7)",
    "endless": "if(id % 400 > 8, id, double(if(id % 2 = 0, 'Infinity', '-Infinity')))",
    "missing_double": "cast(null as double)",
    "missing_flag": "cast(null as boolean)",
    "small": "cast(id % 100 - 50 as tinyint)",
    "missing_short": "cast(null as smallint)",
    "some_missing_int": "if(id % 5 = 0, null, cast(700 - id as int))",
    "before_1970": "date_sub(date'1970-01-01', cast(id as int))",
    'quo"te': "'c'",
}


@pytest.fixture(autouse=True)
def _as_of_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small writes also read their statistics from footers, as only large ones do."""
    monkeypatch.setattr(late_statistics, "MIN_ROWS", 0)


@pytest.fixture
def footers_read(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The files of each call that read footers."""
    asked: list[Any] = []
    found = late_statistics.LateStatistics.added_to

    def recorded(late: Any, adds: Any, entries: Any) -> Any:
        asked.append(entries)
        return found(late, adds, entries)

    monkeypatch.setattr(late_statistics.LateStatistics, "added_to", recorded)
    return asked


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    df = spark.range(1500)
    return df.selectExpr(*(f"{sql} as `{name}`" for name, sql in COLUMNS.items()))


def statistics(table: Path) -> dict[str, Any]:
    """The statistics of each added file; non-zero numbers as text."""
    found = {}
    for commit in sorted((table / "_delta_log").glob("*.json")):
        for line in commit.read_text(encoding="utf-8").splitlines():
            if add := json.loads(line).get("add"):
                found[add["path"]] = json.loads(add["stats"], parse_float=_number)
    return found


def of_one_file(
    rows: DataFrame, directory: Path, settings: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The statistics of a file with these rows, as written by us and by Delta."""
    with changed_settings(rows.sparkSession, settings):
        write_table(rows, path=str(directory / "t"), columns_to_index="id")
        rows.coalesce(1).write.format("delta").save(str(directory / "plain"))
    (ours,), (plain,) = (statistics(directory / name).values() for name in ("t", "plain"))
    return ours, plain


def _number(text: str) -> str:
    # Parquet writes a zero minimum as -0.0.
    return text if float(text) else "0.0"


@pytest.mark.parametrize("found_later_from", [0, 1501], ids=["found later", "collected by Delta"])
def test_statistics_equal_those_of_a_plain_write(
    spark: SparkSession,
    rows: DataFrame,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    found_later_from: int,
) -> None:
    monkeypatch.setattr(late_statistics, "MIN_ROWS", found_later_from)
    write_table(rows, path=str(tmp_path / "t"), columns_to_index=["id", "x"], cube_size=400)
    ours = statistics(tmp_path / "t")
    assert len(ours) > 2
    for number, (name, found) in enumerate(ours.items()):
        plain = tmp_path / f"plain{number}"
        of_file = spark.read.parquet(str(tmp_path / "t" / name)).coalesce(1)
        of_file.write.format("delta").save(str(plain))
        (expected,) = statistics(plain).values()
        assert found == expected


def test_footers_are_read_by_tasks(
    spark: SparkSession, rows: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = []
    for name, found_later_from in (("later", 0), ("by Delta", 1501)):
        monkeypatch.setattr(late_statistics, "MIN_ROWS", found_later_from)
        with counting(spark) as asked:
            write_table(rows, path=str(tmp_path / name), columns_to_index="id", cube_size=400)
        jobs.append(asked.jobs)
    assert jobs[0] == jobs[1] + 1


@pytest.mark.parametrize(
    "settings",
    [
        {"spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY"},
        {"spark.sql.parquet.outputTimestampType": "INT96"},
        {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS"},
        {"spark.sql.parquet.datetimeRebaseModeInWrite": "legacy"},
        pytest.param(
            {"spark.sql.parquet.datetimeRebaseModeInWrite": " Legacy "},
            marks=pytest.mark.skipif(
                pyspark.__version__ < "4.1", reason="Spark 4.0 takes no spaces there"
            ),
        ),
    ],
    ids=lambda settings: ", ".join(settings.values()),
)
def test_dates_and_timestamps_have_statistics_in_every_format(
    spark: SparkSession, tmp_path: Path, settings: dict[str, str]
) -> None:
    rows = spark.range(1500).selectExpr(
        "id",
        "date_add(date'1000-02-01', cast(id as int)) as day",
        "timestamp_millis(id * 100000000 - 30000000000000) as at",
    )
    ours, plain = of_one_file(rows, tmp_path, settings)
    assert ours == plain
    assert plain["minValues"]["day"] == "1000-02-01"
    assert plain["minValues"]["at"].startswith("1019-05-")
    for condition in ("day = date'1000-02-01'", "at < timestamp'1019-06-01 00:00:00'"):
        found = [
            spark.read.format("delta").load(str(tmp_path / table)).where(condition).count()
            for table in ("t", "plain")
        ]
        assert found[0] == found[1] > 0


def test_files_with_nan_are_never_skipped(spark: SparkSession, tmp_path: Path) -> None:
    columns = {
        "id": "id",
        "x": "if(id = 42, double('NaN'), id / 7)",
        "small": "if(id = 42, float('NaN'), cast(id as float))",
        "all": "double('NaN')",
        "zero": "if(id % 2 = 0, -0.0D, 0.0D)",
    }
    rows = spark.range(100).selectExpr(*(f"{sql} as {name}" for name, sql in columns.items()))
    write_table(rows, path=str(tmp_path), columns_to_index="id", cube_size=20)

    table = spark.read.format("delta").load(str(tmp_path))
    # Spark treats all NaN as equal, and as larger than any number.
    assert table.where("x > 1000").count() == table.where("small = float('NaN')").count() == 1
    assert table.where("all > 1").count() == 100
    # Parquet's reader takes -0.0 and 0.0 for different, so its filters are off.
    with changed_settings(spark, {"spark.sql.parquet.filterPushdown": "false"}):
        assert table.where("zero = 0").count() == 100
        assert table.where("zero >= 0 and zero <= -0.0D").count() == 100
    found = list(statistics(tmp_path).values())
    assert len(found) > 2
    assert ["x" in each["minValues"] for each in found].count(False) == 1
    assert not any("all" in each["maxValues"] for each in found)
    assert {each["nullCount"]["x"] for each in found} == {0}


@pytest.mark.parametrize(
    "properties",
    [
        {"delta.dataSkippingStatsColumns": "id,word"},
        {"delta.dataSkippingNumIndexedCols": "2"},
    ],
    ids=["columns", "count"],
)
def test_a_choice_of_columns_is_respected(
    rows: DataFrame, tmp_path: Path, properties: dict[str, str]
) -> None:
    write_table(rows, path=str(tmp_path), columns_to_index="id", properties=properties)
    (found,) = statistics(tmp_path).values()
    assert set(found["minValues"]) == {"id", "word"}


@pytest.mark.parametrize("spelled", ["false", " FALSE "])
def test_no_statistics_are_collected_if_the_user_disables_them(
    spark: SparkSession, rows: DataFrame, tmp_path: Path, spelled: str
) -> None:
    with changed_settings(spark, {"spark.databricks.delta.stats.collect": spelled}):
        write_table(rows, path=str(tmp_path), columns_to_index="id", cube_size=400)
    adds = live_adds(tmp_path).values()
    assert not any(json.loads(add.get("stats") or "{}").get("minValues") for add in adds)
    assert_sound(spark, tmp_path, range(1500), where="id < 20")


def test_a_concurrent_plain_write_of_the_session_collects_its_statistics(
    rows: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, beside = rows.select("word").coalesce(1), tmp_path / "beside"

    @contextmanager
    def meanwhile(spark: SparkSession, changes: Mapping[str, str]) -> Iterator[Any]:
        with session_with(spark, changes) as copy, ThreadPoolExecutor(1) as pool:
            pool.submit(words.write.format("delta").save, str(beside)).result()
            yield copy

    monkeypatch.setattr(transaction, "session_with", meanwhile)
    write_table(words, path=str(tmp_path / "t"), columns_to_index="word:hash")
    (ours,), (plain,) = (statistics(table).values() for table in (tmp_path / "t", beside))
    assert plain == ours


@pytest.mark.parametrize("length", [5, 40, 2**31 - 1])
def test_the_users_length_of_a_prefix_is_respected(
    rows: DataFrame, tmp_path: Path, length: int
) -> None:
    ours, plain = of_one_file(
        rows, tmp_path, {"spark.databricks.io.skipping.stringPrefixLength": str(length)}
    )
    assert ours == plain
    assert ours["minValues"]["longer_than_a_prefix"] == ("z" * 60 + "0")[:length]


def test_a_tables_own_length_of_a_prefix_is_respected(rows: DataFrame, tmp_path: Path) -> None:
    properties = {"delta.DATASKIPPINGstringPrefixLength": "5"}
    write_table(rows, path=str(tmp_path), columns_to_index="id", properties=properties)
    (found,) = statistics(tmp_path).values()
    assert found["minValues"]["longer_than_a_prefix"] == "zzzzz"


def test_the_setting_that_enables_statistics_may_have_any_spelling(
    spark: SparkSession, rows: DataFrame, tmp_path: Path, footers_read: list[Any]
) -> None:
    with changed_settings(spark, {"spark.databricks.delta.stats.collect": " TRUE "}):
        write_table(rows, path=str(tmp_path), columns_to_index="id")
    assert footers_read


@pytest.mark.parametrize(
    ("name", "unknown"),
    [
        ("_SET_METADATA", "newMetadata_$gone"),
        ("PARQUET_READER", "repackaged.parquet.ParquetFileReader"),
    ],
    ids=["the choice of columns cannot be replaced", "Parquet's reader is another"],
)
def test_delta_collects_statistics_if_its_internals_differ(
    rows: DataFrame,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    footers_read: list[Any],
    name: str,
    unknown: str,
) -> None:
    monkeypatch.setattr(late_statistics, name, unknown)
    ours, plain = of_one_file(rows, tmp_path, {})
    assert ours == plain
    assert not footers_read


def test_delta_collects_statistics_if_footers_may_be_encrypted(
    rows: DataFrame, tmp_path: Path, footers_read: list[Any]
) -> None:
    factory = "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory"
    ours, plain = of_one_file(rows, tmp_path, {"parquet.crypto.factory.class": factory})
    assert ours == plain
    assert not footers_read


def test_the_choice_made_while_writing_is_not_stored(
    spark: SparkSession, rows: DataFrame, tmp_path: Path
) -> None:
    write_table(rows, path=str(tmp_path), columns_to_index="id")
    write_table(rows, path=str(tmp_path))
    (detail,) = spark.sql(f"describe detail delta.`{tmp_path}`").collect()
    assert not [key for key in detail["properties"] if "dataSkipping" in key]


@pytest.mark.parametrize(
    "settings",
    [
        {"parquet.block.size": "4096", "parquet.page.size.row.check.min": "10"},
        {"spark.sql.parquet.writeLegacyFormat": "true"},
    ],
    ids=["many row groups", "as other programs store them"],
)
def test_decimals_have_statistics_in_every_format(
    spark: SparkSession, tmp_path: Path, settings: dict[str, str]
) -> None:
    rows = spark.range(5000).selectExpr(
        "id",
        "cast(if(id < 2000, null, id - 2500) / 8 as decimal(9, 3)) as small",
        "cast((2500 - id) * 12345678901 as decimal(18, 0)) as large",
        "cast(null as decimal(12, 2)) as missing",
    )
    with changed_settings(spark, settings):
        write_table(rows, path=str(tmp_path), columns_to_index="id")
    (file,) = tmp_path.glob("*.parquet")
    assert (pq.ParquetFile(file).num_row_groups > 1) == ("parquet.block.size" in settings)
    (found,) = statistics(tmp_path).values()
    assert found["minValues"] == {"id": 0, "small": "-62.500", "large": -30851851573599}
    assert found["maxValues"] == {"id": 4999, "small": "312.375", "large": 30864197252500}
    assert found["nullCount"] == {"id": 0, "small": 2000, "large": 0, "missing": 5000}


def test_values_too_long_for_a_footer_are_never_skipped(
    spark: SparkSession, tmp_path: Path
) -> None:
    df = spark.range(100).selectExpr("id", "repeat(cast(id as string), 5000) as text")
    write_table(df, path=str(tmp_path), columns_to_index="id", cube_size=20)
    table = spark.read.format("delta").load(str(tmp_path))
    assert table.where("text = repeat('42', 5000)").count() == 1
    assert table.where("text is null").count() == 0


def test_dates_of_any_year_are_never_skipped(spark: SparkSession, tmp_path: Path) -> None:
    days = [-720_000, -719_162, 18_262, 2_932_896, 3_000_000]
    rows = spark.range(len(days)).selectExpr(
        "id", f"date_from_unix_date(array({', '.join(map(str, days))})[cast(id as int)]) as day"
    )
    write_table(rows, path=str(tmp_path), columns_to_index="id", cube_size=1)
    table = spark.read.format("delta").load(str(tmp_path))
    for id, day in enumerate(days):
        for order in ("=", "<=", ">="):
            found = table.where(f"day {order} date_from_unix_date({day}) and id = {id}")
            assert found.count() == 1


@pytest.mark.parametrize("before", ["", "x" * 32, "x" * 40])
def test_texts_that_are_not_utf8_have_no_extremes(
    spark: SparkSession, tmp_path: Path, before: str
) -> None:
    # Java decodes such bytes to a string that sorts differently.
    for ending, is_text in (("80", False), ("ff", False), ("61", True), ("f48fbfbf", True)):
        table = tmp_path / ending
        rows = spark.range(1).selectExpr(
            "id", f"cast(unhex('{before.encode().hex()}{ending}') as string) as text"
        )
        write_table(rows, path=str(table), columns_to_index="id")
        (found,) = statistics(table).values()
        for section in ("minValues", "maxValues"):
            assert ("text" in found[section]) == is_text
        assert found["nullCount"]["text"] == 0


def test_a_table_of_strings_alone_has_statistics(tmp_path: Path, rows: DataFrame) -> None:
    write_table(rows.select("word"), path=str(tmp_path), columns_to_index="word:hash")
    (found,) = statistics(tmp_path).values()
    assert found["numRecords"] == 1500
    assert found["minValues"] == {"word": "wörd-0"}
    assert found["maxValues"] == {"word": "wörd-999"}
    assert found["nullCount"] == {"word": 0}


def test_names_are_mapped(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.range(300).selectExpr(
        "id as `the id`", "concat('w', id) as `a word`", "cast(id as decimal(9, 2)) as `a price`"
    )
    write_table(df, path=str(tmp_path), columns_to_index="the id", cube_size=50)
    table = spark.read.format("delta").load(str(tmp_path))
    assert table.where("`a word` = 'w7'").count() == 1
    assert table.where("`a price` = 7").count() == 1
    for found in statistics(tmp_path).values():
        assert len(found["minValues"]) == len(found["maxValues"]) == 3


INSTANTS = (
    "0001-01-01 00:00:00",
    "1582-10-04 23:59:59.999999",
    "1582-10-15 00:00:00",
    "1969-12-31 23:59:59.999999",
    "2262-04-11 23:47:16.854776",
    "9999-12-31 23:59:59.999999",
)


@pytest.mark.parametrize(
    ("settings", "physical"),
    [({}, "INT64"), ({"spark.sql.parquet.outputTimestampType": "INT96"}, "INT96")],
    ids=["by default", "as the session says"],
)
def test_timestamps_have_statistics_in_their_files(
    spark: SparkSession, tmp_path: Path, settings: dict[str, str], physical: str
) -> None:
    rows = spark.createDataFrame(list(enumerate(INSTANTS)), "id long, text string")
    rows = rows.selectExpr("cast(text || ' UTC' as timestamp) as at", "id")

    with changed_settings(spark, settings):
        write_table(rows, path=str(tmp_path / "t"), columns_to_index="at")
        # Other writes of the session keep its setting.
        rows.write.parquet(str(tmp_path / "plain"))

    assert_sound(spark, tmp_path / "t", range(len(INSTANTS)))
    written = spark.read.format("delta").load(str(tmp_path / "t"))
    of_both = (df.selectExpr("id", "unix_micros(at)").collect() for df in (written, rows))
    assert sorted(next(of_both)) == sorted(next(of_both))
    (file,) = (tmp_path / "t").glob("*.parquet")
    column = pq.ParquetFile(file).metadata.row_group(0).column(0)
    assert column.physical_type == physical
    assert column.statistics.has_min_max == (physical == "INT64")
    plain = next((tmp_path / "plain").glob("*.parquet"))
    assert pq.ParquetFile(plain).schema.column(0).physical_type == "INT96"


def test_a_range_of_timestamps_skips_pages_of_a_file(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(200_000).selectExpr("timestamp_seconds(pmod(id * 7919, 200000)) as at", "id")
    write_table(rows, path=str(tmp_path), columns_to_index="at")

    hour = spark.read.format("delta").load(str(tmp_path))
    hour = hour.where("at >= timestamp_seconds(3600) and at < timestamp_seconds(7200)")

    assert hour.count() == 3600
    narrow = hour.select("at", "id")
    assert len(narrow.collect()) == 3600
    did = scanned(narrow)
    assert did.files == 1
    # The pages in which the hour begins and ends are read as a whole.
    assert did.rows <= 3600 + 2 * 5000


def test_pages_are_as_large_as_the_user_says(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(60_000)
    limit = {"parquet.page.row.count.limit": "20000"}

    write_table(rows, path=str(tmp_path / "own"), columns_to_index="id")
    write_table(rows, path=str(tmp_path / "property"), columns_to_index="id", properties=limit)
    with changed_settings(spark, limit):
        write_table(rows, path=str(tmp_path / "session"), columns_to_index="id")

    def read(table: str) -> int:
        few = spark.read.format("delta").load(str(tmp_path / table)).where("id between 7 and 9")
        assert len(few.collect()) == 3
        return scanned(few).rows

    assert [read(table) for table in ("own", "property", "session")] == [5000, 20_000, 20_000]


def test_indexed_numbers_that_hardly_repeat_have_no_dictionary(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = {
        "the id": "id * 7919",
        "few": "id % 50",
        "price": "id / 8",
        "word": "concat('w', id % 20)",
        "not indexed": "id % 30",
    }
    rows = spark.range(3000).selectExpr(*(f"{sql} as `{name}`" for name, sql in columns.items()))
    table = tmp_path / "t"
    write_table(
        rows,
        path=str(table),
        columns_to_index=["the id", "few", "price:quantiles", "word"],
        cube_size=1000,
    )

    written = spark.read.format("delta").load(str(table))
    assert sorted(written.collect()) == sorted(rows.collect())
    files = list(table.rglob("*.parquet"))
    assert len(files) > 2
    for file in files:
        group = pq.ParquetFile(file).metadata.row_group(0)
        found = [group.column(i).has_dictionary_page for i in range(len(columns))]
        assert dict(zip(columns, found, strict=True)) == {
            "the id": False,
            "few": True,
            "price": False,
            "word": True,
            "not indexed": True,
        }
