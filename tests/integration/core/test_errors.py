"""Any failure raises an error of qbeast_core in one line and leaves the table unchanged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qbeast_core import (
    QbeastTable,
    check_convertible,
    convert_to_qbeast,
    migrate_format,
    write_table,
)
from qbeast_core.errors import (
    ConstraintViolated,
    ExecutionFailed,
    IncompatibleTable,
    NoSpace,
    QbeastError,
    StorageRefused,
    ValueDoesNotFit,
)
from qbeast_core.jvm.failures import typed_errors
from tests.support.delta_log import last_version
from tests.support.invariants import assert_sound

DEV_FULL = Path("/dev/full")


def rows(spark: SparkSession, first: int, count: int) -> DataFrame:
    ids = spark.range(first, first + count)
    return ids.selectExpr("id", "id * 3 as x", "'s' || id % 5 as s", "cast(id as int) as k")


def bad(_: int) -> int:
    raise ValueError("user says no")


def test_failures_in_spark_are_reported_in_one_line_with_their_class(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    spark.sql(
        f"create table delta.`{path}` (id bigint, x bigint not null, s varchar(4), k int) "
        "using delta"
    )
    spark.sql(f"alter table delta.`{path}` add constraint pos check (k >= 0)")
    convert_to_qbeast(spark, f"delta.`{path}`", ["x"])
    write_table(rows(spark, 0, 30), path=path)
    table = QbeastTable.for_path(spark, path)
    new, version = rows(spark, 100, 5), last_version(path)

    def append(**columns: str) -> Callable[[], Any]:
        changed = new.withColumns({name: F.expr(text) for name, text in columns.items()})
        return lambda: write_table(changed, path=path)

    calls: list[tuple[Callable[[], Any], type[QbeastError], str]] = [
        (append(k="-1"), ConstraintViolated, r"CHECK constraint pos .* values: k : -1\. Correct"),
        (append(x="cast(null as bigint)"), ConstraintViolated, "NOT NULL .* column: x"),
        (append(s="'abcdef'"), ValueDoesNotFit, '"abcdef" exceeds'),
        (append(k="id * 99999999999"), ValueDoesNotFit, "CAST_OVERFLOW"),
        (append(k="cast(s as int)"), ValueDoesNotFit, "'s0'"),
        (append(k="cast(1 / (id - 102) as int)"), ExecutionFailed, "DIVIDE_BY_ZERO"),
        (append(k="raise_error('my text')"), ExecutionFailed, "my text"),
        (
            lambda: write_table(new.withColumn("k", F.udf(bad, "int")("id")), path=path),
            ExecutionFailed,
            "ValueError: user says no",
        ),
        (lambda: table.update({"k": "-5"}), ConstraintViolated, "k : -5"),
        (lambda: table.merge(new.withColumn("k", F.lit(-7)), "id"), ConstraintViolated, "k : -7"),
        (lambda: table.delete("cast(s as int) > 1"), ValueDoesNotFit, "CAST_INVALID_INPUT"),
        (lambda: table.replace_where(new, "1 / (id - 100) < 9"), ExecutionFailed, "DIVIDE_BY_ZERO"),
        (lambda: table.estimate("sum(1 / (x - x))"), ExecutionFailed, "DIVIDE_BY_ZERO"),
        (lambda: QbeastTable.for_path(spark, "nofs://b/t"), ExecutionFailed, "nofs"),
    ]
    for call, kind, words in calls:
        with pytest.raises(QbeastError, match=words) as raised:
            call()
        assert type(raised.value) is kind, raised.value
        assert "\n" not in str(raised.value)
        assert isinstance(raised.value.__cause__, Py4JJavaError | PySparkException)
    # What Spark finds wrong in a user's SQL stays PySpark's own.
    with pytest.raises(ParseException):
        table.sample(0.5, "x >")
    with pytest.raises(AnalysisException):
        table.estimate("avg(nothing)")
    assert last_version(path) == version
    assert_sound(spark, path, range(30))

    for file in Path(path).rglob("*.parquet"):
        file.unlink()
    for lost in (table.check, lambda: table.update({"k": "1"}), lambda: table.estimate("avg(x)")):
        with pytest.raises(ExecutionFailed, match=r"\.parquet"):
            lost()


def test_full_storage_and_refused_access_have_their_own_errors(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(StorageRefused, match="Check that the user who runs Spark"):
        path = str(tmp_path / "file" / "t")
        write_table(rows(spark, 0, 5), path=path, columns_to_index=["x"])
    if DEV_FULL.exists():
        # The exception of a disk that is really full.
        stream: Any = spark._jvm.java.io.FileOutputStream(str(DEV_FULL))  # type: ignore[union-attr]
        with pytest.raises(NoSpace, match="No space left on device"):
            typed_errors(stream.write)(bytearray(b"x" * 10))


@pytest.mark.parametrize("how", ["dropped", "renamed"])
def test_every_operation_reports_a_lost_indexed_column_with_the_same_message(
    spark: SparkSession, tmp_path: Path, how: str
) -> None:
    name = f"lost_{how}"
    write_table(
        rows(spark, 0, 60),
        table=name,
        columns_to_index=["x", "s"],
        cube_size=20,
        properties={"delta.columnMapping.mode": "name"},
    )
    change = "drop column x" if how == "dropped" else "rename column x to y"
    spark.sql(f"alter table {name} {change}")
    spark.sql(f"create table {name}_clone shallow clone {name}")
    table = QbeastTable.for_name(spark, name)
    clone = QbeastTable.for_name(spark, f"{name}_clone")
    new = spark.table(name).limit(3)
    version = table.version
    at = spark.sql(f"describe detail {name}").first()
    assert at is not None

    refused: dict[str, Callable[[], Any]] = {
        "append": lambda: write_table(new, table=name),
        "append with columns": lambda: write_table(new, table=name, columns_to_index=["s"]),
        "rebuild": lambda: write_table(new, table=name, mode="overwrite"),
        "merge": lambda: table.merge(new, "id"),
        "merge by it": lambda: table.merge(rows(spark, 0, 3), "x"),
        "update": lambda: table.update({"k": "1"}),
        "update it": lambda: table.update({"x": "1"}),
        "delete": lambda: table.delete("k < 3"),
        "delete by it": lambda: table.delete("x < 3"),
        "replace_where": lambda: table.replace_where(new, "id >= 0"),
        "replace_matching": lambda: table.replace_matching(new, "id"),
        "drop_columns": lambda: table.drop_columns("k"),
        "optimize": lambda: table.optimize(),
        "optimize all": lambda: table.optimize("all"),
        "dry run": lambda: table.optimize(dry_run=True),
        "sample": lambda: table.sample(0.5),
        "sample with a filter": lambda: table.sample(0.5, "k < 3"),
        "sample_condition": lambda: table.sample_condition(0.5),
        "convert": lambda: convert_to_qbeast(spark, name, ["x", "s"]),
        "convert to others": lambda: convert_to_qbeast(spark, name, ["s"]),
        "check_convertible": lambda: check_convertible(spark, name),
        "migrate": lambda: migrate_format(spark, name),
        "by path": lambda: QbeastTable.for_path(spark, at.location).delete("k < 3"),
        "clone, sample": lambda: clone.sample(0.5),
        "clone, update": lambda: clone.update({"k": "1"}),
    }
    sentences = {}
    for operation, call in refused.items():
        with pytest.raises(IncompatibleTable) as raised:
            call()
        text = str(raised.value)
        for label in (f"default.{name}_clone", f"default.{name}", at.location):
            text = text.replace(f"of {label} ", "of TABLE ")
        sentences[operation] = text
    (sentence,) = set(sentences.values())
    assert sentence.startswith(
        "the index of TABLE needs a column that was dropped, renamed or retyped: column 'x' to "
        "index does not exist; the columns are 'id', "
    )
    assert sentence.endswith(
        ". Restore the column's name and type, or rewrite the table with write_table(..., "
        "mode='overwrite', overwrite_schema=False) and other columns_to_index or another sample_key"
    )
    # What can be answered without the index is answered, and says the same.
    told = sentence.replace("TABLE", f"default.{name}")
    assert table.dataframe().count() == table.sample(1.0).count() == 60
    assert sum(file.rows or 0 for file in table.files(0.5)) == 60
    estimate = table.estimate("avg(k)")
    assert (estimate.exact, estimate.value, estimate.reason) == (True, 29.5, told)
    assert told in table.check().problems
    assert table.index_metrics().problem == told
    assert str(table.index_metrics()).startswith("problem ")
    assert QbeastTable.for_name(spark, name).version == version

    # Either advice helps.
    spark.sql(f"restore table {name} to version as of 0")
    restored = QbeastTable.for_name(spark, name)
    assert restored.check().ok
    assert restored.index_metrics().problem is None
    write_table(
        spark.table(f"{name}_clone"),
        table=f"{name}_clone",
        mode="overwrite",
        columns_to_index=["s"],
    )
    assert QbeastTable.for_name(spark, f"{name}_clone").check().ok
    for each in (name, f"{name}_clone"):
        spark.sql(f"drop table {each}")
