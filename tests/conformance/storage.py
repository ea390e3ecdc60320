"""The second pass: the fixtures' tables, incremental models and snapshots are stored with an index.

The fixtures do not say by which columns, so the harness chooses: the first one or two columns of
the query that can be indexed.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
from dbt.adapters.qbeast import QbeastAdapter
from dbt.adapters.qbeast.models.response import QbeastAdapterResponse
from pyspark.sql import DataFrame, SparkSession

from qbeast_core import QbeastTable, quoted
from qbeast_core.errors import UnsupportedColumnType
from qbeast_core.model.transformer import transformer_for

DELTA, QBEAST = "delta", "qbeast"
CHOSEN_LATER = "chosen_by_the_harness"
LEAST_TAGGED = 90
"""The least number of indexed tables in the second pass. Without any, it would equal the first."""


def with_index(project_config: dict[str, Any]) -> dict[str, Any]:
    """A dbt_project.yml in which all models and snapshots have `columns_to_index`."""
    indexed = {
        kind: {**project_config.get(kind, {}), "+columns_to_index": CHOSEN_LATER}
        for kind in ("models", "snapshots")
    }
    return {**project_config, **indexed}


def indexable_columns(frame: DataFrame) -> list[str]:
    """The columns to index a query by; none when it has no column of a type with an index."""
    columns = []
    for field in frame.schema.fields:
        try:
            transformer_for(field.name, field.dataType.simpleString(), None)
        except UnsupportedColumnType:
            continue
        columns.append(field.name)
    return columns[:2]


@pytest.fixture(scope="session")
def chosen_columns() -> Iterator[None]:
    """Gives each write its columns. A query without one for an index makes a plain Delta table."""
    write = QbeastAdapter.qbeast_write

    def write_chosen(
        self: QbeastAdapter, relation: Any, sql: str, spec: Any, increment: Any = None
    ) -> Any:
        if spec.columns_to_index != CHOSEN_LATER:
            return write(self, relation, sql, spec, increment)
        name = relation.render()
        with self._running(sql) as session:
            present = increment is not None and QbeastTable.is_qbeast(session, name)
            columns = (
                QbeastTable.for_name(session, name).columns_to_index
                if present
                else indexable_columns(session.sql(sql))
            )
        if columns:
            spec = dataclasses.replace(spec, columns_to_index=columns)
            return write(self, relation, sql, spec, increment)
        self._handle().frame(f"create or replace table {name} using delta as {sql}")
        return QbeastAdapterResponse(_message="no column of this query can be indexed")

    require = QbeastAdapter.qbeast_check_same_index_of_snapshot

    def require_unless_chosen(self: QbeastAdapter, relation: Any, spec: Any) -> None:
        if spec.columns_to_index != CHOSEN_LATER:
            require(self, relation, spec)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(QbeastAdapter, "qbeast_write", write_chosen)
        patch.setattr(QbeastAdapter, "qbeast_check_same_index_of_snapshot", require_unless_chosen)
        yield


@dataclasses.dataclass
class IndexTally:
    """What the indexes of the pass were like."""

    tagged: int = 0
    """Tables with block tags on their files."""
    problems: list[str] = dataclasses.field(default_factory=list)

    def add(self, spark: SparkSession, schema: str) -> list[str]:
        """Checks every indexed table of the schemas that begin with this name; what it found."""
        found = []
        for (database,) in spark.sql(f"show databases like '{schema}*'").collect():
            # Spark's catalog.listTables does not work without generated code.
            for table in spark.sql(f"show tables in {quoted(database)}").collect():
                name = f"{quoted(database)}.{quoted(table.tableName)}"
                if table.isTemporary or not QbeastTable.is_qbeast(spark, name):
                    continue
                indexed = QbeastTable.for_name(spark, name)
                self.tagged += bool(indexed.blocks().head(1))
                found += [f"{name}: {problem}" for problem in indexed.check().problems]
        self.problems += found
        return found
