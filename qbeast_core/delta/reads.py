"""Finds the Delta tables that a query reads."""

from __future__ import annotations

from pyspark.sql import DataFrame

from qbeast_core.delta.snapshot import delta_log_of
from qbeast_core.jvm.gateway import Jvm

_V2_TABLE = "io.delta.spark.internal.v2.catalog.DeltaV2Table"
"""What Delta reads if `spark.databricks.delta.v2.enableMode` is STRICT."""


def reads_table(df: DataFrame, location: str) -> bool:
    """Whether a query reads the Delta table at `location`, in a subquery or elsewhere."""
    jvm = Jvm(df.sparkSession)
    # Delta's relations belong to an anonymous subclass of this class.
    relation_class = jvm.java_class("org.apache.spark.sql.execution.datasources.HadoopFsRelation")
    index_class = jvm.java_class("org.apache.spark.sql.delta.files.TahoeFileIndex")
    paths = set()
    analyzed = df._jdf.queryExecution().analyzed()
    for plan in (analyzed, *jvm.elements(analyzed.subqueriesAll())):
        for leaf in jvm.elements(plan.collectLeaves()):
            kind = leaf.getClass().getSimpleName()
            if kind == "DataSourceV2Relation" and jvm.has_class(_V2_TABLE):
                if jvm.java_class(_V2_TABLE).isInstance(leaf.table()):
                    path = str(leaf.table().getTablePath().toString())
                    paths.add(str(delta_log_of(df.sparkSession, path).dataPath().toString()))
            elif kind == "LogicalRelation":
                relation = leaf.relation()
                if relation_class.isInstance(relation) and index_class.isInstance(
                    relation.location()
                ):
                    paths.add(str(relation.location().path().toString()))
    return str(delta_log_of(df.sparkSession, location).dataPath().toString()) in paths
