"""Catalog rows for `dbt docs generate`: a relation's columns as SQL names them, with comments."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.qbeast.relation import table_name
from dbt.adapters.qbeast.spark.errors import as_dbt_error
from dbt.adapters.qbeast.warning import warn
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable, declared_type, message_and_trace

logger = AdapterLogger("Qbeast")

_OWNER = re.compile(r"^Owner: (.*)$", re.MULTILINE)


def catalog_rows(session: SparkSession, relation: BaseRelation) -> list[dict[str, Any]]:
    """One row of dbt's catalog for each column, numbered from 1.

    For a relation that Spark cannot describe, such as a view of a dropped table, there are no rows
    and a warning is issued, so that the other relations still get their rows.
    """
    with _warning(f"{relation.render()} is missing from the catalog"):
        return list(_described(session, relation))
    return []


def _described(session: SparkSession, relation: BaseRelation) -> Iterator[dict[str, Any]]:
    name = table_name(relation.schema or "", relation.identifier or "")
    owner = _OWNER.search(getattr(relation, "information", None) or "")
    # dbt-spark writes an empty comment where there is no description.
    comment = session.catalog.getTable(name).description or None
    fields = session.table(name).schema.fields
    statistics: dict[str, Any] = {}
    if getattr(relation, "is_delta", None):
        with _warning(f"the catalog has no statistics for {relation.render()}"):
            statistics = index_statistics(session, name)
    for index, field in enumerate(fields, start=1):
        yield {
            "table_database": None,
            "table_schema": relation.schema,
            "table_name": relation.identifier,
            "table_type": relation.type,
            "table_comment": comment,
            "table_owner": owner.group(1) if owner else None,
            "column_name": field.name,
            "column_index": index,
            "column_type": declared_type(field),
            "column_comment": field.metadata.get("comment") or None,
            **statistics,
        }


def index_statistics(session: SparkSession, table: str) -> dict[str, Any]:
    """An indexed table's statistics from its log, in dbt's catalog format; empty for others."""
    if not QbeastTable.is_qbeast(session, table):
        return {}
    metrics = QbeastTable.for_name(session, table).index_metrics()
    size = metrics.table
    numbers = {
        "rows": ("Rows", size.rows, "Rows in the table"),
        "bytes": ("Size", size.size_bytes, "Total size of the table's files, in bytes"),
        "files": ("Files", size.files, "Files in the table"),
        "cubes": ("Cubes", metrics.cubes, "Cubes in the index's latest revision"),
        "revision": (
            "Revision",
            metrics.revision_id,
            "The latest revision, which new rows are written to",
        ),
        "unindexed": (
            # A number, because dbt would read the text `12.3%` as the number 12.3.
            "Unindexed, percent",
            round(100 * metrics.unindexed_share, 1),
            "Share of the bytes that are not indexed; optimize reduces it",
        ),
    }
    return {
        f"stats:{key}:{part}": value
        for key, (label, number, description) in numbers.items()
        for part, value in (
            ("label", label),
            ("value", number),
            ("description", description),
            ("include", number is not None),
        )
    }


@contextmanager
def _warning(what: str) -> Iterator[None]:
    """Turns an error of Spark, Delta or qbeast_core into a warning that gives the reason."""
    try:
        yield
    except Exception as error:
        failure = as_dbt_error(error)
        if not isinstance(failure, DbtRuntimeError):
            raise
        logger.debug("\n".join(message_and_trace(error)))
        message = f"{what}: {failure.msg}"
        warn(message)
