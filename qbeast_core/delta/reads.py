"""Finds out how a query reads a Delta table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum, auto
from typing import Any

from pyspark.sql import DataFrame

from qbeast_core.delta.snapshot import delta_log_of
from qbeast_core.jvm.catalyst import with_fresh_plan
from qbeast_core.jvm.gateway import Jvm

_FILES = "org.apache.spark.sql.delta.files."
# Delta's relations belong to an anonymous subclass of this class.
_RELATION = "org.apache.spark.sql.execution.datasources.HadoopFsRelation"
_V2_TABLE = "io.delta.spark.internal.v2.catalog.DeltaV2Table"
"""What Delta reads if `spark.databricks.delta.v2.enableMode` is STRICT."""


class TableReads(Enum):
    """How a query reads a table."""

    NONE = auto()
    NEWEST = auto()
    """In a transaction, at the version that this transaction reads."""
    FIXED = auto()
    """Also at a version that is fixed, as in `QbeastTable.dataframe()`, by `versionAsOf`, or in
    Spark's cache."""


def reads_of(df: DataFrame, location: str) -> TableReads:
    """How a query reads the Delta table at `location`, in a subquery or elsewhere."""
    jvm = Jvm(df.sparkSession)
    path = _data_path(df, location)

    def reads(leaves: Sequence[Any]) -> list[bool]:
        return [follows for read, follows in _reads(jvm, df, leaves) if read == path]

    found = reads(_leaves(jvm, df._jdf.queryExecution().analyzed()))
    if not found:
        return TableReads.NONE
    with_cache = _leaves(jvm, with_fresh_plan(df)._jdf.queryExecution().withCachedData())
    uses_cache = any(_name(leaf) == "InMemoryRelation" for leaf in with_cache)
    # What Spark has cached stays what it is, and the reads below it are not in the plan.
    are_cached = uses_cache and len(reads(with_cache)) < len(found)
    return TableReads.NEWEST if all(found) and not are_cached else TableReads.FIXED


def _leaves(jvm: Jvm, query: Any) -> list[Any]:
    """The leaves of a plan and of its subqueries."""
    plans = (query, *jvm.elements(query.subqueriesAll()))
    return [leaf for plan in plans for leaf in jvm.elements(plan.collectLeaves())]


def _reads(jvm: Jvm, df: DataFrame, leaves: Sequence[Any]) -> Iterator[tuple[str, bool]]:
    """The path of each Delta table, and whether a transaction reads it at its own version."""
    for leaf in leaves:
        kind = _name(leaf)
        if kind == "DataSourceV2Relation" and jvm.has_class(_V2_TABLE):
            if jvm.java_class(_V2_TABLE).isInstance(leaf.table()):
                yield _data_path(df, str(leaf.table().getTablePath().toString())), True
        elif kind == "LogicalRelation" and jvm.java_class(_RELATION).isInstance(leaf.relation()):
            files = leaf.relation().location()
            if jvm.java_class(_FILES + "TahoeFileIndex").isInstance(files):
                yield str(files.path().toString()), _follows_log(jvm, files)


def _name(leaf: Any) -> str:
    return str(leaf.getClass().getSimpleName())


def _follows_log(jvm: Jvm, files: Any) -> bool:
    of_log = jvm.java_class(_FILES + "TahoeLogFileIndex")
    return bool(of_log.isInstance(files)) and not files.isTimeTravelQuery()


def _data_path(df: DataFrame, location: str) -> str:
    return str(delta_log_of(df.sparkSession, location).dataPath().toString())
