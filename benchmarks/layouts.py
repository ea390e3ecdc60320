"""The same rows in the layouts that are compared, each made as its users make it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from enum import Enum

from pyspark.sql import DataFrame, SparkSession

from qbeast_core import write_table

SORTED_FILES = "spark.databricks.io.skipping.mdc.sortWithinFiles"


class Layout(Enum):
    """How a table lies in its files; the value is its name in tables."""

    QBEAST = "qbeast"
    QBEAST_SLICES = "qbeast, slices"
    PLAIN = "plain Delta"
    ZORDER = "ZORDER"
    ZORDER_SORTED = "ZORDER, sorted"
    LIQUID = "liquid clustering"


def write_plain(rows: DataFrame, path: str, mode: str = "errorifexists") -> None:
    """The baseline: nothing but Delta's own writer."""
    rows.write.format("delta").mode(mode).save(path)


def write_qbeast(
    rows: DataFrame,
    path: str,
    columns: Sequence[str],
    mode: str = "append",
    slices: bool | None = None,
) -> None:
    """An indexed table with everything else left to the defaults."""
    write_table(rows, path=path, mode=mode, columns_to_index=list(columns), slices=slices)


def optimize_zorder(spark: SparkSession, path: str, columns: Sequence[str]) -> None:
    """Delta's OPTIMIZE ZORDER with the settings of the session."""
    spark.sql(f"optimize delta.`{path}` zorder by ({', '.join(columns)})")


def zordered(
    spark: SparkSession,
    plain: str,
    path: str,
    columns: Sequence[str],
    sorted_files: bool,
) -> None:
    """A copy of a plain table after OPTIMIZE ZORDER, the rows of a file sorted or not.

    Its files have up to a gigabyte: one file here, and a file among thousands in a table of
    terabytes.
    """
    copy(plain, path)
    session = spark.newSession()
    session.conf.set(SORTED_FILES, sorted_files)
    optimize_zorder(session, path, columns)


def clustered(spark: SparkSession, plain: str, path: str, columns: Sequence[str]) -> None:
    """A copy of a plain table that has got liquid clustering, after OPTIMIZE."""
    copy(plain, path)
    spark.sql(f"alter table delta.`{path}` cluster by ({', '.join(columns)})")
    spark.sql(f"optimize delta.`{path}` full")


def copy(source: str, target: str) -> str:
    """Another table with the same files and log, to change without changing the first."""
    shutil.copytree(source, target)
    return target


def stored(spark: SparkSession, path: str) -> tuple[int, int]:
    """The bytes and the number of the live files, as Delta tells them."""
    row = spark.sql(f"describe detail delta.`{path}`").select("sizeInBytes", "numFiles").head()
    assert row is not None
    return int(row[0]), int(row[1])
