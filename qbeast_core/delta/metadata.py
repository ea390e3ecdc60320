"""Reads and creates Delta's `Metadata` of a table, and passes it to Delta before it is committed.

It is handled in the log's JSON form: one call of the JVM instead of a hundred for its fields.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from qbeast_core.errors import InvalidOptions
from qbeast_core.jvm.failures import one_line
from qbeast_core.jvm.gateway import Jvm
from qbeast_core.model.datatypes import now_millis
from qbeast_core.model.slices import SLICE_COLUMN, SLICES_KEY
from qbeast_core.spark.schema import GENERATION_KEY, nested_voids

COLUMN_MAPPING_KEY = "delta.columnMapping.mode"
"""The table property for column mapping: `name` or `id` if columns have other names in files."""

PHYSICAL_NAME_KEY = "delta.columnMapping.physicalName"
"""In the metadata of a column or field: its name in the files, if that is a different one."""


def maps_columns(configuration: Mapping[str, str]) -> bool:
    """Whether column mapping is on, by Delta's reading of the property."""
    return configuration.get(COLUMN_MAPPING_KEY, "none").lower() != "none"


def has_change_feed(jvm: Jvm, metadata: Any) -> bool:
    """Whether a table has a change data feed, under either of Delta's names for it."""
    configs = jvm.singleton("org.apache.spark.sql.delta.DeltaConfigs")
    return bool(configs.CHANGE_DATA_FEED().fromMetaData(metadata))


def fields_of(metadata: Any) -> dict[str, Any]:
    """The fields of a `metaData` action, by their names in the log."""
    return dict(json.loads(metadata.json())["metaData"])


def metadata_of(jvm: Jvm, fields: Mapping[str, Any]) -> Any:
    """The `metaData` action with these fields."""
    from_json = jvm.singleton("org.apache.spark.sql.delta.actions.Action").fromJson
    return from_json(json.dumps({"metaData": dict(fields)}))


def table_metadata(
    jvm: Jvm,
    schema: StructType,
    configuration: Mapping[str, str],
    comment: str | None,
    kept_from: Any = None,
) -> Any:
    """The `metaData` action of a new table, or of one that replaces a table.

    Args:
        comment: None for that of the replaced table; an empty string removes it.
        kept_from: the `metaData` action of the replaced table.
    """
    before = {"id": str(uuid.uuid4())} if kept_from is None else fields_of(kept_from)
    return metadata_of(
        jvm,
        {
            "id": before["id"],
            "name": before.get("name"),
            "description": before.get("description") if comment is None else comment or None,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": without_internal_metadata(jvm, schema),
            "partitionColumns": [],
            "configuration": dict(configuration),
            "createdTime": now_millis(),
        },
    )


def without_internal_metadata(jvm: Jvm, schema: StructType) -> str:
    """A schema as JSON text, without Spark's internal column metadata.

    Otherwise a column that was hidden in its source (`select *, _metadata`) would be hidden again.
    """
    known = jvm.singleton("org.apache.spark.sql.types.DataType").fromJson(schema.json())
    util = jvm.singleton("org.apache.spark.sql.catalyst.util.package")
    return str(util.removeInternalMetadata(known).json())


def check_types(schema: StructType) -> None:
    """Raise InvalidOptions if Delta cannot store values of these columns."""
    untyped = nested_voids(schema)
    if untyped:
        raise InvalidOptions(
            f"Delta does not accept {', '.join(map(repr, untyped))}, because nulls need a type and "
            "structs a field with one; cast them in the query, such as cast(null as string)"
        )


def checked_properties(spark: SparkSession, properties: Mapping[str, str]) -> dict[str, str]:
    """Table properties in Delta's own spelling; Delta ignores the case of their names.

    Raises:
        InvalidOptions: Delta does not know a property, or does not allow its value.
    """
    jvm = Jvm(spark)
    configs = jvm.singleton("org.apache.spark.sql.delta.DeltaConfigs")
    try:
        taken = configs.validateConfigurations(jvm.scala_map(properties))
    except PySparkException as problem:
        raise InvalidOptions(
            f"Delta does not accept these properties: {one_line(problem)}"
        ) from problem
    return dict(json.loads(jvm.json_of(taken)))


def features_of(protocol: Any) -> frozenset[str]:
    """The names of the table features that a protocol requires of readers and writers."""
    fields = json.loads(protocol.json())["protocol"]
    return frozenset(fields.get("readerFeatures", []) + fields.get("writerFeatures", []))


def stores_slices(fields: Mapping[str, Any]) -> bool:
    """Whether the table has a slice column that Delta computes."""
    return stored_slice_expression(fields) is not None


def stored_slice_expression(fields: Mapping[str, Any]) -> str | None:
    """The SQL by which Delta computes the slice column; None if the table has none.

    A program that replaced the schema may have left an ordinary column of this name.
    """
    if fields["configuration"].get(SLICES_KEY) != "true":
        return None
    for field in json.loads(fields["schemaString"])["fields"]:
        if field["name"] == SLICE_COLUMN and GENERATION_KEY in field["metadata"]:
            return str(field["metadata"][GENERATION_KEY])
    return None


def names_in_files(fields: Mapping[str, Any]) -> dict[str, str]:
    """The name in the data files of each column of the table."""
    schema = StructType.fromJson(json.loads(fields["schemaString"]))
    return {field.name: name_in_files(field) for field in schema}


def name_in_files(field: StructField) -> str:
    """The name in the data files of a column or of a field of a struct."""
    return str(field.metadata.get(PHYSICAL_NAME_KEY, field.name))


def snapshot_with(jvm: Jvm, delta_log: Any, metadata: Any) -> Any:
    """A snapshot without files. Some Delta functions need it for a table's schema and settings."""
    return jvm.new(
        "org.apache.spark.sql.delta.DummySnapshot", delta_log.logPath(), delta_log, metadata
    )
