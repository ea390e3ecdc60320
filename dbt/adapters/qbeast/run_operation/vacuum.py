"""Deleting the files of old versions, no earlier than the table's retention lets Delta."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import SparkSession

from qbeast_core import changed_settings

# Since 4.1 Delta leaves out the hours that a statement names, other than 0, unless this is false.
_IGNORES_HOURS = "spark.databricks.delta.vacuum.retentionWindowIgnore.enabled"
# On some object stores Delta would not write down how many files it deleted.
_IS_LOGGED = "spark.databricks.delta.vacuum.logging.enabled"
_SETTINGS = {_IGNORES_HOURS: "false", _IS_LOGGED: "true"}
_GLOB = re.compile(r"([\\{}\[\]*?])")


@dataclass(frozen=True)
class OldFiles:
    """The files of a table that no version within its retention needs.

    Attributes:
        paths: of the files, and of directories that are empty without them.
        files: how many files.
        size_bytes: of the files.
    """

    paths: Sequence[str]
    files: int
    size_bytes: int


def old_files(session: SparkSession, table: str, hours: Any = None) -> OldFiles:
    """What `delete_old_files` would delete.

    Args:
        table: the quoted name.
        hours: a retention in place of the table's own (`delta.deletedFileRetentionDuration`, a week
            by default).

    Raises:
        DbtRuntimeError: `hours` is no whole number.
        DeltaError: `hours` is less than the table's own retention, or it is no Delta table.
    """
    with changed_settings(session, _SETTINGS):
        listed = session.sql(f"{_statement(table, hours)} dry run").collect()
    paths = [row["path"] for row in listed]
    if not paths:
        return OldFiles((), 0, 0)
    # Their names and sizes only: a column that is not asked for is not read.
    files = session.read.format("binaryFile").load([_GLOB.sub(r"\\\1", path) for path in paths])
    row = files.selectExpr("count(*) as files", "coalesce(sum(length), 0) as size").first()
    assert row is not None
    return OldFiles(paths, row["files"], row["size"])


def delete_old_files(session: SparkSession, table: str, old: OldFiles, hours: Any = None) -> None:
    """Deletes them, and files that have become old enough since.

    Raises:
        DbtRuntimeError: some could not be deleted.
    """
    with changed_settings(session, _SETTINGS):
        session.sql(_statement(table, hours)).collect()
    history = session.sql(f"describe history {table}").where("operation = 'VACUUM END'")
    metrics = history.orderBy("version", ascending=False).select("operationMetrics").first()
    deleted = int((metrics[0] if metrics else {}).get("numDeletedFiles", 0))
    if deleted < len(old.paths):
        raise DbtRuntimeError(
            f"{deleted:,} of {len(old.paths):,} files and directories were deleted; the others "
            "were gone already, or may not be deleted by this user"
        )


def _statement(table: str, hours: Any) -> str:
    if hours is None:
        return f"vacuum {table}"
    if isinstance(hours, bool) or not isinstance(hours, int) or hours < 0:
        raise DbtRuntimeError(f"hours is a whole number, such as 168 for a week, not {hours!r}")
    return f"vacuum {table} retain {hours} hours"
