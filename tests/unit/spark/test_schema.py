"""What a column's metadata in Delta's log says about it."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StringType, StructField

from qbeast_core.spark.schema import char_length


@pytest.mark.parametrize(
    ("declared", "length"),
    [
        ("char(6)", 6),
        ("CHAR(255)", 255),
        ("varchar(6)", None),
        ("array<char(3)>", None),
        (None, None),
    ],
)
def test_only_a_char_column_has_a_fixed_length(declared: str | None, length: int | None) -> None:
    metadata = {} if declared is None else {"__CHAR_VARCHAR_TYPE_STRING": declared}
    assert char_length(StructField("c", StringType(), True, metadata)) == length
