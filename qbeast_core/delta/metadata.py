"""Delta's `Metadata` of a table, changed or lent to Delta's functions before it is committed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qbeast_core.delta.jvm import Jvm


def reconfigured(jvm: Jvm, metadata: Any, configuration: Mapping[str, str]) -> Any:
    """The metadata with another configuration."""
    return jvm.new(
        "org.apache.spark.sql.delta.actions.Metadata",
        id=metadata.id(),
        name=metadata.name(),
        description=metadata.description(),
        format=metadata.format(),
        schemaString=metadata.schemaString(),
        partitionColumns=metadata.partitionColumns(),
        configuration=jvm.scala_map(configuration),
        createdTime=metadata.createdTime(),
    )


def snapshot_with(jvm: Jvm, delta_log: Any, metadata: Any) -> Any:
    """A snapshot without files: how Delta's functions take the schema and settings of a table."""
    return jvm.new(
        "org.apache.spark.sql.delta.DummySnapshot", delta_log.logPath(), delta_log, metadata
    )
