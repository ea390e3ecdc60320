"""The rows of a rewriting commit, each with what happens to it.

A *change* is a row of three columns: `action` (copy, update, insert or delete), `before` (the row
as the table has it, null for an insert) and `after` (as the table will have it, null for a delete).
The data files get what comes after, the change data feed gets what is not a copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from qbeast_core.names import quoted

CHANGE_TYPE = "_change_type"
"""The column that tells Delta which rows belong to the change data feed."""

_COPY, _UPDATE, _INSERT, _DELETE = "copy", "update", "insert", "delete"


def copies(rows: DataFrame, schema: StructType) -> DataFrame:
    """Rows of the table that stay as they are."""
    return _changes(rows, F.lit(_COPY), row(schema), row(schema))


def deletions(rows: DataFrame, schema: StructType) -> DataFrame:
    """Rows of the table that go away."""
    return _changes(rows, F.lit(_DELETE), row(schema), _nothing(schema))


def insertions(
    rows: DataFrame, schema: StructType, values: Mapping[str, Column] | None = None
) -> DataFrame:
    """Rows that are new, as they are, or made of `values`, which have all columns as stored."""
    after = row(schema)
    if values is not None:
        after = _struct({field.name: values[field.name] for field in schema})
    return _changes(rows, F.lit(_INSERT), _nothing(schema), after)


def updates(
    rows: DataFrame,
    schema: StructType,
    is_updated: Column,
    values: Mapping[str, Column],
    alias: str | None = None,
) -> DataFrame:
    """Rows of the table of which some get new values; the others stay as they are.

    `values` are as the table stores them (`spark.alignment`). `alias` is that of the table where
    `rows` come from a join.
    """
    action = F.when(is_updated, F.lit(_UPDATE)).otherwise(F.lit(_COPY))
    # Field by field, so that a reader of some fields computes only these.
    present = {field.name: of(field.name, alias) for field in schema}
    after = {
        field.name: F.when(is_updated, values[field.name]).otherwise(present[field.name])
        for field in schema
        if field.name in values
    }
    return _changes(rows, action, row(schema, alias), _struct({**present, **after}))


def together(parts: Sequence[DataFrame]) -> DataFrame:
    """All changes; at least one part is given."""
    return reduce(DataFrame.unionByName, parts)


def without_insertions(changes: DataFrame) -> DataFrame:
    """The changes of rows that the table has."""
    return changes.where(F.col("action") != _INSERT)


def data_rows(changes: DataFrame) -> DataFrame:
    """The rows of the data files."""
    return changes.where(F.col("action") != _DELETE).select("after.*")


def feed_rows(changes: DataFrame) -> DataFrame:
    """The rows of the change data feed."""

    def tell(action: str, image: str, change_type: str) -> DataFrame:
        told = changes.where(F.col("action") == action)
        return told.select(f"{image}.*", F.lit(change_type).alias(CHANGE_TYPE))

    return together(
        [
            tell(_INSERT, "after", "insert"),
            tell(_DELETE, "before", "delete"),
            tell(_UPDATE, "before", "update_preimage"),
            tell(_UPDATE, "after", "update_postimage"),
        ]
    )


def row(schema: StructType, alias: str | None = None) -> Column:
    """A row of the table as one value."""
    return _struct({field.name: of(field.name, alias) for field in schema})


def of(name: str, alias: str | None = None) -> Column:
    """The column of that name, of the side of a join that the alias names."""
    return F.col(quoted(name) if alias is None else f"{quoted(alias)}.{quoted(name)}")


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
