"""Deletes the files of old versions, no earlier than the table's retention allows."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import SparkSession

from qbeast_core import changed_settings

# Since 4.1, Delta ignores the hours in a statement, except 0, unless this is false.
_IGNORES_HOURS = "spark.databricks.delta.vacuum.retentionWindowIgnore.enabled"
# Without this, Delta does not record on some object stores how many files it deleted.
_IS_LOGGED = "spark.databricks.delta.vacuum.logging.enabled"
_SETTINGS = {_IGNORES_HOURS: "false", _IS_LOGGED: "true"}
_GLOB = re.compile(r"([\\{}\[\]*?])")


@dataclass(frozen=True)
class OldFiles:
    """The files of a table that no version within its retention needs."""

    paths: Sequence[str]
    """Paths of the files, and of directories that are empty without them."""
    files: int
    """Number of files."""
    size_bytes: int
    """Total size of the files."""


def old_files(session: SparkSession, table: str, hours: Any) -> OldFiles:
    """The files that `delete_old_files` would delete.

    Args:
        table: the quoted name.
        hours: a retention to use instead of the table's own
            (`delta.deletedFileRetentionDuration`, a week by default).

    Raises:
        DbtRuntimeError: `hours` is not a whole number.
        DeltaError: `hours` is less than the table's own retention, or the table is not Delta.
    """
    with changed_settings(session, _SETTINGS):
        listed = session.sql(f"{_statement(table, hours)} dry run").collect()
    paths = [row["path"] for row in listed]
    if not paths:
        return OldFiles((), 0, 0)
    # Lists names and sizes only: Spark does not read contents that no column asks for.
    files = session.read.format("binaryFile").load([_GLOB.sub(r"\\\1", path) for path in paths])
    row = files.selectExpr("count(*) as files", "coalesce(sum(length), 0) as size").first()
    assert row is not None
    return OldFiles(paths, row["files"], row["size"])


def delete_old_files(session: SparkSession, table: str, old: OldFiles, hours: Any) -> None:
    """Deletes these files, and any that have become old enough since.

    Raises:
        DbtRuntimeError: some files could not be deleted.
    """
    with changed_settings(session, _SETTINGS):
        session.sql(_statement(table, hours)).collect()
    history = session.sql(f"describe history {table}").where("operation = 'VACUUM END'")
    metrics = history.orderBy("version", ascending=False).select("operationMetrics").first()
    deleted = int((metrics[0] if metrics else {}).get("numDeletedFiles", 0))
    if deleted < len(old.paths):
        raise DbtRuntimeError(
            f"{deleted:,} of {len(old.paths):,} files and directories were deleted; the others "
            "were already gone, or this user may not delete them"
        )


def _statement(table: str, hours: Any) -> str:
    if hours is None:
        return f"vacuum {table}"
    if isinstance(hours, bool) or not isinstance(hours, int) or hours < 0:
        raise DbtRuntimeError(f"hours is a whole number, such as 168 for a week, not {hours!r}")
    return f"vacuum {table} retain {hours} hours"
