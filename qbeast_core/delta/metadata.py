"""Delta's `Metadata` of a table, read, made, or lent to Delta's functions before it is committed.

In the log's JSON form, which takes one call where its fields would take a hundred.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from qbeast_core.errors import InvalidOptions
from qbeast_core.jvm.gateway import Jvm
from qbeast_core.model.slices import SLICE_COLUMN, SLICES_KEY
from qbeast_core.spark.schema import GENERATION_KEY

COLUMN_MAPPING_KEY = "delta.columnMapping.mode"
"""The property of a table whose columns have other names in its files: `name` or `id`."""

PHYSICAL_NAME_KEY = "delta.columnMapping.physicalName"
"""In the metadata of a column or field, the name that it has in files, where it has another one."""


def maps_columns(configuration: Mapping[str, str]) -> bool:
    """Whether columns have other names in the files, as Delta reads that property."""
    return configuration.get(COLUMN_MAPPING_KEY, "none").lower() != "none"


def fields_of(metadata: Any) -> dict[str, Any]:
    """The fields of a `metaData` action by the names that they have in the log."""
    return dict(json.loads(metadata.json())["metaData"])


def metadata_of(jvm: Jvm, fields: Mapping[str, Any]) -> Any:
    """The action with these fields."""
    from_json = jvm.singleton("org.apache.spark.sql.delta.actions.Action").fromJson
    return from_json(json.dumps({"metaData": dict(fields)}))


def without_internal_metadata(jvm: Jvm, schema: StructType) -> str:
    """A schema as JSON text without what Spark notes of columns for itself.

    A column that was a hidden one of other files (`select *, _metadata`) would be hidden again.
    """
    known = jvm.singleton("org.apache.spark.sql.types.DataType").fromJson(schema.json())
    util = jvm.singleton("org.apache.spark.sql.catalyst.util.package")
    return str(util.removeInternalMetadata(known).json())


def checked_properties(spark: SparkSession, properties: Mapping[str, str]) -> dict[str, str]:
    """Table properties as Delta spells and takes them; it ignores the case of their names.

    Raises:
        InvalidOptions: Delta has no such property, or the property takes no such value.
    """
    jvm = Jvm(spark)
    configs = jvm.singleton("org.apache.spark.sql.delta.DeltaConfigs")
    try:
        taken = configs.validateConfigurations(jvm.scala_map(properties))
    except PySparkException as problem:
        first_line = str(problem).partition("\n")[0]
        raise InvalidOptions(f"Delta does not take these properties: {first_line}") from problem
    return dict(json.loads(jvm.json_of(taken)))


def features_of(protocol: Any) -> frozenset[str]:
    """The names of the table features that a protocol asks of readers and writers."""
    fields = json.loads(protocol.json())["protocol"]
    return frozenset(fields.get("readerFeatures", []) + fields.get("writerFeatures", []))


def stores_slices(fields: Mapping[str, Any]) -> bool:
    """Whether the table has a column of slices that Delta keeps right.

    A program that replaced the schema may have left one that it does not.
    """
    if fields["configuration"].get(SLICES_KEY) != "true":
        return False
    return any(
        field["name"] == SLICE_COLUMN and GENERATION_KEY in field["metadata"]
        for field in json.loads(fields["schemaString"])["fields"]
    )


def names_in_files(fields: Mapping[str, Any]) -> dict[str, str]:
    """What each column of the table is called in its data files."""
    schema = StructType.fromJson(json.loads(fields["schemaString"]))
    return {field.name: name_in_files(field) for field in schema}


def name_in_files(field: StructField) -> str:
    """What a column, or a field of a struct, is called in data files."""
    return str(field.metadata.get(PHYSICAL_NAME_KEY, field.name))


def snapshot_with(jvm: Jvm, delta_log: Any, metadata: Any) -> Any:
    """A snapshot without files: how Delta's functions take the schema and settings of a table."""
    return jvm.new(
        "org.apache.spark.sql.delta.DummySnapshot", delta_log.logPath(), delta_log, metadata
    )
