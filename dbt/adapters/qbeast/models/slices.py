"""Hides `_qbeast_slice` from dbt, in tables and in the queries of models.

Engines cannot hide a column, so `select * from {{ this }}` returns it.
"""

from collections.abc import Callable, Sequence

from dbt.adapters.qbeast.column import QbeastColumn
from dbt.adapters.qbeast.models.configuration import ModelSpec
from pyspark.sql import DataFrame, SparkSession

from qbeast_core import SLICE_COLUMN, SLICES_KEY, Catalog, QbeastTable


def without_slice_column(
    session: SparkSession, table: str, columns: Sequence[QbeastColumn]
) -> list[QbeastColumn]:
    """The columns of a relation of any kind, without `_qbeast_slice` if its index maintains it."""
    if any(column.name == SLICE_COLUMN for column in columns) and _stores_slices(session, table):
        return [column for column in columns if column.name != SLICE_COLUMN]
    return list(columns)


def query_without_slices(
    session: SparkSession,
    sql: str,
    frame_of: Callable[[str], DataFrame],
    table: str,
    spec: ModelSpec,
) -> str:
    """A model's query, without `_qbeast_slice` if the model's table computes that column."""
    if not (spec.slices or _stores_slices(session, table)):
        return sql
    if SLICE_COLUMN not in map(str.lower, frame_of(sql).columns):
        return sql
    return f"select * except ({SLICE_COLUMN}) from (\n{sql}\n) as model_rows"


def _stores_slices(session: SparkSession, table: str) -> bool:
    says_so = SLICES_KEY in Catalog(session).properties(table)
    return says_so and QbeastTable.for_name(session, table).slices
