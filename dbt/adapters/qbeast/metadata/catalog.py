"""What `dbt docs generate` is told of a relation: its columns as SQL names them, with comments."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.events.types import AdapterEventWarning
from dbt.adapters.qbeast.spark.errors import as_dbt_error, message_and_trace
from dbt_common.events.functions import warn_or_error
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable, quoted

logger = AdapterLogger("Qbeast")

_OWNER = re.compile(r"^Owner: (.*)$", re.MULTILINE)


def catalog_rows(session: SparkSession, relation: BaseRelation) -> list[dict[str, Any]]:
    """One row of dbt's catalog for each column, numbered from 1.

    A relation that Spark cannot describe, such as a view of a dropped table, has none and gives a
    warning: the catalog of the other relations is right without it.
    """
    with _warning(f"{relation.render()} is missing from the catalog"):
        return list(_described(session, relation))
    return []


def _described(session: SparkSession, relation: BaseRelation) -> Iterator[dict[str, Any]]:
    name = f"{quoted(relation.schema or '')}.{quoted(relation.identifier or '')}"
    owner = _OWNER.search(getattr(relation, "information", None) or "")
    # dbt-spark's statements give an empty comment to what has no description.
    comment = session.catalog.getTable(name).description or None
    fields = session.table(name).schema.fields
    statistics: dict[str, Any] = {}
    if getattr(relation, "is_delta", None):
        with _warning(f"the catalog has no statistics of {relation.render()}"):
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
            "column_type": field.dataType.simpleString(),
            "column_comment": field.metadata.get("comment") or None,
            **statistics,
        }


def index_statistics(session: SparkSession, table: str) -> dict[str, Any]:
    """What the log tells of a table with an index, as dbt's catalog has it; nothing of others."""
    if not QbeastTable.is_qbeast(session, table):
        return {}
    metrics = QbeastTable.for_name(session, table).index_metrics()
    size = metrics.table
    numbers = {
        "rows": ("Rows", size.rows, "Rows of the table"),
        "bytes": ("Size", size.size_bytes, "Bytes of the table's files"),
        "files": ("Files", size.files, "Files of the table"),
        "cubes": ("Cubes", metrics.cubes, "Cubes of the index's latest revision"),
        "revision": (
            "Revision",
            metrics.revision_id,
            "The revision that new rows are written under",
        ),
        "unindexed": (
            # Not as a text: dbt takes `12.3%` for the number 12.3.
            "Unindexed, percent",
            round(100 * metrics.unindexed_share, 1),
            "Share of the bytes that the index does not describe; optimize lowers it",
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
    """Turns what Spark, Delta or qbeast_core raise into a warning that says why."""
    try:
        yield
    except Exception as error:
        told = as_dbt_error(error)
        if not isinstance(told, DbtRuntimeError):
            raise
        logger.debug("\n".join(message_and_trace(error)))
        message = f"{what}: {told.msg}"
        warn_or_error(AdapterEventWarning(name="Qbeast", base_msg=message, args=[]))
