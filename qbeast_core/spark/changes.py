"""The row changes of a commit that rewrites rows.

A *change* is a row of three columns: `action` (copy, update, insert or delete), `before` (the
table's present row, null for an insert) and `after` (the new row, null for a delete). The data
files get the `after` rows; the change data feed gets all changes except copies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from qbeast_core.spark.columns import column

CHANGE_TYPE = "_change_type"
"""The column by which Delta recognizes rows of the change data feed."""

_COPY, _UPDATE, _INSERT, _DELETE = "copy", "update", "insert", "delete"


def copies(rows: DataFrame, schema: StructType) -> DataFrame:
    """Rows of the table that remain unchanged."""
    return _changes(rows, F.lit(_COPY), row(schema), row(schema))


def deletions(rows: DataFrame, schema: StructType) -> DataFrame:
    """Rows that are deleted from the table."""
    return _changes(rows, F.lit(_DELETE), row(schema), _nothing(schema))


def insertions(
    rows: DataFrame, schema: StructType, values: Mapping[str, Column] | None = None
) -> DataFrame:
    """New rows: `rows` themselves, or `values`, which have all columns in their stored form."""
    after = row(schema)
    if values is not None:
        after = _struct({field.name: values[field.name] for field in schema})
    return _changes(rows, F.lit(_INSERT), _nothing(schema), after)


def updates(
    rows: DataFrame,
    schema: StructType,
    is_updated: Column,
    values: Mapping[str, Column],
    present: Mapping[str, Column] | None = None,
) -> DataFrame:
    """Rows of the table, some of which get new values; the others remain unchanged.

    `values` are in the form that the table stores (`spark.alignment`). `present` are the table's
    columns if `rows` come from a join.
    """
    action = F.when(is_updated, F.lit(_UPDATE)).otherwise(F.lit(_COPY))
    # Field by field, so that reading some fields computes only these.
    before = dict(present or {field.name: column(field.name) for field in schema})
    after = {
        field.name: F.when(is_updated, values[field.name]).otherwise(before[field.name])
        for field in schema
        if field.name in values
    }
    return _changes(rows, action, _struct(before), _struct({**before, **after}))


def union_all(parts: Sequence[DataFrame]) -> DataFrame:
    """The union of all changes; `parts` must not be empty."""
    return reduce(DataFrame.unionByName, parts)


def without_insertions(changes: DataFrame) -> DataFrame:
    """The changes of existing rows of the table."""
    return changes.where(F.col("action") != _INSERT)


def insertions_of(changes: DataFrame) -> DataFrame:
    """The changes that are new rows."""
    return changes.where(F.col("action") == _INSERT)


def data_rows(changes: DataFrame) -> DataFrame:
    """The rows of the data files."""
    return changes.where(F.col("action") != _DELETE).select("after.*")


def feed_rows(changes: DataFrame) -> DataFrame:
    """The rows of the change data feed."""

    def images(action: str, image: str, change_type: str) -> DataFrame:
        of_action = changes.where(F.col("action") == action)
        return of_action.select(f"{image}.*", F.lit(change_type).alias(CHANGE_TYPE))

    return union_all(
        [
            images(_INSERT, "after", "insert"),
            images(_DELETE, "before", "delete"),
            images(_UPDATE, "before", "update_preimage"),
            images(_UPDATE, "after", "update_postimage"),
        ]
    )


def row(schema: StructType) -> Column:
    """A row of the table as one value."""
    return _struct({field.name: column(field.name) for field in schema})


def _struct(values: Mapping[str, Column]) -> Column:
    return F.struct(*(value.alias(name) for name, value in values.items()))


def _changes(rows: DataFrame, action: Column, before: Column, after: Column) -> DataFrame:
    return rows.select(action.alias("action"), before.alias("before"), after.alias("after"))


def _nothing(schema: StructType) -> Column:
    return F.lit(None).cast(_plain(schema))


def _plain(schema: StructType) -> StructType:
    """The schema without metadata, which casts do not carry."""
    made = StructType()
    for field in schema:
        made = made.add(field.name, field.dataType, True)
    return made
