"""Delta's `Metadata` of a table, read, made, or lent to Delta's functions before it is committed.

In the log's JSON form, which takes one call where its fields would take a hundred.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from qbeast_core.delta.jvm import Jvm
from qbeast_core.model.slices import SLICE_COLUMN, SLICES_KEY

COLUMN_MAPPING_KEY = "delta.columnMapping.mode"
"""The property of a table whose columns have other names in its files: `name` or `id`."""

PHYSICAL_NAME_KEY = "delta.columnMapping.physicalName"
"""In the metadata of a column or field, the name that it has in files, where it has another one."""


def fields_of(metadata: Any) -> dict[str, Any]:
    """The fields of a `metaData` action by the names that they have in the log."""
    return dict(json.loads(metadata.json())["metaData"])


def metadata_of(jvm: Jvm, fields: Mapping[str, Any]) -> Any:
    """The action with these fields."""
    from_json = jvm.singleton("org.apache.spark.sql.delta.actions.Action").fromJson
    return from_json(json.dumps({"metaData": dict(fields)}))


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
        field["name"] == SLICE_COLUMN and "delta.generationExpression" in field["metadata"]
        for field in json.loads(fields["schemaString"])["fields"]
    )


def names_in_files(fields: Mapping[str, Any]) -> dict[str, str]:
    """What each column of the table is called in its data files."""
    return {
        field["name"]: field["metadata"].get(PHYSICAL_NAME_KEY, field["name"])
        for field in json.loads(fields["schemaString"])["fields"]
    }


def snapshot_with(jvm: Jvm, delta_log: Any, metadata: Any) -> Any:
    """A snapshot without files: how Delta's functions take the schema and settings of a table."""
    return jvm.new(
        "org.apache.spark.sql.delta.DummySnapshot", delta_log.logPath(), delta_log, metadata
    )
