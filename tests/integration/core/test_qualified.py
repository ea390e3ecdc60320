"""The names in a condition that are columns of a table."""

import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from qbeast_core import qualified


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("id != 2 and s.n > 0", "`t`.id != 2 and s.n > 0"),
        ("St.a.b = 'L''Aquila' -- id", "`t`.St.a.b = 'L''Aquila' -- id"),
        ("`id`in(1,2)or arr[id].x is null", "`t`.`id`in(1,2)or `t`.arr[`t`.id].x is null"),
        ("to_date('1', 'dd') < current_date", "to_date('1', 'dd') < current_date"),
        ("exists(arr, x -> x.n > id)", "exists(`t`.arr, x -> x.n > `t`.id)"),
        ("exists(arr, id -> id > 1 and st.a)", "exists(`t`.arr, id -> id > 1 and `t`.st.a)"),
        ("t.id = source.id", "t.id = source.id"),
        ("case '😀' when id then 1 end", "case '😀' when `t`.id then 1 end"),
    ],
)
def test_only_columns_of_the_table_are_qualified(
    spark: SparkSession, condition: str, expected: str
) -> None:
    assert qualified(spark, condition, ["ID", "st", "arr"], "t") == expected


def test_a_text_that_is_not_a_condition_is_rejected(spark: SparkSession) -> None:
    with pytest.raises(ParseException):
        qualified(spark, "id = = 2", ["id"], "t")
