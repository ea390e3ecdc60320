"""What `dbt docs generate` is told of a relation: its columns as SQL names them, with comments."""

import re
from collections.abc import Iterator
from typing import Any

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.qbeast.column import quote
from pyspark.sql import SparkSession

from qbeast_core import QbeastTable

_OWNER = re.compile(r"^Owner: (.*)$", re.MULTILINE)


def catalog_rows(session: SparkSession, relation: BaseRelation) -> Iterator[dict[str, Any]]:
    """One row of dbt's catalog for each column, numbered from 1."""
    name = f"{quote(relation.schema or '')}.{quote(relation.identifier or '')}"
    owner = _OWNER.search(getattr(relation, "information", None) or "")
    # dbt-spark's statements give an empty comment to what has no description.
    comment = session.catalog.getTable(name).description or None
    statistics = index_statistics(session, name) if getattr(relation, "is_delta", None) else {}
    for index, field in enumerate(session.table(name).schema.fields, start=1):
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
