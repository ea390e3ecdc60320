"""Finds out how a query reads a Delta table."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from pyspark.sql import DataFrame

from qbeast_core.delta.snapshot import delta_log_of
from qbeast_core.jvm.catalyst import anew
from qbeast_core.jvm.gateway import Jvm

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
    # Delta's relations belong to an anonymous subclass of this class.
    relation_class = jvm.java_class("org.apache.spark.sql.execution.datasources.HadoopFsRelation")
    any_index = jvm.java_class("org.apache.spark.sql.delta.files.TahoeFileIndex")
    is_fixed: dict[str, bool] = {}
    analyzed = df._jdf.queryExecution().analyzed()
    for plan in (analyzed, *jvm.elements(analyzed.subqueriesAll())):
        for leaf in jvm.elements(plan.collectLeaves()):
            kind = leaf.getClass().getSimpleName()
            if kind == "DataSourceV2Relation" and jvm.has_class(_V2_TABLE):
                if jvm.java_class(_V2_TABLE).isInstance(leaf.table()):
                    path = str(leaf.table().getTablePath().toString())
                    is_fixed.setdefault(_data_path(df, path), False)
            elif kind == "LogicalRelation":
                relation = leaf.relation()
                if not relation_class.isInstance(relation):
                    continue
                index = relation.location()
                if any_index.isInstance(index):
                    path = str(index.path().toString())
                    is_fixed[path] = is_fixed.get(path, False) or not _follows_log(jvm, index)
    fixed = is_fixed.get(_data_path(df, location))
    if fixed is None:
        return TableReads.NONE
    return TableReads.FIXED if fixed or _reads_cache(jvm, df) else TableReads.NEWEST


def _follows_log(jvm: Jvm, index: Any) -> bool:
    """Whether Delta's list of files is that of the version that a transaction reads."""
    of_log = jvm.java_class("org.apache.spark.sql.delta.files.TahoeLogFileIndex")
    return bool(of_log.isInstance(index)) and not index.isTimeTravelQuery()


def _reads_cache(jvm: Jvm, df: DataFrame) -> bool:
    """Whether Spark takes rows of the query from its cache, where they stay what they were."""
    plan = anew(df)._jdf.queryExecution().withCachedData()
    leaves = (
        leaf
        for part in (plan, *jvm.elements(plan.subqueriesAll()))
        for leaf in jvm.elements(part.collectLeaves())
    )
    return any(leaf.getClass().getSimpleName() == "InMemoryRelation" for leaf in leaves)


def _data_path(df: DataFrame, location: str) -> str:
    return str(delta_log_of(df.sparkSession, location).dataPath().toString())
