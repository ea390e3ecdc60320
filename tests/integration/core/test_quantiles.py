"""Columns indexed by quantiles, measured or given, and ranges that the user gives."""

import json
import math
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from qbeast_core import QbeastTable, write_table
from qbeast_core.jvm.catalyst import Catalyst
from qbeast_core.jvm.gateway import Jvm
from qbeast_core.model.datatypes import DataType
from qbeast_core.model.transformation import (
    LinearTransformation,
    NumericQuantiles,
    StringHistogram,
    StringQuantiles,
)
from qbeast_core.spark import columns
from tests.support.delta_log import actions, configuration
from tests.support.invariants import assert_rows_in_their_cubes, assert_sound

NUMBERS = [
    *(-math.inf, -1e300, -2.0, -1.0, -5e-324, -0.0, 0.0, 5e-324, 0.1, 0.3, 1.0, 1.5, 2.0, 2.5),
    *(3.0, 7.0, 398.9, 399.0, 1e300, math.inf, math.nan, None),
]
TEXTS = ["", "a", "a_1", "a_10", "b", "é", "\u0000", "\ue000", "\uffff", "\U0001f600", "zz", None]


def test_expressions_place_values_bit_for_bit_as_the_model_does(spark: SparkSession) -> None:
    catalyst = Catalyst(Jvm(spark))
    numeric = [
        NumericQuantiles(quantiles, DataType.DOUBLE)
        for quantiles in (
            (0.0, 10.0, 50.0, 100.0, 200.0, 399.0),
            (1.0, 1.0, 1.0, 2.0, 2.0, 3.0),
            (-0.0, 0.0, 0.0, 0.3, 1e300),
            (0.1, 0.7),
        )
    ]
    textual = [
        StringQuantiles(("a_1", "é", "\U0001f600", "\ue000")),
        StringQuantiles(("", "", "b", "b", "b", "zz")),
        StringHistogram(("a", "n", "z")),
    ]
    rows = [(x, TEXTS[i % len(TEXTS)]) for i, x in enumerate(NUMBERS)]
    made = spark.createDataFrame(rows, "x double, s string").repartition(2)
    placed = made.select(
        "x",
        "s",
        *(columns.coordinate(catalyst, F.col("x"), each) for each in numeric),
        *(columns.coordinate(catalyst, F.col("s"), each) for each in textual),
    )
    for x, s, *coordinates in placed.collect():
        expected = [each.transform(x) for each in numeric] + [each.transform(s) for each in textual]
        assert coordinates == expected, (x, s)


def test_measured_quantiles_divide_skewed_values_and_texts(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path)
    rows = spark.range(4000).selectExpr(
        "id",
        "if(id % 40 = 0, null, if(id % 999 = 0, double('NaN'), exp(pmod(hash(id), 200) / 20D)))"
        " as price",
        "if(id % 50 = 0, null, concat('key ', pmod(hash(id, 1), 700))) as name",
        "timestamp_seconds(pow(pmod(hash(id, 2), 90), 4)) as at",
    )
    first = write_table(
        rows,
        path=path,
        columns_to_index="price : Quantile,name:QUANTILES,at:quantiles",
        cube_size=300,
    )
    assert configuration(path)["columnsToIndex"] == "price:quantiles,name:quantiles,at:quantiles"
    table = assert_sound(spark, path, range(4000), where="price < 2 and name >= 'key 5'")
    assert_rows_in_their_cubes(spark, path)
    price, name, _ = table.latest_revision.transformations
    assert isinstance(price, NumericQuantiles) and isinstance(name, StringQuantiles)
    # Half of the rows: evenly divided though the values are not.
    assert price.transform(math.exp(5)) == pytest.approx(0.5, abs=0.05)
    assert rows_in_files(table, "price > exp(5D)") < 0.7 * rows_in_files(table)

    beyond = rows.selectExpr(
        "id + 4000 as id", "price * 100 as price", "concat('zz', name) as name", "at"
    )
    second = write_table(beyond.limit(500), path=path)
    assert (second.new_revision, second.revision_id) == (False, first.revision_id)
    assert not actions(path, second.version, "metaData")
    assert_sound(spark, path, where="price > 1000000 or name > 'y'")
    assert_rows_in_their_cubes(spark, path)


def rows_in_files(table: QbeastTable, where: str | None = None) -> int:
    """The rows in the files that a filter reads."""
    return sum(file.rows for file in table.files(where=where))


def test_decimals_are_divided_too(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    rows = spark.range(3000).selectExpr(
        "id",
        "if(id % 40 = 0, null, cast(exp(pmod(hash(id), 300) / 15D) as decimal(18, 4))) as price",
        "cast(concat(id, '.000000000000000001') as decimal(38, 18)) as fine",
    )
    write_table(rows, path=path, columns_to_index="price:quantiles,fine:quantiles", cube_size=50)
    price, fine = QbeastTable.for_path(spark, path).latest_revision.transformations
    assert isinstance(price, NumericQuantiles) and isinstance(fine, NumericQuantiles)
    assert price.data_type is DataType.DECIMAL
    assert price.transform(math.exp(10)) == pytest.approx(0.5, abs=0.05)
    beyond = rows.selectExpr(
        "id + 3000 as id", "cast(price * 9 as decimal(18, 4)) as price", "fine"
    )
    assert not write_table(beyond.limit(300), path=path).new_revision
    where = "price > 22000.1234BD and fine <= 2000.000000000000000001BD"
    table = assert_sound(spark, path, where=where)
    assert_rows_in_their_cubes(spark, path)
    assert rows_in_files(table, "price > 22000.1234BD") < 0.7 * rows_in_files(table)
    given = {"price": {"quantiles": [0, 10, 1000000]}}
    assert write_table(rows, path=path, column_stats=given).new_revision
    assert_sound(spark, path, where=where)
    assert_rows_in_their_cubes(spark, path)


@pytest.mark.parametrize("is_histogram", [False, True], ids=["quantiles", "histogram"])
def test_quantiles_out_of_order_are_read_and_replaced(
    spark: SparkSession, tmp_path: Path, is_histogram: bool
) -> None:
    """qbeast-spark measures quantiles in the order of UTF-8, in which '！' is below '😀'."""
    path = str(tmp_path)
    texts = "element_at(array('a', '！', '😀', null), cast(id % 4 as int) + 1)"
    rows = spark.range(300).selectExpr("id", f"{texts} as s", "id as a")
    write_table(rows, path=path, columns_to_index="s:quantiles,a", cube_size=1000)
    text = configuration(path)["qbeast.revision.1"].replace('"😀","！"', '"！","😀"')
    if is_histogram:
        text = text.replace(
            'CDFStringQuantilesTransformer","columnName":"s"',
            'StringHistogramTransformer","columnName":"s","dataType":"StringDataType"',
        ).replace("CDFStringQuantilesTransformation", "StringHistogramTransformation")
        text = text.replace('"quantiles":', '"histogram":')
    spark.sql(f"alter table delta.`{path}` set tblproperties ('qbeast.revision.1' = '{text}')")
    table = QbeastTable.for_path(spark, path)
    assert [file.revision_id for file in table.files(where="s = 'a'")] == [1]
    assert table.sample(1.0, "s > '！'").count() == 75
    assert 0 < table.sample(0.3, "s is null").count() < 75
    assert "not in ascending order" in str(table.check())
    appended = write_table(rows.selectExpr("id + 300 as id", "s", "a"), path=path)
    assert (appended.new_revision, appended.revision_id) == (True, 2)
    quantiles, range_of_a = QbeastTable.for_path(spark, path).latest_revision.transformations
    assert quantiles == StringQuantiles(("a", "😀", "！"))
    assert isinstance(range_of_a, LinearTransformation) and range_of_a.minimum == 0
    assert QbeastTable.for_path(spark, path).optimize().changed
    assert_sound(spark, path, range(600), where="s > 'b' or s is null")
    assert_rows_in_their_cubes(spark, path)


def test_what_is_given_to_a_table_without_rows_is_used_for_the_first_ones(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, given = str(tmp_path), {"id": {"min": 0, "max": 1_000_000}}
    write_table(spark.range(0), path=path, columns_to_index=["id"], column_stats=given)
    table = QbeastTable.for_path(spark, path)
    assert table.merge(spark.range(10), on="id").rows_inserted == 10
    assert write_table(spark.range(900_000, 900_010), path=path).revision_id == 1
    (known,) = QbeastTable.for_path(spark, path).latest_revision.transformations
    assert (known.minimum, known.maximum) == (0, 1_000_000)
    # Of another kind of index, they no longer count.
    other = spark.range(900_010, 900_020).selectExpr("id", "1 as other")
    write_table(other, path=path, columns_to_index=["id:quantiles"], merge_schema=True)
    QbeastTable.for_path(spark, path).drop_columns("other")
    assert_sound(spark, path, [*range(10), *range(900_000, 900_020)])


def test_what_is_given_of_columns_is_used_and_stored(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    rows = spark.range(300).selectExpr("id", "id as a", "concat('n', id % 10) as s")

    def write(shift: int, stats: object) -> int:
        shifted = rows.selectExpr(f"id + {shift} as id", f"a + {shift} as a", "s")
        given = {"columns_to_index": "a,s:quantiles"} if not shift else {}
        return write_table(
            shifted, path=path, cube_size=100, column_stats=stats, **given
        ).revision_id

    assert write(0, "{'a_min': -5, 'a_max': 5000, 's_quantiles': ['n2', 'n4', 'n8']}") == 1
    assert json.loads(configuration(path)["columnStats"]) == {
        "a_min": -5,
        "a_max": 5000,
        "s_quantiles": ["n2", "n4", "n8"],
    }
    linear, texts = QbeastTable.for_path(spark, path).latest_revision.transformations
    assert isinstance(linear, LinearTransformation)
    assert (linear.minimum, linear.maximum) == (-5, 5000)
    assert texts == StringQuantiles(("n2", "n4", "n8"))
    assert write(1000, None) == 1
    assert write(2000, {"a": {"min": 0, "max": 4000}}) == 1
    assert write(3000, {"s": {"quantiles": ["n1", "n5"]}}) == 2
    assert json.loads(configuration(path)["columnStats"]) == {"s_quantiles": ["n1", "n5"]}
    assert_sound(spark, path, where="s > 'n5' and a > 100")
    assert_rows_in_their_cubes(spark, path)
