"""The rows of an increment as a temporary view, for a SQL statement that adds them to a table."""

from collections.abc import Callable

from dbt.adapters.qbeast.models.advice import advising, full_refresh
from dbt.adapters.qbeast.models.configuration import ModelSpec
from dbt.adapters.qbeast.models.increment import (
    DELETE_INSERT,
    INSERT_OVERWRITE,
    MICROBATCH,
    REPLACE_WHERE,
    Increment,
)
from dbt.adapters.qbeast.models.same_index import check_same_index
from dbt.adapters.qbeast.models.schema_changes import (
    apply_schema_change,
    fit_increment,
    table_schema,
)
from dbt_common.exceptions import DbtRuntimeError
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from qbeast_core import aligned, generation_expression, is_always_generated, is_identity

_WITHOUT_COLUMN_LIST = (REPLACE_WHERE, MICROBATCH)
"""Spark's INSERT ... REPLACE WHERE takes all columns, in the table's order."""


def create_increment_view(
    session: SparkSession,
    query: Callable[[], DataFrame],
    table: str,
    model: str,
    spec: ModelSpec | None,
    increment: Increment,
    *,
    view: str,
) -> None:
    """Creates the temporary view of the rows that a SQL statement adds to a table.

    The table gains and loses columns as `on_schema_change` says. The view has the columns of the
    table, as the table stores them; for a merge also those that only the query has, because
    predicates may use them. A project's own strategy gets the query's rows unchanged. If the
    statement reads the rows twice, the view has them as computed once.

    Args:
        table: the quoted name, `schema`.`table`.
        model: what dbt calls the model, for messages.
        spec: the specification of a model with an index, which its table must then have.
        view: the name of the view.

    Raises:
        DbtRuntimeError: the table's index or schema differs from the model's.
    """
    if spec is not None:
        with advising(session, table, spec):
            check_same_index(session, table, spec)
    if increment.strategy == INSERT_OVERWRITE and increment.partition_by:
        _check_partitions(session, query, table, model, increment)
    if increment.is_custom:
        rows = apply_schema_change(query, table, model, increment.on_schema_change)
    elif increment.strategy in _WITHOUT_COLUMN_LIST:
        _check_no_identity(session, query, table, model, increment)
        rows = fit_increment(query, table, model, increment)
        rows = aligned(rows, table_schema(session, table), model)
    else:
        rows = fit_increment(query, table, model, increment)
    if increment.strategy == DELETE_INSERT:
        # The statement reads the rows twice: for the keys to delete, and for the rows to insert.
        rows = rows.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
    rows.createOrReplaceTempView(view)


def _check_partitions(
    session: SparkSession,
    query: Callable[[], DataFrame],
    table: str,
    model: str,
    increment: Increment,
) -> None:
    """Raises DbtRuntimeError if rows outside the query's partitions would be deleted or doubled.

    That is so if `partition_by` names other columns than the table's partitions, or if the query
    lacks one of them.
    """
    wanted = list(increment.partition_by)
    if any("(" in each for each in wanted):
        return  # partitions of Iceberg that are computed, which the catalog does not list
    present = [each.name for each in session.catalog.listColumns(table) if each.isPartition]
    if set(map(str.lower, wanted)) == set(map(str.lower, present)):
        _check_partition_values(session, query, table, model, increment)
        return
    is_now = "is not partitioned"
    remedy = (
        "To replace the values that the query has, use incremental_strategy='delete+insert' with "
        f"unique_key={wanted!r} instead. Without partition_by, each run would replace all rows"
    )
    if present:
        is_now = f"is partitioned by {', '.join(present)}"
        remedy = f"Set partition_by={present!r}"
    raise DbtRuntimeError(
        f"{model} has partition_by={wanted!r}, but its table {is_now}: insert_overwrite would "
        f"delete rows outside the query's partitions. {remedy}. To repartition the table: "
        f"{full_refresh(model)}."
    )


def _check_partition_values(
    session: SparkSession,
    query: Callable[[], DataFrame],
    table: str,
    model: str,
    increment: Increment,
) -> None:
    schema = table_schema(session, table)
    computed = {field.name.lower() for field in schema if generation_expression(field)}
    given = computed.union(map(str.lower, query().columns))
    if missing := [name for name in increment.partition_by if name.lower() not in given]:
        raise DbtRuntimeError(
            f"{model} has partition_by={list(increment.partition_by)!r}, but its query has no "
            f"column {', '.join(map(repr, missing))}: insert_overwrite would add its rows to the "
            "partition of nulls, and leave those in the others. Add the column to the query"
        )


def _check_no_identity(
    session: SparkSession,
    query: Callable[[], DataFrame],
    table: str,
    model: str,
    increment: Increment,
) -> None:
    """Raises DbtRuntimeError for identity columns that INSERT ... REPLACE WHERE cannot fill."""
    identities = [field for field in table_schema(session, table) if is_identity(field)]
    given = set(map(str.lower, query().columns)) if identities else set()
    open_ones = [
        field.name
        for field in identities
        if is_always_generated(field) or field.name.lower() not in given
    ]
    if open_ones:
        raise DbtRuntimeError(
            f"the table of {model} has the identity column {', '.join(map(repr, open_ones))}, "
            f"which incremental_strategy={increment.strategy!r} cannot fill: Spark's INSERT ... "
            "REPLACE WHERE needs a value for each column. Use 'delete+insert' or 'merge' instead"
        )
