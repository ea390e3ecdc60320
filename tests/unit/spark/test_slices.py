"""Whether a stored slice column belongs to the rows' weights."""

import pytest
from pyspark.sql.types import StructType

from qbeast_core.delta.metadata import stored_slice_expression, stores_slices
from qbeast_core.spark.slices import is_slice_of, with_slices


@pytest.mark.parametrize(
    ("columns", "is_same"),
    [
        (["a b", "c"], True),
        (["A b", "C"], True),
        (["c", "a b"], False),
        (["a b"], False),
        (["${c}"], False),
    ],
)
def test_slices_belong_to_the_columns_that_their_expression_hashes(
    columns: list[str], is_same: bool
) -> None:
    schema = with_slices(StructType(), ["a b", "c"])
    fields = {"configuration": {"qbeast.slices": "true"}, "schemaString": schema.json()}
    expression = stored_slice_expression(fields)
    assert expression is not None
    assert is_slice_of(expression, columns) == is_same


def test_an_ordinary_column_or_a_table_without_the_property_stores_no_slices() -> None:
    computed = with_slices(StructType(), ["a"])
    ordinary = StructType().add("_qbeast_slice", "byte")
    for properties, schema in (({}, computed), ({"qbeast.slices": "true"}, ordinary)):
        assert not stores_slices({"configuration": properties, "schemaString": schema.json()})
