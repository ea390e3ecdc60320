"""Columns that a write chooses, and its warning if samples would be imprecise."""

import warnings
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from qbeast_core import BUILT_FROM_SAMPLE, QbeastTable, write_table
from qbeast_core.errors import SampleWarning, UnsupportedColumnType
from tests.support.delta_log import configuration, last_version
from tests.support.invariants import assert_sound


def test_the_columns_that_prune_best_are_chosen_and_kept(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    rows = spark.range(3000).selectExpr(
        "id",
        "date_add(date'2024-01-01', cast(id div 9 as int)) as day",
        "exp(pmod(hash(id), 200) / 15D) as price",
        "concat('s', pmod(hash(id, 1), 60)) as store",
        "id % 2 = 0 as flag",
        "7 as same",
        "if(id % 100 = 0, 's', null) as note",
        "array(id) as list",
    )
    result = write_table(rows, path=path, columns_to_index="auto", cube_size=300)
    assert str(result.column_choice) == (
        "columns_to_index auto chose day, price:quantiles, store of 6 columns, from 3,000 rows: "
        "day has 334 values; price has 200 values, "
        + str(result.column_choice).partition("200 values, ")[2]
    )
    assert result.warnings == ()
    table = assert_sound(spark, path, range(3000), where="day < '2024-03-01' and price < 10")
    assert table.columns_to_index == ["day", "price", "store"]
    assert configuration(path)["columnsToIndex"] == "day,price:quantiles,store"
    assert len(table.files(where="day < '2024-02-01'")) < len(table.files())

    # A rebuild keeps them as long as the rows have them, though others would be chosen now.
    other = rows.selectExpr("id", "day", "1D as price", "store", "id * 3 as n")
    again = write_table(other, path=path, mode="overwrite", columns_to_index="auto")
    assert again.column_choice is None
    assert QbeastTable.for_path(spark, path).columns_to_index == ["day", "price", "store"]
    assert write_table(other, path=path, columns_to_index="auto").rows == 3000
    anew = write_table(other, path=path, mode="overwrite", columns_to_index="auto:1", rechoose=True)
    assert anew.column_choice is not None
    assert QbeastTable.for_path(spark, path).columns_to_index == ["day"]
    texts = other.selectExpr("cast(day as string) as day", "n")
    other_types = write_table(texts, path=path, mode="overwrite", columns_to_index="auto")
    assert str(other_types.column_choice) in str(other_types)
    assert QbeastTable.for_path(spark, path).columns_to_index == ["n"]
    less = write_table(
        other.selectExpr("n as m"), path=path, mode="overwrite", columns_to_index="auto"
    )
    assert less.column_choice is not None
    assert QbeastTable.for_path(spark, path).columns_to_index == ["m"]


def test_a_table_without_rows_is_judged_by_its_types_until_it_has_some(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    rows = spark.range(500).selectExpr("id", "7 as same", "concat('s', id % 9) as store")
    result = write_table(rows.limit(0), path=path, columns_to_index="auto:2")
    assert "from 0 rows: id for its type, LongDataType; same for its type" in str(result)
    assert (result.revision_id, result.rows) == (0, 0)
    assert write_table(rows, path=path, columns_to_index="auto:2").revision_id == 1
    assert assert_sound(spark, path, range(500)).columns_to_index == ["id", "store"]


def test_without_a_column_to_choose_nothing_is_written(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedColumnType, match="no column has a type"):
        write_table(
            spark.range(9).selectExpr("array(id) as a"), path=str(tmp_path), columns_to_index="auto"
        )
    assert last_version(tmp_path) == -1


def test_samples_of_groups_are_warned_of(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(2000).selectExpr("id", "id % 20 as kind", "uuid() as text")
    message = "100 rows share kind.*such as 'id'.*sample_key='id'"
    with pytest.warns(SampleWarning, match=message) as warned:
        result = write_table(rows, path=str(tmp_path / "kind"), columns_to_index="kind")
    assert len(result.warnings) == 1
    assert [warning.filename for warning in warned] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # An error would hide that the rows are committed.
        again = write_table(rows, path=str(tmp_path / "again"), columns_to_index="kind")
        assert again.warnings == result.warnings
        write_table(rows, path=str(tmp_path / "id"), columns_to_index="kind,id")
        write_table(rows, path=str(tmp_path / "key"), columns_to_index="kind", sample_key="kind")
        write_table(rows.limit(900), path=str(tmp_path / "few"), columns_to_index="kind")


def test_a_sample_stored_with_the_same_weights_is_warned_of(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.range(20_000).selectExpr("id", "id % 500 as kind")
    write_table(rows, path=str(tmp_path / "all"), columns_to_index="kind", sample_key="id")
    sample = QbeastTable.for_path(spark, str(tmp_path / "all")).sample(0.1)
    message = "sample of about 10 %, by the hash of id.*set another sample_key"
    with pytest.warns(SampleWarning, match=message):
        write_table(sample, path=str(tmp_path / "id"), columns_to_index="id")
    with pytest.warns(SampleWarning, match=message):
        write_table(sample, path=str(tmp_path / "key"), columns_to_index="kind", sample_key="id")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mark = {BUILT_FROM_SAMPLE: "0.1"}
        path = str(tmp_path / "marked")
        marked = write_table(sample, path=path, columns_to_index="id", properties=mark)
        assert marked.warnings == ()
        path = str(tmp_path / "other")
        other = write_table(sample, path=path, columns_to_index="id", sample_key="kind,id")
        assert other.warnings == ()
