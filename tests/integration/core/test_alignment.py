"""Rows meet a table's schema by name at every depth, as they do in plain Delta."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from qbeast_core import QbeastTable, convert_to_qbeast, write_table
from qbeast_core.errors import IncompatibleTable, InvalidOptions, UnsupportedColumnType
from qbeast_core.jvm.settings import changed_settings
from qbeast_core.model.slices import slice_of_weight
from tests.support.delta_log import last_version, plain
from tests.support.invariants import assert_sound
from tests.support.views import viewed

NESTED = """
    id,
    named_struct('x', id, 'y', id * 10) s,
    array(named_struct('x', id, 'y', id * 10)) a,
    map('k', named_struct('x', id, 'y', id * 10)) m,
    named_struct('in', array(named_struct('x', id, 'y', id * 10))) d
"""
SWAPPED = NESTED.replace("'x', id, 'y', id * 10", "'Y', cast(id * 10 as int), 'X', cast(id as int)")
MORE = NESTED.replace("'y', id * 10", "'y', id * 10, 'z', 1")
LESS = NESTED.replace(", 'y', id * 10", "")
NEW = 7

Operation = Callable[[QbeastTable, DataFrame], Any]
OPERATIONS: dict[str, Operation] = {
    "merge": lambda table, rows: table.merge(rows, on="id"),
    "replace_where": lambda table, rows: table.replace_where(rows, f"id = {NEW}"),
    "replace_matching": lambda table, rows: table.replace_matching(rows, on="id"),
}


def query(spark: SparkSession, columns: str, first: int = NEW, rows: int = 1) -> DataFrame:
    return spark.sql(f"select {columns} from range({first}, {first + rows})")


@pytest.fixture
def nested(spark: SparkSession, tmp_path: Path) -> str:
    path = str(tmp_path / "indexed")
    write_table(query(spark, NESTED, 0, NEW), path=path, columns_to_index=["id"])
    return path


@pytest.fixture
def twin(spark: SparkSession, tmp_path: Path) -> str:
    path = str(tmp_path / "twin")
    query(spark, NESTED, 0, NEW).write.format("delta").save(path)
    return path


def append_twin(rows: DataFrame, path: str) -> None:
    rows.write.format("delta").mode("append").save(path)


def sorted_rows(spark: SparkSession, path: str) -> list[Any]:
    return sorted(plain(spark, path).collect())


def test_an_append_takes_fields_by_name(spark: SparkSession, nested: str, twin: str) -> None:
    # Plain Delta takes other names' case too, but narrower numbers only where it may widen them.
    append_twin(query(spark, NESTED), twin)
    write_table(query(spark, SWAPPED), path=nested)
    assert sorted_rows(spark, nested) == sorted_rows(spark, twin)
    write_table(query(spark, LESS, 8), path=nested)
    append_twin(query(spark, LESS, 8), twin)
    assert sorted_rows(spark, nested) == sorted_rows(spark, twin)
    assert plain(spark, nested).schema == plain(spark, twin).schema


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_change_takes_fields_by_name(
    spark: SparkSession, nested: str, twin: str, operation: str
) -> None:
    for columns in (SWAPPED, SWAPPED.replace("id * 10", "id * 20")):
        OPERATIONS[operation](QbeastTable.for_path(spark, nested), query(spark, columns))
    query(spark, NESTED.replace("id * 10", "id * 20")).write.format("delta").mode("append").save(
        twin
    )
    assert sorted_rows(spark, nested) == sorted_rows(spark, twin)
    assert_sound(spark, nested)


def test_an_update_takes_fields_by_name(spark: SparkSession, nested: str, twin: str) -> None:
    values = {"s": "named_struct('y', 1L, 'x', 2)", "a": "array(named_struct('y', 3, 'x', 4L))"}
    QbeastTable.for_path(spark, nested).update(values, "id = 2")
    spark.sql(
        f"update delta.`{twin}` set s = {values['s']}, a = {values['a']} where id = 2"
    ).collect()
    assert sorted_rows(spark, nested) == sorted_rows(spark, twin)


@pytest.mark.parametrize("operation", ["append", *OPERATIONS])
def test_a_field_that_the_table_lacks_is_named(
    spark: SparkSession, nested: str, operation: str
) -> None:
    before = last_version(nested)
    rows = query(spark, MORE)
    with pytest.raises(InvalidOptions, match=r"'s\.z'"):
        if operation == "append":
            write_table(rows, path=nested)
        else:
            OPERATIONS[operation](QbeastTable.for_path(spark, nested), rows)
    for column, field in (("a", r"'a\.element\.z'"), ("m", r"'m\.value\.z'"), ("d", "'d.in.ele")):
        with pytest.raises(InvalidOptions, match=field):
            write_table(rows.select("id", column), path=nested)
    assert last_version(nested) == before


def test_an_update_may_not_lose_a_field(spark: SparkSession, nested: str, twin: str) -> None:
    before = last_version(nested)
    table, rows = QbeastTable.for_path(spark, nested), query(spark, LESS, 1)
    with pytest.raises(InvalidOptions, match=r"lack 's\.y'"):
        table.merge(rows, on="id")
    with pytest.raises(InvalidOptions, match=r"lack 's\.y'"):
        table.update({"s": "named_struct('x', 1)"})
    assert last_version(nested) == before
    for clause in ("when matched then update set s = source.s", "when not matched then insert *"):
        with pytest.raises(Exception, match="All nested columns must match"), viewed(rows):
            spark.sql(f"merge into delta.`{twin}` t using source on t.id = source.id {clause}")


@pytest.mark.parametrize("column", ["s", "a", "m", "d"])
def test_a_merge_inserts_no_part_of_a_struct(
    spark: SparkSession, nested: str, twin: str, column: str
) -> None:
    rows, before = query(spark, LESS).select("id", column), last_version(nested)
    with pytest.raises(InvalidOptions, match=rf"lack '{column}\..*y'"):
        QbeastTable.for_path(spark, nested).merge(rows, on="id", update=False)
    assert last_version(nested) == before
    with pytest.raises(Exception, match="All nested columns must match"), viewed(rows):
        spark.sql(
            f"merge into delta.`{twin}` t using source on t.id = source.id "
            f"when not matched then insert (id, {column}) values (source.id, source.{column})"
        )


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_value_that_does_not_fit_fails_the_write(
    spark: SparkSession, tmp_path: Path, ansi: str
) -> None:
    path, twin = str(tmp_path / "indexed"), str(tmp_path / "twin")
    columns = "id, cast(id as int) n, named_struct('n', cast(1 as decimal(5, 2))) s"
    write_table(query(spark, columns, 0, 3), path=path, columns_to_index=["id"])
    query(spark, columns, 0, 3).write.format("delta").save(twin)
    table, before = QbeastTable.for_path(spark, path), last_version(path)
    with changed_settings(spark, {"spark.sql.ansi.enabled": ansi}):
        for value in ("3000000000 n", "'abc' n", "named_struct('n', 12345.0) s"):
            rows = query(spark, f"id, {value}", 1)
            name = value.rpartition(" ")[2]
            with pytest.raises(Exception, match="CAST_"):
                write_table(rows, path=path)
            for operation in OPERATIONS.values():
                with pytest.raises(Exception, match="CAST_"):
                    operation(table, rows.selectExpr(f"{NEW}L id", name))
            with pytest.raises(Exception, match="CAST_"):
                table.merge(rows, on="id", insert=False)
            expression = value.rpartition(" ")[0]
            with pytest.raises(Exception, match="CAST_"):
                table.update({name: expression})
            with pytest.raises(Exception, match="CAST_"):
                spark.sql(f"update delta.`{twin}` set {name} = {expression}").collect()
        with pytest.raises(InvalidOptions, match="'n' is date in the query and int"):
            write_table(query(spark, "id, current_date() n"), path=path)
        assert last_version(path) == before
        # What fits is stored as the table has it.
        write_table(query(spark, "id, '5' n, named_struct('n', 1.5) s"), path=path)
        spark.sql(f"insert into delta.`{twin}` select {NEW}, '5', named_struct('n', 1.5)").collect()
    assert sorted_rows(spark, path) == sorted_rows(spark, twin)


def test_names_that_differ_by_case_only_are_refused(spark: SparkSession, nested: str) -> None:
    for columns in ("id, 1 ID", "id, named_struct('x', 1, 'X', 2) s"):
        with pytest.raises(InvalidOptions, match="more than once"):
            write_table(query(spark, columns), path=nested)


COMPUTED = """
    id bigint,
    doubled bigint generated always as (id * 2),
    number bigint generated always as identity,
    given bigint generated by default as identity (start with 100),
    d int default 7,
    s struct<x: int, y: string> default named_struct('x', 1, 'y', 'z')
"""


@pytest.fixture
def computed(spark: SparkSession, tmp_path: Path) -> tuple[str, str]:
    """An indexed table with columns that Delta computes, and its twin."""
    paths = (str(tmp_path / "indexed"), str(tmp_path / "twin"))
    for path in paths:
        spark.sql(
            f"create table delta.`{path}` ({COMPUTED}) using delta "
            "tblproperties ('delta.feature.allowColumnDefaults' = 'supported')"
        )
    convert_to_qbeast(spark, f"delta.`{paths[0]}`", ["id"], cube_size=10)
    return paths


def test_computed_columns_get_the_values_that_delta_gives(
    spark: SparkSession, computed: tuple[str, str]
) -> None:
    path, twin = computed
    # The second append opens a revision, the third one gives what may be given.
    appended = [
        "id",
        "id + 1000 id",
        "id + 50 id, id * 2 + 100 doubled, 5L given, cast(null as int) d",
    ]
    for columns in appended:
        rows = query(spark, columns, 0, 3).coalesce(1)
        write_table(rows, path=path)
        append_twin(rows, twin)
    assert sorted_rows(spark, path) == sorted_rows(spark, twin)
    table = QbeastTable.for_path(spark, path)
    assert len(table.revision_ids) > 2 and table.check().ok
    # Rows that are rewritten keep their numbers.
    table.delete("id = 1")
    table.optimize()
    spark.sql(f"delete from delta.`{twin}` where id = 1").collect()
    assert sorted_rows(spark, path) == sorted_rows(spark, twin)


def test_wrong_values_for_computed_columns_are_refused(
    spark: SparkSession, computed: tuple[str, str]
) -> None:
    path, twin = computed
    before = last_version(path)
    number = query(spark, "id, 1L number")
    with pytest.raises(InvalidOptions, match="generates the values of 'number'"):
        write_table(number, path=path)
    with pytest.raises(Exception, match="IDENTITY"):
        append_twin(number, twin)
    doubled = query(spark, "id, id * 3 doubled")
    for write in (lambda: write_table(doubled, path=path), lambda: append_twin(doubled, twin)):
        with pytest.raises(Exception, match="CHECK constraint Generated Column"):
            write()
    assert last_version(path) == before


def test_an_overwrite_may_keep_the_schema(spark: SparkSession, computed: tuple[str, str]) -> None:
    path, twin = computed
    for columns in ("id", "'1' id, 8 d"):
        rows = query(spark, columns, 0, 2).coalesce(1)
        write_table(rows, path=path, mode="overwrite", overwrite_schema=False)
        rows.selectExpr("cast(id as bigint)", *rows.columns[1:]).write.format("delta").mode(
            "overwrite"
        ).save(twin)
        assert sorted_rows(spark, path) == sorted_rows(spark, twin)
    write_table(query(spark, "id", 0, 2).coalesce(1), path=path)
    append_twin(query(spark, "id", 0, 2).coalesce(1), twin)
    assert sorted_rows(spark, path) == sorted_rows(spark, twin)


def test_a_default_of_the_current_time_is_evaluated_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    spark.sql(
        f"create table delta.`{path}` (id bigint, number bigint generated always as identity, "
        "at timestamp default current_timestamp()) using delta "
        "tblproperties ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    convert_to_qbeast(spark, f"delta.`{path}`", ["at"])
    for _ in range(2):
        write_table(spark.range(5), path=path)
    assert plain(spark, path).where("at is not null").count() == 10
    assert QbeastTable.for_path(spark, path).check().ok


def test_a_merge_inserts_defaults(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.sql(
        f"create table delta.`{path}` (id bigint, d int default 7) using delta "
        "tblproperties ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    convert_to_qbeast(spark, f"delta.`{path}`", ["id"])
    table = QbeastTable.for_path(spark, path)
    table.merge(spark.range(3), on="id")
    table.merge(query(spark, "id, 8 d", 3), on="id")
    table.merge(spark.range(3, 5), on="id")
    assert [row.d for row in sorted_rows(spark, path)] == [7, 7, 7, 8, 7]


def test_a_default_is_not_subject_to_substitution(spark: SparkSession, tmp_path: Path) -> None:
    """Spark replaces `${...}` in the text of a statement, but not in a stored default."""
    indexed, twin = str(tmp_path / "t"), str(tmp_path / "twin")
    with changed_settings(spark, {"spark.sql.variable.substitute": "false"}):
        for path in (indexed, twin):
            spark.sql(
                f"create table delta.`{path}` (id bigint, s string default 'a${{spark.app.name}}') "
                "using delta tblproperties ('delta.feature.allowColumnDefaults' = 'supported')"
            )
    convert_to_qbeast(spark, f"delta.`{indexed}`", ["id"])
    write_table(spark.range(1), path=indexed)
    QbeastTable.for_path(spark, indexed).merge(spark.range(1, 2), on="id")
    spark.range(2).write.format("delta").mode("append").save(twin)
    stored = [tuple(row) for row in sorted_rows(spark, indexed)]
    assert stored == [tuple(row) for row in sorted_rows(spark, twin)]
    assert stored == [(0, "a${spark.app.name}"), (1, "a${spark.app.name}")]


IDENTITY = "n bigint generated {} as identity, a bigint, b string"


def with_identity(spark: SparkSession, path: str, generated: str = "always") -> str:
    spark.sql(f"create table delta.`{path}` ({IDENTITY.format(generated)}) using delta")
    return f"delta.`{path}`"


def without_identity(spark: SparkSession) -> DataFrame:
    return query(spark, "id % 7 as a, 'x' as b", 0, 300).coalesce(1)


def test_columns_are_chosen_among_those_that_rows_bring(
    spark: SparkSession, tmp_path: Path
) -> None:
    """An identity column tells all rows apart, so it would be the best choice."""
    filled, appended, optimized = (str(tmp_path / name) for name in "fao")
    tables = [with_identity(spark, path) for path in (filled, appended, optimized)]
    append_twin(without_identity(spark), filled)
    for table in tables:
        assert convert_to_qbeast(spark, table, "auto:1").columns == ("a",)
    # Columns chosen from no rows are chosen again, with the first ones.
    write_table(without_identity(spark), path=appended)
    append_twin(without_identity(spark), optimized)
    for path in (filled, appended, optimized):
        QbeastTable.for_path(spark, path).optimize()
        table = QbeastTable.for_path(spark, path)
        assert table.columns_to_index == ["a"] and table.check().ok
        found = plain(spark, path)
        assert sorted(found.select("a", "b").collect()) == sorted(without_identity(spark).collect())
        assert found.select("n").distinct().count() == 300


def test_an_index_by_an_identity_column_stays_usable(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As earlier versions and qbeast-spark made them, of rows that had their numbers."""
    path, twin = str(tmp_path / "t"), str(tmp_path / "twin")
    with monkeypatch.context() as earlier:
        earlier.setattr("qbeast_core.options._refuse_identity", lambda *_: None)
        convert_to_qbeast(
            spark, with_identity(spark, path, "by default"), ["n"], sample_key=["n", "a"]
        )
    with_identity(spark, twin, "by default")
    for each in (path, twin):
        append_twin(without_identity(spark), each)
    table = QbeastTable.for_path(spark, path)
    assert table.optimize().changed
    table.delete("n % 3 = 0")
    spark.sql(f"delete from delta.`{twin}` where n % 3 = 0").collect()
    given = query(spark, "id + 1000 as n, id as a, 'y' as b", 0, 5)
    write_table(given, path=path, columns_to_index=["n"], sample_key=["n", "a"])
    append_twin(given, twin)
    assert sorted_rows(spark, path) == sorted_rows(spark, twin)
    table = QbeastTable.for_path(spark, path)
    assert table.check().ok
    below = plain(spark, path).where(table.sample_condition(0.4)).count()
    assert table.sample(0.4).count() == below > 0
    before = last_version(path)
    with pytest.raises(IncompatibleTable, match=r"'n', an identity column.*plain Delta"):
        write_table(without_identity(spark), path=path)
    with pytest.raises(UnsupportedColumnType, match="identity column"):
        write_table(given, path=path, mode="overwrite", overwrite_schema=False)
    assert last_version(path) == before


def test_an_identity_column_is_not_indexed(spark: SparkSession, computed: tuple[str, str]) -> None:
    _, twin = computed
    for options in (
        {"columns_to_index": ["number"]},
        {"columns_to_index": ["id"], "sample_key": ["number"]},
    ):
        with pytest.raises(UnsupportedColumnType, match="identity column"):
            convert_to_qbeast(spark, f"delta.`{twin}`", **options)
    convert_to_qbeast(spark, f"delta.`{twin}`", ["id"], sample_key="all")
    write_table(spark.range(3), path=twin)
    assert plain(spark, twin).count() == 3


CHARS = (
    "id bigint, c char(6), v varchar(6), s struct<n: int, c: char(6)>, "
    "a array<char(6)>, m map<char(6), struct<c: char(6)>>"
)


@pytest.mark.parametrize("way", ["append", "create", "rebuild", "merge", "replace"])
def test_a_char_at_any_depth_is_placed_by_the_value_that_is_read(
    spark: SparkSession, tmp_path: Path, way: str
) -> None:
    path, twin = str(tmp_path / "t"), str(tmp_path / "twin")
    spark.sql(f"create table delta.`{twin}` ({CHARS}) using delta")
    schema = plain(spark, twin).schema
    texts = [None if i % 7 == 0 else f"k{i}" for i in range(120)]
    made = [
        (i, t, t, None if t is None else (i, t), [t, None], {f"k{i}": None if t is None else (t,)})
        for i, t in enumerate(texts)
    ]
    new, empty = spark.createDataFrame(made, schema), spark.createDataFrame([], schema)
    append_twin(new, twin)
    options = {
        "path": path,
        "columns_to_index": ["c"],
        "sample_key": ["c", "s", "a"],
        "slices": True,
        "cube_size": 10,
    }
    if way != "create":
        write_table(new if way == "rebuild" else empty, **options)
    match way:
        case "rebuild":
            write_table(new, path=path, mode="overwrite")
        case "merge":
            QbeastTable.for_path(spark, path).merge(new, "id")
        case "replace":
            QbeastTable.for_path(spark, path).replace_where(new, "true")
        case _:
            write_table(new, **options)
    table = assert_sound(spark, path, range(120), fractions=[0.3, 1.0])
    stored = plain(spark, path).selectExpr("id", "_qbeast_slice as slice", "hash(c, s, a) as w")
    assert all(row.slice == slice_of_weight(row.w) for row in stored.collect())
    by_id = [table.dataframe().orderBy("id").collect(), plain(spark, twin).orderBy("id").collect()]
    assert by_id[0] == by_id[1] and by_id[0][1].a == ["k1    ", None]


def test_padding_on_read_does_not_change_samples_of_a_char_column(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    spark.sql(f"create table delta.`{path}` (id bigint, c char(6)) using delta")
    convert_to_qbeast(spark, f"delta.`{path}`", ["c"], cube_size=10)
    rows = query(spark, "id, concat('k', id) c", 0, 100)
    write_table(rows, path=path)
    QbeastTable.for_path(spark, path).update({"c": "concat('u', id)"}, "id % 3 = 0")

    def sampled() -> tuple[list[int], int]:
        table = QbeastTable.for_path(spark, path)
        assert table.check().ok
        found = table.sample(0.4, where="c like 'u%'").select("id").collect()
        return sorted(row.id for row in found), table.sample(1.0, where="c = 'k7'").count()

    padded = sampled()
    with changed_settings(spark, {"spark.sql.readSideCharPadding": "false"}):
        assert sampled()[0] == padded[0]
    assert padded[0] and padded[1] == 1


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("spark.sql.readSideCharPadding", "false"),
        ("spark.sql.legacy.charVarcharAsString", "true"),
    ],
)
def test_a_session_that_does_not_pad_changes_no_table_with_an_indexed_char(
    spark: SparkSession, tmp_path: Path, setting: str, value: str
) -> None:
    """Rows of plain Delta lack the spaces. Rewritten, they would be in other samples."""
    path = str(tmp_path / "t")
    spark.sql(f"create table delta.`{path}` (id bigint, c char(8)) using delta")
    convert_to_qbeast(spark, f"delta.`{path}`", ["c"], cube_size=10)
    spark.sql(f"insert into delta.`{path}` select id, concat('k', id) from range(100)")
    table, before = QbeastTable.for_path(spark, path), last_version(path)
    with changed_settings(spark, {setting: value}):
        for change in (
            lambda: table.optimize("unindexed"),
            lambda: table.delete("id = 3"),
            lambda: write_table(query(spark, "id, 'x' c", 0, 9), path=path),
        ):
            with pytest.raises(IncompatibleTable, match=r"'c' of type char\(n\).*Padding to true"):
                change()
        assert last_version(path) == before
    table.optimize("unindexed")
    assert table.delete("id = 3").rows_deleted == 1
    assert QbeastTable.for_path(spark, path).check().ok
