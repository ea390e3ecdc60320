"""Bad input is refused with a clear message and changes nothing; odd names work."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qbeast_core import QbeastTable, convert_to_qbeast, quoted, write_table
from qbeast_core.errors import (
    IncompatibleTable,
    InvalidOptions,
    NotAQbeastTable,
    UnknownColumn,
    UnsupportedColumnType,
)
from qbeast_core.jvm.settings import changed_settings
from tests.support.delta_log import last_version, log_of, plain
from tests.support.invariants import assert_rows_in_their_cubes, assert_sound


@pytest.fixture(scope="module")
def indexed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table that no test of this module changes."""
    path = str(tmp_path_factory.mktemp("indexed") / "t")
    write_table(rows(spark), path=path, columns_to_index=["price", "brand"], cube_size=30)
    return path


def rows(spark: SparkSession) -> Any:
    return spark.range(100).selectExpr(
        "id",
        "id * 3 as price",
        "'b' || id % 5 as brand",
        "id > 5 as flag",
        "array(id) as many",
        "struct(id as inner) as nested",
        "map(id, id) as pairs",
        "cast(brand as binary) as bytes",
        "timestamp_ntz'2020-01-01 00:00:00' as local",
        "date'2020-01-01' as day",
        *(f"id + {i} as c{i}" for i in range(9)),
    )


@pytest.mark.parametrize(
    ("columns", "error", "words"),
    [
        (["prise"], UnknownColumn, ["'prise'", "did you mean 'price'", "'brand'"]),
        ("price,brnad", UnknownColumn, ["'brnad'", "did you mean 'brand'"]),
        (["nested.inner"], UnknownColumn, ["'nested.inner'"]),
        ([], InvalidOptions, ["0 columns", "1 to 8"]),
        ("", InvalidOptions, ["''"]),
        ("price,,brand", InvalidOptions, ["''"]),
        (["price", "price"], InvalidOptions, ["'price'", "twice"]),
        (["price", "PRICE"], InvalidOptions, ["'price'", "twice"]),
        ([f"c{i}" for i in range(9)], InvalidOptions, ["9 columns", "1 to 8"]),
        (["price:linaer"], InvalidOptions, ["'linaer'", "did you mean 'linear'", "'hash'"]),
        (["a:b:c"], InvalidOptions, ["'a:b'", "comma or colon"]),
        (["a,b"], InvalidOptions, ["'a,b'", "comma or colon"]),
        (["brand:linear"], InvalidOptions, ["'brand'", "linear", "hashing"]),
        (["day:hash"], InvalidOptions, ["'day'", "hash", "linear"]),
        ([None], InvalidOptions, ["None"]),
        (7, InvalidOptions, ["7"]),
        (["flag"], UnsupportedColumnType, ["'flag'", "boolean", "bigint"]),
        (["many"], UnsupportedColumnType, ["'many'", "array<bigint>", "string"]),
        (["nested"], UnsupportedColumnType, ["'nested'", "struct"]),
        (["pairs"], UnsupportedColumnType, ["'pairs'", "map"]),
        (["bytes"], UnsupportedColumnType, ["'bytes'", "binary"]),
        (["local"], UnsupportedColumnType, ["'local'", "timestamp_ntz"]),
    ],
)
def test_columns_that_cannot_be_indexed_are_named_with_what_can(
    spark: SparkSession,
    indexed: str,
    tmp_path: Path,
    columns: Any,
    error: type[Exception],
    words: list[str],
) -> None:
    before = log_of(indexed, last_version(indexed))
    for path, mode in ((str(tmp_path / "new"), "append"), (indexed, "overwrite")):
        with pytest.raises(error) as refused:
            write_table(rows(spark), path=path, columns_to_index=columns, mode=mode)
        for word in words:
            assert word in str(refused.value)
    assert not (tmp_path / "new").exists()
    assert log_of(indexed, last_version(indexed)) == before


@pytest.mark.parametrize("size", [0, -1, "abc", "", True, 2**31, 1.5, "1e3", None])
def test_a_cube_size_that_is_not_a_count_is_rejected(
    spark: SparkSession, indexed: str, size: Any
) -> None:
    version = last_version(indexed)
    for mode in ("append", "overwrite"):
        with pytest.raises(InvalidOptions) as refused:
            write_table(
                rows(spark), path=indexed, columns_to_index="price,brand", cube_size=size, mode=mode
            )
        assert repr(size) in str(refused.value) and "'auto'" in str(refused.value)
    assert last_version(indexed) == version


def test_a_cube_size_may_be_written_as_text(spark: SparkSession, tmp_path: Path) -> None:
    write_table(rows(spark), path=str(tmp_path), columns_to_index="price", cube_size=" 25 ")
    assert QbeastTable.for_path(spark, str(tmp_path)).cube_size == 25


@pytest.mark.parametrize("fraction", [1.1, -0.1, float("nan"), float("inf"), "0.5", True, None])
def test_a_fraction_outside_of_0_to_1_is_refused(
    spark: SparkSession, indexed: str, fraction: Any
) -> None:
    table = QbeastTable.for_path(spark, indexed)
    with pytest.raises(InvalidOptions) as refused:
        table.sample(fraction)
    assert repr(fraction) in str(refused.value)
    with pytest.raises(InvalidOptions):
        table.sample_condition(fraction)


@pytest.mark.parametrize("fraction", [1.1, -0.1, float("nan"), True])
def test_the_files_of_a_fraction_outside_of_0_to_1_are_refused(
    spark: SparkSession, indexed: str, fraction: Any
) -> None:
    with pytest.raises(InvalidOptions):
        QbeastTable.for_path(spark, indexed).files(fraction)


def test_fraction_0_has_no_rows_and_fraction_1_has_all(spark: SparkSession, indexed: str) -> None:
    table = QbeastTable.for_path(spark, indexed)
    assert table.sample(0).count() == table.sample(0.0, "price > 5").count() == 0
    assert table.files(0.0) == []
    assert table.sample(1).count() == 100
    assert len(table.files(1.0)) == len(table.files())


def test_the_condition_as_text_keeps_the_rows_of_the_sample(
    spark: SparkSession, indexed: str
) -> None:
    table = QbeastTable.for_path(spark, indexed)
    for fraction in (0.0, 0.2, 1.0):
        by_text = plain(spark, indexed).where(table.sample_condition(fraction)).select("id")
        sampled = table.sample(fraction).select("id")
        assert sorted(by_text.collect()) == sorted(sampled.collect())


METADATA: Any = {"run": 1}
REFUSED_CALLS: dict[str, tuple[Callable[[QbeastTable, Any], Any], str]] = {
    "merge sets nothing": (
        lambda table, rows: table.merge(rows, "id", update=None),
        "update must be True, False, .*, got None",
    ),
    "merge sets 1": (lambda table, rows: table.merge(rows, "id", insert=1), "insert must .* got 1"),
    "merge sets a column object": (
        lambda table, rows: table.merge(rows, "id", update=F.col("brand")),
        "update must .* got Column<'brand'>",
    ),
    "merge sets to null": (
        lambda table, rows: table.merge(rows, "id", insert={"id": "id", "price": None}),
        "insert sets 'price' of .* to None; write the value as SQL text, such as 'null'",
    ),
    "merge on nothing": (lambda table, rows: table.merge(rows, None), "on must .* got None"),
    "merge on a number": (lambda table, rows: table.merge(rows, ["id", 1]), "on contains 1"),
    "merge with metadata": (
        lambda table, rows: table.merge(rows, "id", user_metadata=METADATA),
        r"user_metadata must be a string, got {'run': 1}; .*json",
    ),
    "update to a number": (
        lambda table, rows: table.update({"price": 5}),
        "update sets 'price' of .* to 5; .* '5'",
    ),
    "update to a column object": (
        lambda table, rows: table.update({"price": F.lit(5)}),
        "update sets 'price' of .* to Column<'5'>",
    ),
    "delete with metadata": (
        lambda table, rows: table.delete("id = 1", user_metadata=7),
        "user_metadata must be a string, got 7",
    ),
    "replace matching a number": (
        lambda table, rows: table.replace_matching(rows, "id", where=3),
        "where must be a SQL condition or a list of them, got 3",
    ),
    "drop nothing": (lambda table, rows: table.drop_columns([]), "columns names no column"),
    "optimize 'false'": (
        lambda table, rows: table.optimize(dry_run="false"),
        "dry_run must be true or false, got 'false'",
    ),
    "a name of None": (
        lambda table, rows: QbeastTable.for_name(rows.sparkSession, None),  # type: ignore[arg-type]
        "name must be a string such as 'schema.table', got None",
    ),
    "whether None is indexed": (
        lambda table, rows: QbeastTable.is_qbeast(rows.sparkSession, None),  # type: ignore[arg-type]
        "name must be a string such as 'schema.table', got None",
    ),
    "drop a number": (lambda table, rows: table.drop_columns(8), "columns must .* got 8"),
    "optimize 1.0": (lambda table, rows: table.optimize(1.0), "no revision 1.0 to optimize"),
    "optimize true": (lambda table, rows: table.optimize(True), "no revision True to optimize"),
    "optimize entries": (
        lambda table, rows: table.optimize(files=table.files()),
        r"files contains FileEntry.*, which is not a path from files\(\)",
    ),
    "estimate by a number": (
        lambda table, rows: table.estimate("avg(price)", group_by=1),
        "group_by must be a SQL expression or a list of them, got 1",
    ),
    "estimate for certain": (
        lambda table, rows: table.estimate("avg(price)", confidence=0.9999999999999999),
        "confidence must be a number above 0 and at most 0.999999999,",
    ),
    "a path and a location": (
        lambda table, rows: write_table(rows, path="/a", location="/b", columns_to_index="id"),
        "location='/b' cannot be combined with path='/a'",
    ),
    "an empty path": (lambda table, rows: QbeastTable.for_path(rows.sparkSession, ""), "path must"),
}


@pytest.mark.parametrize("call", REFUSED_CALLS)
def test_an_argument_of_another_kind_is_named_before_anything_is_written(
    spark: SparkSession, indexed: str, call: str
) -> None:
    files, version = sorted(Path(indexed).iterdir()), last_version(indexed)
    do, words = REFUSED_CALLS[call]
    with pytest.raises(InvalidOptions, match=words):
        do(QbeastTable.for_path(spark, indexed), rows(spark))
    with pytest.raises(InvalidOptions, match="user_metadata must be a string"):
        write_table(rows(spark), path=indexed, user_metadata=METADATA)
    assert (sorted(Path(indexed).iterdir()), last_version(indexed)) == (files, version)


def test_what_lists_and_numbers_stand_for_may_be_given_in_their_place(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Iterators that can be read once, numpy's numbers, and paths as objects."""
    write_table(rows(spark), path=tmp_path, columns_to_index=["price"], merge_schema=np.False_)
    table = QbeastTable.for_path(spark, tmp_path)
    source = rows(spark).where("id < 3").selectExpr("id", "-1L as price", "'new' as brand")
    more = source.union(source.selectExpr("id + 200 as id", "price", "brand"))
    result = table.merge(more, iter(["id"]), update=iter(["brand"]), insert=iter(["id", "brand"]))
    assert (result.rows_updated, result.rows_inserted) == (3, 3)
    found = plain(spark, tmp_path).where("brand = 'new'").select("id", "price")
    assert sorted(found.collect()) == [(0, 0), (1, 3), (2, 6), *((200 + i, None) for i in range(3))]
    result = table.merge(source, "id", update=np.True_, insert=np.False_)
    assert (result.rows_updated, result.rows_inserted) == (3, 0)

    write_table(rows(spark).selectExpr("id + 100 as id", "price"), path=tmp_path)
    table = QbeastTable.for_path(spark, tmp_path)
    paths = [file.path for file in table.files()]
    for given in ({"files": iter(paths)}, {"revision_id": iter(paths)}):
        assert table.optimize(**given, dry_run=True) == table.optimize(files=paths, dry_run=True)
    assert table.optimize(np.int64(1), dry_run=True) == table.optimize(1, dry_run=True)
    table.drop_columns(name for name in ("flag", "many"))
    assert not {"flag", "many"} & set(plain(spark, tmp_path).columns)
    assert table.estimate("avg(price)", tolerance=1e-200).exact


def test_a_table_does_not_move_to_another_location(spark: SparkSession, tmp_path: Path) -> None:
    place, other = tmp_path / "here", tmp_path / "there"
    options: dict[str, Any] = {"table": "located", "columns_to_index": "id"}
    try:
        write_table(spark.range(5), location=place, **options)
        for mode in ("append", "overwrite", "error", "ignore"):
            with pytest.raises(
                InvalidOptions, match=f"located exists at .*here, .* '{other}'; .*drop"
            ):
                write_table(spark.range(5), location=other, mode=mode, **options)
        for same in (f"{place}/", place.as_uri(), f"{tmp_path}/there/../here"):
            write_table(spark.range(5), location=same, **options)
        assert spark.table("located").count() == 20
        assert not other.exists()
    finally:
        spark.sql("drop table if exists located")


def test_an_unknown_mode_is_refused_with_the_known_ones(spark: SparkSession, indexed: str) -> None:
    with pytest.raises(InvalidOptions, match=r"'apend'.*'append', 'overwrite', 'error', 'ignore'"):
        write_table(rows(spark), path=indexed, columns_to_index="price,brand", mode="apend")


def test_a_session_catalog_that_is_not_sparks_takes_paths_only(
    spark: SparkSession, tmp_path: Path
) -> None:
    other = spark.newSession()
    prefix = "spark.sql.catalog.spark_catalog"
    foreign = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"
    other.conf.set(prefix, foreign)
    other.conf.set(f"{prefix}.url", "jdbc:derby:memory:foreign;create=true")
    other.conf.set(f"{prefix}.driver", "org.apache.derby.iapi.jdbc.AutoloadedDriver")
    for name in ("elsewhere", "spark_catalog.default.elsewhere"):
        with pytest.raises(InvalidOptions, match=f"{foreign}.*Use paths"):
            write_table(other.range(9), table=name, columns_to_index="id")
    path = str(tmp_path / "t")
    write_table(other.range(9), path=path, columns_to_index="id")
    assert QbeastTable.for_path(other, path).dataframe().count() == 9


@pytest.fixture
def other_catalog(spark: SparkSession) -> Iterator[None]:
    """Makes another catalog the current one."""
    other, jdbc = "spark.sql.catalog.other", "org.apache.spark.sql.execution.datasources.v2.jdbc"
    spark.conf.set(other, f"{jdbc}.JDBCTableCatalog")
    spark.conf.set(f"{other}.url", "jdbc:derby:memory:other;create=true")
    spark.sql("use other")
    yield
    spark.sql("use spark_catalog")


@pytest.mark.usefixtures("other_catalog")
def test_a_name_of_another_catalog_is_refused(spark: SparkSession) -> None:
    for name in ("sales", "default.sales"):
        with pytest.raises(InvalidOptions, match=r"spark_catalog\.schema\.table"):
            write_table(rows(spark), table=name, columns_to_index="price")
    assert not spark.catalog.tableExists("spark_catalog.default.sales")


def test_a_schema_with_the_name_of_a_catalog_needs_the_full_name(spark: SparkSession) -> None:
    catalog = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"
    spark.sql("create schema lake")
    try:
        with changed_settings(spark, {"spark.sql.catalog.lake": catalog}):
            for call in (
                lambda: write_table(spark.range(9), table="lake.`a b`", columns_to_index="id"),
                lambda: QbeastTable.for_name(spark, "lake.`a b`"),
            ):
                with pytest.raises(InvalidOptions, match=r"spark_catalog\.lake\.`a b`"):
                    call()
            write_table(spark.range(9), table="spark_catalog.lake.t", columns_to_index="id")
            assert QbeastTable.for_name(spark, "spark_catalog.lake.t").sample(1.0).count() == 9
        assert QbeastTable.for_name(spark, "lake.t").sample(1.0).count() == 9
    finally:
        spark.sql("drop schema lake cascade")


@pytest.mark.skipif(pyspark.__version__ < "4.2", reason="Spark 4.2 is the first with SET PATH")
def test_a_name_that_spark_searches_for_is_refused(spark: SparkSession) -> None:
    """`session.orders` can be a temporary view, and `orders` can be in any schema of the path."""
    spark.sql("create schema session")
    try:
        write_table(spark.range(9), table="session.orders", columns_to_index="id")
        assert QbeastTable.for_name(spark, "Session.orders").sample(1.0).count() == 9
        spark.range(1).createTempView("orders")
        assert spark.table("session.orders").count() == 1
        with pytest.raises(NotAQbeastTable, match="is a view; name the table"):
            QbeastTable.for_name(spark, "Session.orders")
        full = QbeastTable.for_name(spark, "spark_catalog.session.orders")
        assert full.sample(1.0).count() == 9
        spark.catalog.dropTempView("orders")
        with changed_settings(spark, {"spark.sql.path.enabled": "true"}):
            for call in (
                lambda: QbeastTable.for_name(spark, "orders"),
                lambda: write_table(spark.range(9), table="orders", columns_to_index="id"),
            ):
                with pytest.raises(InvalidOptions, match=r"'orders' has no schema"):
                    call()
    finally:
        spark.catalog.dropTempView("orders")
        spark.sql("drop schema session cascade")


@pytest.mark.skipif(pyspark.__version__ < "4.2", reason="Spark 4.2 is the first with metric views")
def test_a_metric_view_is_a_view(spark: SparkSession) -> None:
    spark.sql("create table measured using delta as select id as a, id as b from range(5)")
    try:
        spark.sql(
            "create view metrics with metrics language yaml as $$\nversion: 0.1\n"
            "source: measured\ndimensions:\n  - name: a\n    expr: a\n"
            "measures:\n  - name: total\n    expr: sum(b)\n$$"
        )
        with pytest.raises(NotAQbeastTable, match="is a view; name the table"):
            QbeastTable.for_name(spark, "metrics")
        with pytest.raises(IncompatibleTable, match="is a view"):
            write_table(spark.range(5), table="metrics", columns_to_index="id")
    finally:
        spark.sql("drop view if exists metrics")
        spark.sql("drop table measured")


@pytest.mark.usefixtures("other_catalog")
def test_a_table_is_found_by_its_full_name_while_another_catalog_is_current(
    spark: SparkSession,
) -> None:
    table = "spark_catalog.default.sales"
    try:
        write_table(rows(spark), table=table, columns_to_index="price")
        write_table(rows(spark), table=table)
        assert spark.table(table).count() == 200
        assert_advice_is_right(spark, table, lambda: QbeastTable.for_name(spark, table))
        spark.sql(f"drop table {table}")
        spark.sql(f"create table {table} using parquet as select id from range(5)")
        convert_to_qbeast(spark, table, "id")
        assert QbeastTable.for_name(spark, table).sample(1.0).count() == 5
    finally:
        spark.sql(f"drop table if exists {table}")


@pytest.mark.parametrize("name", ["2024", "1e5", "12d", "order"])
def test_a_tables_name_may_need_backticks(spark: SparkSession, name: str) -> None:
    table = f"default.{quoted(name)}"
    with changed_settings(spark, {"spark.sql.ansi.enforceReservedKeywords": "true"}):
        try:
            write_table(spark.range(5), table=table, columns_to_index="id")
            write_table(spark.range(5, 9), table=table)
            assert QbeastTable.for_name(spark, table).sample(1.0).count() == 9
            assert_advice_is_right(spark, table, lambda: QbeastTable.for_name(spark, table))
            spark.sql(f"drop table {table}")
            spark.sql(f"create table {table} using parquet as select id from range(5)")
            convert_to_qbeast(spark, table, "id")
            assert QbeastTable.for_name(spark, table).sample(1.0).count() == 5
        finally:
            spark.sql(f"drop table if exists {table}")


def assert_advice_is_right(
    spark: SparkSession, name: str, opened: Callable[[], QbeastTable]
) -> None:
    """The statement in the error for an append-only table is for this table."""
    spark.sql(f"alter table {name} set tblproperties ('delta.appendOnly' = 'true')")
    with pytest.raises(IncompatibleTable, match="append-only") as told:
        opened().delete("id = 1")
    statement = re.search(r"ALTER TABLE .*(?= first)", str(told.value))
    assert statement is not None
    spark.sql(statement[0])
    assert opened().delete("id = 1").changed


def test_the_advice_for_a_table_at_a_relative_path_is_for_no_other_table(
    spark: SparkSession,
) -> None:
    with TemporaryDirectory(dir=Path.cwd()) as place:
        path = Path(place).name
        write_table(spark.range(5), path=path, columns_to_index="id")
        assert (Path(place) / "_delta_log").is_dir()
        assert_advice_is_right(spark, f"delta.`{place}`", lambda: QbeastTable.for_path(spark, path))


def test_a_path_in_place_of_a_name_is_refused_with_what_takes_paths(
    spark: SparkSession, indexed: str
) -> None:
    name, words = f"delta.`{indexed}`", f"is a path, .*path='{indexed}'.*for_path"
    with pytest.raises(InvalidOptions, match=words):
        write_table(rows(spark), table=name)
    with pytest.raises(InvalidOptions, match=words):
        QbeastTable.for_name(spark, name)
    assert not QbeastTable.is_qbeast(spark, name)


CHANGES: dict[str, Callable[[QbeastTable, DataFrame], object]] = {
    "delete": lambda table, rows: table.delete("id = 1"),
    "update": lambda table, rows: table.update({"id": "2"}, "id = 1"),
    "merge": lambda table, rows: table.merge(rows, "id"),
    "replace_where": lambda table, rows: table.replace_where(rows, "id < 5"),
    "replace_matching": lambda table, rows: table.replace_matching(rows, "id"),
    "drop_columns": lambda table, rows: table.drop_columns("id"),
    "optimize": lambda table, rows: table.optimize(),
}


def test_changes_say_that_their_table_is_gone(spark: SparkSession) -> None:
    """Its columns are missing as well, but the columns that the user names are not wrong."""
    name, given = "default.gone", spark.range(5)

    def says(words: str) -> None:
        for change in CHANGES.values():
            with pytest.raises(NotAQbeastTable, match=words):
                change(table, given)

    write_table(given, table=name, columns_to_index="id")
    table = QbeastTable.for_name(spark, name)
    try:
        spark.sql(f"drop table {name}")
        says(f"{name} was dropped or replaced after it was opened; open it again")
        spark.sql(f"create table {name} using delta as select 1 as other")
        says(f"{name} is a Delta table without a Qbeast index")
        shutil.rmtree(table._table.address.location.removeprefix("file:"))
        says(f"{name} is in the catalog, but there is no Delta table")
    finally:
        spark.sql(f"drop table if exists {name}")


def test_a_relative_location_is_refused(spark: SparkSession) -> None:
    with pytest.raises(InvalidOptions, match="'data/t' of relative is not absolute"):
        write_table(rows(spark), table="relative", location="data/t", columns_to_index="price")
    assert not Path("data/t").exists()


def test_a_new_table_needs_columns_to_index(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InvalidOptions, match="columns_to_index is needed"):
        write_table(rows(spark), path=str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()


def test_a_revision_that_does_not_exist_has_no_metrics(spark: SparkSession, indexed: str) -> None:
    with pytest.raises(InvalidOptions, match=r"no revision 7.*0, 1"):
        QbeastTable.for_path(spark, indexed).index_metrics(7)


ODD_NAMES = [
    "with space",
    "with.dot",
    "it's",
    'say "x"',
    "back`tick",
    "semi;colon",
    "line\nbreak",
    "-- comment",
    "größe 測",
    "_qbeast_weight",
    "select",
    "{{ jinja }}",
    "a=b",
    "1",
]


@pytest.mark.parametrize(("number", "text"), zip(ODD_NAMES[::2], ODD_NAMES[1::2], strict=True))
def test_odd_column_names_work_from_end_to_end(
    spark: SparkSession, tmp_path: Path, number: str, text: str
) -> None:
    path = str(tmp_path)

    def named(first: int, count: int) -> Any:
        return spark.createDataFrame(
            [(i, i * 37 % 211, f"s{i % 13}") for i in range(first, first + count)],
            "id long, x int, s string",
        ).toDF("id", number, text)

    write_table(named(0, 300), path=path, columns_to_index=[number, text], cube_size=40)
    write_table(named(300, 100), path=path, columns_to_index=[number, text])
    where = f"{quoted(number)} < 60 and {quoted(text)} != 's3'"
    table = assert_sound(spark, path, range(400), where=where)
    assert table.columns_to_index == [number, text]
    by_text = plain(spark, path).where(table.sample_condition(0.3))
    assert by_text.count() == table.sample(0.3).count()
    for filtered in (f"{quoted(number)} < 20", f"{quoted(text)} = 's3'"):
        assert len(table.files(1.0, filtered)) < len(table.files())
    assert not table.optimize(revision_id=1, dry_run=True).version > 1
    assert_rows_in_their_cubes(spark, path)


def test_a_comma_or_colon_in_a_name_is_refused_for_indexing_only(
    spark: SparkSession, tmp_path: Path
) -> None:
    odd = spark.range(20).selectExpr("id", "id as `a,b`", "id as `c:d`")
    for name in ("a,b", "c:d"):
        with pytest.raises(InvalidOptions, match=r"comma or colon|cannot be indexed as"):
            write_table(odd, path=str(tmp_path / "t"), columns_to_index=[name])
    write_table(odd, path=str(tmp_path / "t"), columns_to_index=["id"])
    assert plain(spark, tmp_path / "t").where("`a,b` = 7 and `c:d` = 7").count() == 1


def test_column_names_are_found_in_any_case_and_stored_as_in_the_schema(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_table(rows(spark), path=str(tmp_path), columns_to_index=["PRICE", "Brand:HASH"])
    table = QbeastTable.for_path(spark, str(tmp_path))
    assert table.columns_to_index == ["price", "brand"]
    assert_sound(spark, tmp_path, range(100))


@pytest.mark.parametrize(
    ("property_", "named"),
    [("delta.enableRowTracking", "row tracking")],
)
def test_a_feature_that_an_append_would_break_is_named(
    spark: SparkSession, tmp_path: Path, property_: str, named: str
) -> None:
    path = str(tmp_path)
    write_table(rows(spark), path=path, columns_to_index=["price"])
    spark.sql(f"alter table delta.`{path}` set tblproperties ('{property_}' = 'true')")
    version = last_version(path)
    with pytest.raises(IncompatibleTable, match=named):
        write_table(rows(spark), path=path)
    with pytest.raises(IncompatibleTable, match=named):
        QbeastTable.for_path(spark, path).optimize()
    assert last_version(path) == version
