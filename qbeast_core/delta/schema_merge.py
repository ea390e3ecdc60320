"""Merges the columns of new rows into a table's schema, like Delta's option `mergeSchema`.

Delta's own code decides: a new column or field becomes the last one, a present one keeps its type
unless the table's type widening covers the new one, and the case of names does not matter.
"""

from __future__ import annotations

import json
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from qbeast_core.delta.metadata import (
    check_types,
    fields_of,
    metadata_of,
    without_internal_metadata,
)
from qbeast_core.errors import InvalidOptions
from qbeast_core.jvm.failures import one_line
from qbeast_core.jvm.gateway import Jvm
from qbeast_core.jvm.settings import is_set, setting
from qbeast_core.spark.schema import nullable

MERGE_SETTING = "spark.databricks.delta.schema.autoMerge.enabled"
_DELTA = "org.apache.spark.sql.delta."
_MODE = _DELTA + "TypeWideningMode"


def merges_schema(spark: SparkSession, asked: bool | None) -> bool:
    """Whether a write adds columns: as asked, or else as the session's setting says."""
    if asked is None:
        return is_set(spark, MERGE_SETTING) and bool(setting(spark, MERGE_SETTING))
    return asked


def merged_schema(jvm: Jvm, trial: Any, given: StructType) -> StructType | None:
    """The schema of a table with the columns and fields of `given`; None if it has them all.

    Args:
        trial: a transaction of Delta on the table, which will not be committed.

    Raises:
        InvalidOptions: Delta does not allow the change.
    """
    check_types(given)
    fields = fields_of(trial.metadata())
    try:
        merged = str(_merged(jvm, trial, given).json())
        schema = StructType.fromJson(json.loads(merged))
        if schema == StructType.fromJson(json.loads(fields["schemaString"])):
            return None
        trial.updateMetadata(metadata_of(jvm, fields | {"schemaString": merged}), False)
    except (Py4JJavaError, PySparkException) as problem:
        raise InvalidOptions(
            f"merge_schema cannot add the columns of the data to the table: {one_line(problem)}"
        ) from problem
    return schema


def _merged(jvm: Jvm, trial: Any, given: StructType) -> Any:
    present = trial.metadata().schema()
    own = _parsed(jvm, without_internal_metadata(jvm, nullable(given)))
    own = jvm.singleton(_DELTA + "DeltaColumnMapping").dropColumnMappingMetadata(own)
    merging = jvm.singleton(_DELTA + "schema.SchemaMergingUtils")
    # Values of other types are stored as the present type, or are an error, as in any append.
    merged = merging.mergeSchemas(present, own, False, True, _widening(jvm, trial), False)
    # This looks for constraints and generated columns that depend on a widened column.
    operation = jvm.singleton(_DELTA + "schema.ImplicitMetadataOperation")
    merged = operation.mergeSchema(jvm.session, trial, merged, False, False)
    widened = jvm.singleton(_DELTA + "TypeWideningMetadata")
    return widened.addTypeWideningMetadata(trial, merged, present)


def _widening(jvm: Jvm, trial: Any) -> Any:
    """Delta's rule for the types that a column may widen to."""
    enabled = jvm.singleton(_DELTA + "TypeWidening").isEnabled
    if not enabled(trial.protocol(), trial.metadata()):
        return jvm.singleton(_MODE + "$NoTypeWidening")
    automatic = jvm.singleton(_DELTA + "sources.DeltaSQLConf").AllowAutomaticWideningMode()
    allowed = automatic.fromConf(jvm.session.sessionState().conf())
    return jvm.singleton(_MODE + "$TypeEvolution").apply(False, allowed)


def _parsed(jvm: Jvm, schema: str) -> Any:
    return jvm.singleton("org.apache.spark.sql.types.DataType").fromJson(schema)
