"""What `dbt docs generate` is told of a relation: its columns as SQL names them, with comments."""

import re
from collections.abc import Iterator
from typing import Any

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.qbeast.column import quote
from pyspark.sql import SparkSession

_OWNER = re.compile(r"^Owner: (.*)$", re.MULTILINE)


def catalog_rows(session: SparkSession, relation: BaseRelation) -> Iterator[dict[str, Any]]:
    """One row of dbt's catalog for each column, numbered from 1."""
    name = f"{quote(relation.schema or '')}.{quote(relation.identifier or '')}"
    owner = _OWNER.search(getattr(relation, "information", None) or "")
    comment = session.catalog.getTable(name).description
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
            "column_comment": field.metadata.get("comment"),
        }
