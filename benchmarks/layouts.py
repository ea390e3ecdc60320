"""Writes the same rows in each compared layout, the way its users do."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from enum import Enum

from pyspark.sql import DataFrame, SparkSession

from qbeast_core import write_table

SORTED_FILES = "spark.databricks.io.skipping.mdc.sortWithinFiles"


class Layout(Enum):
    """How rows are laid out in files. The value is the name in tables."""

    QBEAST = "qbeast"
    QBEAST_SLICES = "qbeast, slices"
    PLAIN = "plain Delta"
    ZORDER = "ZORDER"
    ZORDER_SORTED = "ZORDER, sorted"
    LIQUID = "liquid clustering"


def write_plain(rows: DataFrame, path: str, mode: str = "errorifexists") -> None:
    """Write the baseline, with Delta's own writer."""
    rows.write.format("delta").mode(mode).save(path)


def write_qbeast(
    rows: DataFrame,
    path: str,
    columns: Sequence[str],
    mode: str = "append",
    slices: bool | None = None,
) -> None:
    """Write an indexed table with default options."""
    write_table(rows, path=path, mode=mode, columns_to_index=list(columns), slices=slices)


def optimize_zorder(spark: SparkSession, path: str, columns: Sequence[str]) -> None:
    """Run Delta's OPTIMIZE ZORDER with the settings of the session."""
    spark.sql(f"optimize delta.`{path}` zorder by ({', '.join(columns)})")


def zordered(
    spark: SparkSession,
    plain: str,
    path: str,
    columns: Sequence[str],
    sorted_files: bool,
) -> None:
    """Copy a plain table and run OPTIMIZE ZORDER on it, sorting the rows inside files or not.

    Files hold up to a gigabyte: a single file here, one of thousands in a table of terabytes.
    """
    copy(plain, path)
    session = spark.newSession()
    session.conf.set(SORTED_FILES, sorted_files)
    optimize_zorder(session, path, columns)


def clustered(spark: SparkSession, plain: str, path: str, columns: Sequence[str]) -> None:
    """Copy a plain table, give it liquid clustering and run OPTIMIZE."""
    copy(plain, path)
    spark.sql(f"alter table delta.`{path}` cluster by ({', '.join(columns)})")
    spark.sql(f"optimize delta.`{path}` full")


def copy(source: str, target: str) -> str:
    """Copy a table with its files and log, to change the copy only."""
    shutil.copytree(source, target)
    return target


def stored(spark: SparkSession, path: str) -> tuple[int, int]:
    """The total bytes and the number of live files, from Delta."""
    row = spark.sql(f"describe detail delta.`{path}`").select("sizeInBytes", "numFiles").head()
    assert row is not None
    return int(row[0]), int(row[1])
