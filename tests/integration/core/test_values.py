"""Values at the edge of their types, and beyond what usual data have.

Each table is written in two halves, so that the second one meets an existing tree. Then every row
must be in the cube of its values, and samples and filters must find it.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from qbeast_core import QbeastTable, write_table
from qbeast_core.errors import InvalidOptions
from qbeast_core.jvm.settings import changed_settings
from tests.support.delta_log import plain
from tests.support.invariants import assert_rows_in_their_cubes, assert_sound

pytestmark = pytest.mark.usefixtures("as_for_large_data")

NAN, INFINITY = float("nan"), float("inf")
UTC = datetime.timezone.utc


def written(
    spark: SparkSession,
    path: Path,
    values: Sequence[tuple[Any, ...]],
    types: str,
    columns: Sequence[str],
    *,
    copies: int = 20,
    cube_size: int = 40,
) -> QbeastTable:
    """The values as a table with an id, each `copies` times, written and appended to.

    Beside the values a column `n` spreads the copies, so that trees have inner cubes.
    """
    rows = [(i, i * 37 % 101, *value) for i, value in enumerate(list(values) * copies)]
    data = spark.createDataFrame(rows, f"id long, n int, {types}").repartition(2)
    options = {"path": str(path), "columns_to_index": list(columns), "cube_size": cube_size}
    half = len(rows) // 2
    write_table(data.where(f"id < {half}"), **options)
    write_table(data.where(f"id >= {half}"), **options)
    table = assert_sound(spark, path, range(len(rows)))
    assert_rows_in_their_cubes(spark, path)
    return table


def found(table: QbeastTable, where: str) -> int:
    """How many rows a filter finds through the index."""
    return table.sample(1.0, where).count()


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_nulls_have_a_place_in_every_kind_of_column(
    spark: SparkSession, tmp_path: Path, ansi: str
) -> None:
    values = [(None, None, None), (1, None, "x"), (None, 0.5, "y"), (9, 2.5, None), (-4, 0.0, "")]
    with changed_settings(spark, {"spark.sql.ansi.enabled": ansi}):
        table = written(spark, tmp_path, values, "i int, d double, s string", ["i", "d", "s"])
        assert found(table, "i is null") == 40
        assert found(table, "d is null and s = 'x'") == 20
        assert found(table, "s is null or i = 1") == 60
        assert found(table, "i <=> null and d > 0") == 20


@pytest.mark.parametrize("kind", ["int", "double", "string", "timestamp", "decimal(38,18)", "date"])
def test_a_column_of_nothing_but_nulls_can_be_indexed(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    table = written(spark, tmp_path, [(None,)], f"x {kind}", ["x", "n"], copies=200)
    assert found(table, "x is null") == 200
    assert found(table, "x is not null") == 0


def test_a_column_of_nulls_that_gets_a_value_later_opens_a_revision(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = written(spark, tmp_path, [(None,)], "x int", ["x"], copies=50)
    assert table.latest_revision.revision_id == 1
    more = spark.range(1000, 1100).selectExpr("id", "cast(id % 7 as int) n", "cast(id as int) x")
    assert write_table(more, path=str(tmp_path)).revision_id == 2
    later = assert_sound(spark, tmp_path, [*range(50), *range(1000, 1100)], where="x is null")
    assert found(later, "x >= 1050") == 50
    assert_rows_in_their_cubes(spark, tmp_path)


def test_rows_that_agree_in_everything_share_one_leaf(spark: SparkSession, tmp_path: Path) -> None:
    table = written(spark, tmp_path, [(7, "same")], "x int, s string", ["x", "s"], copies=300)
    assert found(table, "x = 7") == 300
    assert found(table, "x = 8") == 0
    assert table.index_metrics().to_dict()  # a tree of one point has numbers too


def test_one_row_is_a_table(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    one = spark.createDataFrame([(1, 5.5, "x")], "id long, d double, s string")
    result = write_table(one, path=path, columns_to_index=["d", "s"], cube_size=1)
    assert (result.rows, result.files, result.cubes) == (1, 1, 1)
    assert_sound(spark, path, [1], where="d = 5.5")
    assert_rows_in_their_cubes(spark, path)


def test_a_cube_size_of_one_works(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(200).selectExpr("id", "id * 37 % 101 as n", "id / 3.0D as d")
    write_table(rows, path=str(tmp_path), columns_to_index=["n", "d"], cube_size=1)
    assert_sound(spark, tmp_path, range(200), where="n < 50")
    assert_rows_in_their_cubes(spark, tmp_path)


@pytest.mark.parametrize("kind", ["double", "float"])
def test_nan_and_infinities_are_in_the_outermost_cubes(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    values = [(x,) for x in (NAN, INFINITY, -INFINITY, -0.0, 0.0, 1.5, -2.25, 5e-324, None, 7.0)]
    table = written(spark, tmp_path, values, f"x {kind}", ["x", "n"])
    assert found(table, "isnan(x)") == 20
    assert found(table, "x = double('NaN')") == 20
    assert found(table, "x > 6") == 60  # Spark holds NaN for the largest
    assert found(table, "x = double('Infinity')") == 20
    assert found(table, "x < -100") == 20
    assert found(table, "x = 0") == (60 if kind == "float" else 40)
    bounds = table.latest_revision.transformations[0]
    assert (bounds.minimum, bounds.maximum) == (-2.25, 7.0)


def test_a_column_of_nan_alone_can_be_indexed(spark: SparkSession, tmp_path: Path) -> None:
    table = written(spark, tmp_path, [(NAN,), (INFINITY,)], "x double", ["x", "n"], copies=100)
    assert found(table, "isnan(x)") == 100
    assert found(table, "x < 5") == 0


def test_all_rows_are_found_beside_an_outlier(spark: SparkSession, tmp_path: Path) -> None:
    values = [(1e300,), (-1e300,), *((float(i),) for i in range(20))]
    table = written(spark, tmp_path, values, "x double", ["x"], copies=20)
    assert found(table, "x > 1e299") == 20
    assert found(table, "x between 3 and 5") == 60


def test_a_range_wider_than_a_double_can_be_indexed(spark: SparkSession, tmp_path: Path) -> None:
    largest = 1.7976931348623157e308
    values = [(x,) for x in (largest, -largest, 0.0, INFINITY, -INFINITY, NAN)]
    table = written(spark, tmp_path, values, "x double", ["x", "n"])
    assert found(table, "x > 1e308") == 60
    assert found(table, "x < -1e308") == 40
    assert found(table, "x = double('-Infinity')") == 20


def test_whole_numbers_at_the_ends_of_their_types(spark: SparkSession, tmp_path: Path) -> None:
    values = [
        (-(2**7), -(2**15), -(2**31), -(2**63)),
        (2**7 - 1, 2**15 - 1, 2**31 - 1, 2**63 - 1),
        (0, 0, 0, 0),
        (None, None, None, None),
        (1, 1, 1, 2**53 + 1),
    ]
    types = "t tinyint, s smallint, i int, l bigint"
    table = written(spark, tmp_path, values, types, ["t", "s", "i", "l"])
    assert found(table, "l = 9223372036854775807") == 20
    assert found(table, "l = 9007199254740993 and t = 1") == 20
    assert found(table, "i = -2147483648 and s < 0") == 20
    assert found(table, "t is null") == 20


def test_decimals_of_every_width(spark: SparkSession, tmp_path: Path) -> None:
    wide = Decimal("99999999999999999999.999999999999999999")
    below = Decimal("99999999999999999999.999999999999999998")
    values = [
        (Decimal("-99999.99"), wide.copy_negate()),  # `-wide` would round it
        (Decimal("99999.99"), wide),
        (Decimal("0.01"), below),
        (Decimal("0.02"), Decimal("0E-18")),
        (None, None),
    ]
    table = written(spark, tmp_path, values, "p decimal(7,2), w decimal(38,18)", ["p", "w"])
    assert found(table, "p = 0.01") == 20
    assert found(table, f"w = {wide}") == 20
    assert found(table, f"w < {wide} and w > 99999999999999999999") == 20


def test_decimals_can_be_hashed(spark: SparkSession, tmp_path: Path) -> None:
    # Java prints those below 1E-6 in scientific notation, which Spark's ANSI mode does not.
    values = [(Decimal(i).scaleb(-8),) for i in range(60)] + [(None,)]
    table = written(spark, tmp_path, values, "p decimal(12,8)", ["p:hash", "n"], copies=5)
    assert found(table, "p = 0.00000007") == 5
    assert found(table, "p in (0.00000001, 0.00000002, 77)") == 10
    with changed_settings(spark, {"spark.sql.ansi.enabled": "false"}):
        assert table.check().ok


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Los_Angeles"])
def test_dates_from_the_year_1_to_9999_in_any_session_zone(
    spark: SparkSession, tmp_path: Path, zone: str
) -> None:
    days = [(1, 1, 1), (1582, 10, 4), (1582, 10, 15), (1969, 12, 31), (2000, 2, 29), (9999, 12, 31)]
    values = [(datetime.date(*day),) for day in days] + [(None,)]
    with changed_settings(spark, {"spark.sql.session.timeZone": zone}):
        table = written(spark, tmp_path, values, "d date", ["d", "n"])
        for day in days:
            assert found(table, f"d = date'{datetime.date(*day)}'") == 20
        assert found(table, "d < date'1600-01-01'") == 60
        assert found(table, "d is null") == 20


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/Los_Angeles"])
def test_dates_near_each_other_are_found_by_day(
    spark: SparkSession, tmp_path: Path, zone: str
) -> None:
    values = [(datetime.date(2024, 3, 1) + datetime.timedelta(days=i),) for i in range(60)]
    with changed_settings(spark, {"spark.sql.session.timeZone": zone}):
        table = written(spark, tmp_path, values, "d date", ["d"], copies=10)
        for offset in (0, 1, 29, 30, 58, 59):
            assert found(table, f"d = date'{values[offset][0]}'") == 10
        assert found(table, "d between date'2024-03-10' and date'2024-03-12'") == 30


def test_timestamps_before_1970_and_below_a_millisecond_in_another_zone(
    spark: SparkSession, tmp_path: Path
) -> None:
    with changed_settings(spark, {"spark.sql.session.timeZone": "America/New_York"}):
        micros = [0, -1, 1, -999, -1000, -86_400_000_000, 1_600_000_000_123_456, -62135596800000000]
        rows = spark.createDataFrame(
            [(i, i % 7, micros[i % len(micros)]) for i in range(160)], "id long, n int, us long"
        ).selectExpr("id", "n", "us", "timestamp_micros(us) as ts")
        for part in ("id < 80", "id >= 80"):
            write_table(
                rows.where(part), path=str(tmp_path), columns_to_index=["ts", "n"], cube_size=20
            )
        table = assert_sound(spark, tmp_path, range(160))
        assert_rows_in_their_cubes(spark, tmp_path)
        for value in micros:
            assert found(table, f"ts = timestamp_micros({value})") == 20
        assert found(table, "ts < timestamp'1970-01-01 00:00:00Z'") == 100
        # A day that the zone's clock changes on.
        assert found(table, "ts >= timestamp'2020-09-13 08:26:40'") == 20


@pytest.mark.parametrize(
    ("zone", "old"),
    [
        ("Europe/Berlin", "1800-01-01 00:00:00"),
        ("America/Argentina/Buenos_Aires", "1915-03-01 12:00:00"),
        ("Africa/Accra", "1880-01-01 00:00:00"),
        ("Africa/Monrovia", "1971-12-31 00:00:00"),
    ],
)
def test_times_whose_offset_has_seconds_are_found(
    spark: SparkSession, tmp_path: Path, zone: str, old: str
) -> None:
    """Delta's statistics lack these seconds."""

    def rows(*numbers: int) -> DataFrame:
        each = ", ".join(f"({i}, timestamp'{old if i % 2 else '2024-01-01'}')" for i in numbers)
        return spark.sql(f"select * from values {each} as t(id, ts)")

    path = str(tmp_path)
    with changed_settings(spark, {"spark.sql.session.timeZone": zone}):
        write_table(rows(2, 4), path=path, columns_to_index=["ts"])
        for one, other in ((1, 6), (3, 8)):
            write_table(rows(one), path=path)
            write_table(rows(other), path=path)
        table = QbeastTable.for_path(spark, path)
        report = table.check()
        assert (report.problems, report.unindexed_files) == ((), 0)
        assert found(table, f"ts = timestamp'{old}'") == 2
        merged = table.merge(rows(1, 5), ["id", "ts"])
        assert (merged.rows_updated, merged.rows_inserted) == (1, 1)
        table.optimize()
        assert table.optimize().files_removed == 0
        assert found(QbeastTable.for_path(spark, path), f"ts = timestamp'{old}'") == 3


def test_strings_of_every_kind(spark: SparkSession, tmp_path: Path) -> None:
    texts = [
        "",
        " ",
        "\x00",
        "a\x00b",
        "ab",
        "abc",
        "aaa",
        "x" * 5000,
        "é" * 40 + "1",
        "é" * 40 + "2",
        "\U0001f600\U0001f601",
        "שלום",
        'it\'s "quoted" \\ `ticked`',
        None,
    ]
    values = [(text,) for text in texts]
    table = written(spark, tmp_path, values, "s string", ["s", "n"])
    rows = spark.createDataFrame([(text,) for text in texts if text is not None], "s string")
    for text in texts[:-1]:
        escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\x00", "\\0")
        assert found(table, f"s = '{escaped}'") == 20, repr(text)
    assert found(table, "s is null") == 20
    assert plain(spark, tmp_path).join(rows, "s", "left_semi").count() == 20 * (len(texts) - 1)


@pytest.mark.parametrize("kind", ["hash", "quantiles"])
def test_strings_with_invalid_utf8_and_strings_of_a_megabyte(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    halves_of_a_pair = ["cast(X'EDA080' as string)", "cast(X'EDB080' as string)"]
    texts = [
        "'a'",
        "'b'",
        *halves_of_a_pair,
        "cast(X'FF' as string)",
        "concat('a', cast(X'C3' as string))",
        "'\\uFFFD'",
        "'?'",
        "repeat('x', 1048576)",
        "concat(repeat('x', 1048575), 'y')",
        "cast(null as string)",
    ]
    count, path = 4 * len(texts), str(tmp_path)
    chosen = f"element_at(array({', '.join(texts)}), cast(1 + id % {len(texts)} as int)) as s"
    rows = spark.range(0, count, 1, 2).selectExpr("id", "id * 37 % 101 as n", chosen)
    for half in (f"id < {count // 2}", f"id >= {count // 2}"):
        write_table(rows.where(half), path=path, columns_to_index=[f"s:{kind}", "n"], cube_size=20)
    table = assert_sound(spark, path, range(count))
    told = "count(*)", "count(distinct s)", "bit_xor(xxhash64(id, n, s))"
    assert plain(spark, path).selectExpr(*told).collect() == rows.selectExpr(*told).collect()
    for text in texts[:-1]:
        # Statistics of texts that are not UTF-8 mislead Delta and Parquet, also without an index.
        # The index finds at least what Delta finds.
        misled = "spark.databricks.delta.stats.skipping", "spark.sql.parquet.filterPushdown"
        with changed_settings(spark, dict.fromkeys(misled, "false")):
            assert found(table, f"s = {text}") == 4, text
        by_delta = plain(spark, path).where(f"s = {text}").count()
        assert by_delta <= found(table, f"s = {text}") <= 4
    assert len(table.files(1.0, "s = 'a'")) <= len(table.files())
    assert table.delete(f"s in ({', '.join(halves_of_a_pair)}) or s like 'xx%'").rows_deleted
    assert QbeastTable.for_path(spark, path).check().ok


def test_half_of_a_surrogate_pair_is_refused_as_a_name_or_text(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, half = str(tmp_path / "t"), "\ud800"
    write_table(spark.range(10), path=path, columns_to_index=["id"])
    table, files = QbeastTable.for_path(spark, path), sorted(tmp_path.rglob("*"))
    rows = spark.range(3)
    for attempt in (
        lambda: table.sample(0.5, f"string(id) = '{half}'"),
        lambda: table.delete(f"string(id) = '{half}'"),
        lambda: table.update({"id": f"length('{half}')"}),
        lambda: table.merge(rows, [half]),
        lambda: QbeastTable.for_name(spark, half),
        lambda: write_table(rows, path=path, user_metadata=half),
        lambda: write_table(rows, path=path, mode="overwrite", comment=half),
        lambda: write_table(rows, path=path, mode="overwrite", properties={"x": half}),
        lambda: write_table(rows, path=str(tmp_path / half), columns_to_index=["id"]),
    ):
        with pytest.raises(InvalidOptions, match="half of a surrogate pair"):
            attempt()
    assert sorted(tmp_path.rglob("*")) == files
    assert table.sample(1.0, "string(id) != '\U0001f600'").count() == 10


def test_hashed_numbers_are_found_by_equality(spark: SparkSession, tmp_path: Path) -> None:
    values = [(i, i * 10**15, i / 7, float(i) / 8, i % 5) for i in range(-30, 30)]
    types = "i int, l bigint, d double, f float, t tinyint"
    columns = ["i:hash", "l:hash", "d:hash", "f:hash", "t:hash"]
    table = written(spark, tmp_path, values, types, columns, copies=5)
    assert found(table, "i = 7") == 5
    assert found(table, "l in (0, -30000000000000000)") == 10
    assert found(table, "f = -0.125 and d < 0") == 5
    assert found(table, "t = 4") == 60


def test_hashed_floats_are_found_whatever_text_java_gives_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Java before 19 prints 2.0E23 as 1.9999999999999998E23, and hashes depend on the text."""
    values = [(float((i + 1) * 10**15 * 37 // 13), i) for i in range(400)] + [(2e23, 400)]
    rows = spark.createDataFrame(values, "d double, number int").repartition(2)
    write_table(rows, path=str(tmp_path), columns_to_index=["d:hash"], cube_size=40)
    table = QbeastTable.for_path(spark, str(tmp_path))
    for value, number in values[::40]:
        found = table.sample(1.0, where=f"d = {value!r}D").collect()
        assert [row.number for row in found] == [number]


@pytest.mark.parametrize("dimensions", range(1, 9))
def test_one_to_eight_columns(spark: SparkSession, tmp_path: Path, dimensions: int) -> None:
    columns = [f"c{i}" for i in range(dimensions)]
    rows = spark.range(0, 1500, 1, 2).selectExpr(
        "id", *(f"hash(id, {i}) % 1000 as c{i}" for i in range(dimensions))
    )
    for part in ("id < 1000", "id >= 1000"):
        write_table(rows.where(part), path=str(tmp_path), columns_to_index=columns, cube_size=100)
    where = f"c0 between -200 and 300 and c{dimensions - 1} > 0"
    assert_sound(spark, tmp_path, range(1500), where=where)
    assert_rows_in_their_cubes(spark, tmp_path)


@pytest.mark.parametrize("dimensions", [3, 8])
def test_paths_longer_than_a_word_tell_close_rows_apart(
    spark: SparkSession, tmp_path: Path, dimensions: int
) -> None:
    # No level of the first 23 parts all but two of the rows: their paths agree beyond a word.
    columns = [f"c{i}" for i in range(dimensions)]
    near = spark.range(0, 800, 1, 2)
    rows = near.selectExpr(
        "id",
        *(
            f"case id when 0 then 0D when 1 then 1e7 "
            f"else pmod(hash(id, {i}), 997) / 997D end as c{i}"
            for i in range(dimensions)
        ),
    )
    for part in ("id < 500", "id >= 500"):
        write_table(rows.where(part), path=str(tmp_path), columns_to_index=columns, cube_size=15)
    table = assert_sound(spark, tmp_path, range(800), where="c0 < 0.5 and c1 < 0.5")
    assert_rows_in_their_cubes(spark, tmp_path)
    depths = [row.depth for row in table.blocks().collect()]
    assert max(depths) > 22


def test_half_of_all_rows_in_one_point_end_the_tree(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(0, 2000, 1, 2).selectExpr(
        "id",
        "if(id % 2 = 0, 5, hash(id) % 1000) as a",
        "if(id % 2 = 0, 5, hash(id, 1) % 1000) as b",
    )
    for part in ("id < 1200", "id >= 1200"):
        write_table(
            rows.where(part), path=str(tmp_path), columns_to_index=["a", "b"], cube_size=100
        )
    table = assert_sound(spark, tmp_path, range(2000), where="a = 5 and b = 5")
    assert_rows_in_their_cubes(spark, tmp_path)
    read = sum(file.rows for file in table.files(1.0, "a < -500"))
    assert read < 1300  # the heavy point's own file is not among them


def test_columns_that_are_not_indexed_may_have_any_type(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows: DataFrame = spark.range(100).selectExpr(
        "id",
        "array(id, null) as numbers",
        "named_struct('a', id, 'b', array(named_struct('c', 'x'))) as nested",
        "map('k', id) as mapped",
        "cast('x' as binary) as bytes",
        "id > 5 as flag",
        "timestamp_ntz'2020-01-01 00:00:00' as local",
        "interval 3 days as span",
    )
    write_table(rows.drop("span"), path=str(tmp_path), columns_to_index=["id"], cube_size=20)
    write_table(rows.drop("span"), path=str(tmp_path))
    assert_sound(spark, tmp_path, [*range(100), *range(100)])
    assert plain(spark, tmp_path).where("nested.b[0].c = 'x' and mapped['k'] = id").count() == 200
