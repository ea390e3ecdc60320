"""Ask Delta how it would store a new or replaced table, without changing anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from qbeast_core.delta.metadata import (
    check_types,
    features_of,
    fields_of,
    has_change_feed,
    maps_columns,
    names_in_files,
    table_metadata,
)
from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.errors import InvalidOptions
from qbeast_core.jvm.failures import one_line
from qbeast_core.jvm.gateway import Jvm


def planned_table(
    snapshot: TableSnapshot, schema: StructType, configuration: Mapping[str, str]
) -> tuple[frozenset[str], dict[str, str]]:
    """The features and properties of the table if it was created or replaced like this.

    Delta's own rules apply, including the session's defaults.

    Args:
        snapshot: the table before; it may not exist.

    Raises:
        InvalidOptions: Delta does not accept these columns or properties.
    """
    check_types(schema)
    jvm, trial = Jvm(snapshot.spark), snapshot.trial()
    kept_from = trial.metadata() if snapshot.exists else None
    metadata = table_metadata(jvm, schema, configuration, None, kept_from)
    try:
        if snapshot.exists:
            trial.updateMetadataForTableOverwrite(metadata)
        else:
            trial.updateMetadataForNewTable(metadata)
    except (Py4JJavaError, PySparkException) as problem:
        raise InvalidOptions(f"Delta does not accept the table: {one_line(problem)}") from problem
    _check_change_feed(jvm, trial)
    return features_of(trial.protocol()), dict(fields_of(trial.metadata())["configuration"])


def _check_change_feed(jvm: Jvm, trial: Any) -> None:
    """Raise InvalidOptions if rows and this change of metadata cannot be in one commit."""
    fields = fields_of(trial.metadata())
    if not maps_columns(fields["configuration"]) or not has_change_feed(jvm, trial.metadata()):
        return
    before = fields_of(trial.snapshot().metadata())
    if maps_columns(before["configuration"]):
        had, has = (set(names_in_files(each).values()) for each in (before, fields))
        if had <= has:
            return
    raise InvalidOptions(
        "Delta does not accept the table: while the change data feed is on, no commit with "
        "rows may turn on column mapping or drop a mapped column. Write the rows without "
        "delta.enableChangeDataFeed, or with 'false', and set it to 'true' afterwards with "
        "ALTER TABLE ... SET TBLPROPERTIES"
    )
