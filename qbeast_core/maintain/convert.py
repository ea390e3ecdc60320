"""Convert an existing table to an indexed one without rewriting its data files.

The existing files count as not indexed: reads and samples are correct, but always read all of them.
Appends are indexed immediately, and `optimize` indexes the existing files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from qbeast_core import failpoints
from qbeast_core.counts import counted
from qbeast_core.delta.operations import Operation
from qbeast_core.errors import IncompatibleTable, IndexMismatch, NotAQbeastTable, Remedy
from qbeast_core.jvm.failures import typed_errors
from qbeast_core.jvm.settings import run_statement
from qbeast_core.locate.address import PARQUET, RELATION_KEY, TableAddress, address_of_text
from qbeast_core.locate.compatibility import (
    check_no_slice_column,
    check_own_files,
    check_planned,
    check_writable,
)
from qbeast_core.locate.open_table import OpenTable, WritableTable
from qbeast_core.locate.retry import until_committed
from qbeast_core.model.datatypes import now_millis
from qbeast_core.model.revision import Revision
from qbeast_core.names import quoted
from qbeast_core.options import AUTO, resolve_columns
from qbeast_core.spark.slices import with_slices
from qbeast_core.tree.column_choice import ColumnChoice
from qbeast_core.write.index_options import IndexOptions
from qbeast_core.write.index_properties import is_index_key, option_keys, slices_key
from qbeast_core.write.revision import check_sample_key, check_slices, continued_transformers
from qbeast_core.write.sizing import automatic_cube_size

_NO_FILES = ("UNABLE_TO_INFER_SCHEMA", "PATH_NOT_FOUND")
"""Spark's errors for a directory without files, and for a missing one."""


@dataclass(frozen=True)
class ConvertResult:
    """The result of a conversion: the columns to index, the rows per cube, and what is left to do.

    `str()` describes it in one line.
    """

    version: int
    """The table's version afterwards; unchanged if the table already had this index."""
    columns: tuple[str, ...]
    cube_size: int
    files: int
    """The number of files that `optimize` must still index."""
    rows: int
    """The number of rows in the files that `optimize` must still index."""
    changed: bool
    """False if the table already had this index."""
    column_choice: ColumnChoice | None = None
    """The columns that `auto` chose, and why; None if they were named."""

    def __str__(self) -> str:
        if not self.changed:
            return f"already indexed by {', '.join(self.columns)}"
        chosen = f" ({self.column_choice})" if self.column_choice else ""
        return (
            f"indexed by {', '.join(self.columns)}{chosen} from now on; "
            f"{counted(self.rows, 'row')} in {counted(self.files, 'file')} are not indexed until "
            "you run optimize"
        )


@typed_errors
def convert_to_qbeast(
    spark: SparkSession,
    table: str,
    columns_to_index: str | Sequence[str],
    cube_size: int | str = AUTO,
    sample_key: str | Sequence[str] | None = None,
    slices: bool | None = None,
) -> ConvertResult:
    """Convert a Delta or Parquet table to an indexed table without rewriting its data files.

    A Delta table gets one commit that adds a staging revision to its configuration
    (docs/format.md 3.5). A Parquet table is first converted to Delta in place, with `CONVERT TO
    DELTA`. If the table already has the requested index, nothing changes. Run `optimize` afterwards
    to index the existing files.

    Unless the commit's state is unknown, an error leaves a Delta table unchanged. A Parquet table
    can be a Delta table without an index by then; convert it again.

    Args:
        spark: a Spark session with Delta Lake.
        table: ``delta.`/path` `` or ``parquet.`/path` `` with an absolute path or URI, or a name as
            `schema.table`.
        columns_to_index: as for `write_table`. `"auto"` reads rows of the table to choose.
        cube_size: rows per cube, or `"auto"` to derive it from the number of rows in the table.
        sample_key: as for `write_table`. It applies to the whole table until a rebuild.
        slices: as for `write_table`. `optimize` adds slices to existing rows.

    Returns:
        The index and the files that `optimize` must still index.

    Raises:
        InvalidOptions: an option is not valid.
        UnknownColumn: a named column does not exist.
        UnsupportedColumnType: a column cannot be indexed or be part of the sample key.
        NotAQbeastTable: there is no such table.
        IncompatibleTable: the table is partitioned, has features that an indexed write cannot
            maintain, has files outside its directory, is a view, or is stored in another format.
        IndexMismatch: the table already has an index with other columns, or with another cube size,
            sample key or slices.
        CommitVetoed: a commit hook refused the commit.
        CommitConflict: other writers changed the table during every attempt.
        CommitStateUnknown: the commit may have been written; the message says how to find out.

    Example:
        ```python
        convert_to_qbeast(spark, "db.events", ["ts", "user_id:hash"])
        QbeastTable.for_name(spark, "db.events").optimize("unindexed")
        ```
    """
    options = IndexOptions.parse(
        columns_to_index=columns_to_index,
        cube_size=cube_size,
        sample_key=sample_key,
        slices=slices,
    )
    address = address_of_text(spark, table)
    found = OpenTable.newest(spark, address)
    # If Delta's conversion was cut off, the log exists and the catalog still has a Parquet table.
    becomes_delta = address.format == PARQUET and (
        address.name is not None or not found.snapshot.exists
    )
    if becomes_delta:
        _convert_parquet(spark, found, options)
    return until_committed(
        address.label,
        lambda: _attempt(WritableTable.begin(spark, address), options),
        wrote_before=becomes_delta,
    )


@typed_errors
def check_convertible(spark: SparkSession, table: str, slices: bool | None = None) -> None:
    """Check whether `convert_to_qbeast` can convert a table, without changing it.

    Args:
        spark: a Spark session with Delta Lake.
        table: as for `convert_to_qbeast`.
        slices: as for `convert_to_qbeast`.

    Raises:
        InvalidOptions: the table's name or path is not valid.
        NotAQbeastTable: there is no such table.
        IncompatibleTable: the table cannot be converted in place; `remedy` says what helps.
    """
    found = OpenTable.newest(spark, address_of_text(spark, table))
    if found.snapshot.exists:
        _check_convertible(found, slices)
    elif found.address.format == PARQUET:
        _convertible_rows(found)
    else:
        raise _not_found(found)


def _not_found(table: OpenTable) -> NotAQbeastTable:
    """The error for an address without a Delta table."""
    location = table.address.location
    if table.address.name is not None or not _has_parquet_files(table):
        return table.not_found_error
    return NotAQbeastTable(
        f"there is no Delta table at {location}, only Parquet files; to convert them, name the "
        f"table as {PARQUET}.{quoted(location)}"
    )


def _has_parquet_files(table: OpenTable) -> bool:
    # With a schema, Spark reads none of the files that it lists.
    reader = _all_files(table.spark).option("pathGlobFilter", "*.parquet").schema("found boolean")
    try:
        return bool(reader.parquet(table.snapshot.location).inputFiles())
    except AnalysisException:  # there is no directory
        return False


def _check_convertible(table: OpenTable, slices: bool | None) -> None:
    check_writable(table)
    check_own_files(table)
    if slices:
        check_no_slice_column(table)


def _convert_parquet(spark: SparkSession, table: OpenTable, options: IndexOptions) -> None:
    """Convert a Parquet table to Delta, in place."""
    address = table.address
    if not table.snapshot.exists:
        schema = _convertible_rows(table).schema
        options.check_columns(schema)
        options.new_sample_key(table, schema)
        check_planned(table, schema, {})
    statement = f"CONVERT TO DELTA {address.sql_name}"
    try:
        run_statement(spark, statement)
    except Exception:
        if table.snapshot.exists or not OpenTable.newest(spark, address).snapshot.exists:
            raise
        # Only the reply to the commit was lost. What is left is to change the catalog's entry.
        run_statement(spark, statement)
    failpoints.reach(failpoints.AFTER_COMMIT)


def _without_index(configuration: Mapping[str, str]) -> dict[str, str]:
    """The configuration without what a removed index left."""
    return {
        key: text
        for key, text in configuration.items()
        if key == RELATION_KEY or not is_index_key(key)
    }


def _attempt(table: WritableTable, options: IndexOptions) -> ConvertResult:
    snapshot = table.snapshot
    if not snapshot.exists:
        raise _not_found(table)
    if table.configuration.last_revision_id is not None:
        return _indexed_already(table, options)
    _check_convertible(table, options.slices)
    options.check_columns(snapshot.schema)
    sample_key = options.new_sample_key(table, snapshot.schema)
    columns, choice = options.columns_for(snapshot.dataframe(), snapshot.schema)
    transformers = resolve_columns(columns, snapshot.schema)
    slices = options.slices is True
    rows = snapshot.row_count()
    staging = Revision.staging(
        Revision(
            revision_id=1,
            timestamp_millis=now_millis(),
            table_id=table.address.location,
            desired_cube_size=options.cube_size or automatic_cube_size(rows, snapshot.schema),
            transformers=transformers,
            transformations=(),
            sample_key=sample_key,
        )
    )
    table.transaction.metadata.update_configuration(
        {
            **_without_index(snapshot.configuration),
            **option_keys(columns, staging),
            **options.automatic_keys(table, choice),
            **table.configuration.with_revision(staging).write(),
            **slices_key(slices),
        },
        with_slices(snapshot.schema, staging.weight_columns) if slices else None,
    )
    return ConvertResult(
        version=table.transaction.commit(Operation.CONVERT, []),
        columns=staging.columns,
        cube_size=staging.desired_cube_size,
        files=len(snapshot.files),
        rows=rows,
        changed=True,
        column_choice=choice,
    )


def _indexed_already(table: OpenTable, options: IndexOptions) -> ConvertResult:
    snapshot, latest = table.snapshot, table.configuration.latest
    check_writable(table)
    columns, size = options.columns, options.cube_size
    asked = [column.name.lower() for column in columns or ()]
    if columns is not None and asked != [name.lower() for name in latest.columns]:
        raise IndexMismatch(
            f"{table.label} is already indexed, by {', '.join(latest.columns)}; to index it by "
            f"{', '.join(column.name for column in columns)}, write all of its rows again with "
            "write_table(..., mode='overwrite', overwrite_schema=False) and all index options"
        )
    kept = continued_transformers(latest, None, snapshot.schema, table.label)
    asked_for = continued_transformers(latest, columns, snapshot.schema, table.label)
    for old, new in zip(kept, asked_for, strict=True):
        if new.kind != old.kind:
            raise IndexMismatch(
                f"{table.label} is already indexed, with {old.column!r} as {old.kind!r}; to index "
                f"new rows as {new.kind!r}, append with columns_to_index"
            )
    if options.sample_key is not None:
        check_sample_key(
            options.sample_key, latest, snapshot.configuration, snapshot.schema, table.label
        )
    if options.slices is not None:
        check_slices(options.slices, snapshot.stores_slices, table.label)
    if size is not None and size != latest.desired_cube_size:
        raise IndexMismatch(
            f"{table.label} is already indexed, with a cube size of {latest.desired_cube_size}; "
            f"to change the cube size for new rows, append with cube_size={size}"
        )
    return ConvertResult(
        version=snapshot.version,
        columns=latest.columns,
        cube_size=latest.desired_cube_size,
        files=0,
        rows=0,
        changed=False,
    )


def _convertible_rows(table: OpenTable) -> DataFrame:
    """The rows of a Parquet table.

    Raises:
        NotAQbeastTable: there is no Parquet table.
        IncompatibleTable: Delta's conversion would take other files than Spark reads.
    """
    spark, address = table.spark, table.address
    # Without `//` and `..`, as in the names of files.
    location = table.snapshot.location
    if address.name:
        columns = spark.catalog.listColumns(address.sql_name)
        partitions = [column.name for column in columns if column.isPartition]
        _refuse_partitions(address, partitions)
    try:
        rows = _all_files(spark).option("mergeSchema", True).parquet(location)
    except AnalysisException as problem:
        if address.name and problem.getCondition() in _NO_FILES:
            raise NotAQbeastTable(
                f"{address.name} is a Parquet table without files, so there is nothing to convert; "
                "drop it, and create it with write_table"
            ) from problem
        raise NotAQbeastTable(
            f"there is no Parquet table at {address.label} ({problem.getCondition()}); correct the "
            "name or path"
        ) from problem
    directories = _directories_below(location, rows.inputFiles())
    _refuse_partitions(address, sorted({part.split("=")[0] for part in directories if "=" in part}))
    if directories:
        raise IncompatibleTable(
            f"{address.label} has files in subdirectories ({min(directories)}), which Spark does "
            "not read as part of the table but Delta would; move them away first"
        )
    return rows


def _all_files(spark: SparkSession) -> DataFrameReader:
    """Reads every file below a directory, and does not treat subdirectories as partitions."""
    everything = spark.read.option("recursiveFileLookup", True)
    # Otherwise `[`, `{` and `*` in a path are those of a pattern.
    return everything.option("__globPaths__", False)


def _refuse_partitions(address: TableAddress, partitions: Sequence[str]) -> None:
    if partitions:
        raise IncompatibleTable(
            f"{address.label} is partitioned by {', '.join(partitions)}, but an indexed table "
            "cannot have partitions; rewrite its rows with write_table",
            Remedy.COPY,
        )


def _directories_below(location: str, files: Sequence[str]) -> set[str]:
    """The names of all directories between the table's directory and the files."""
    depth = len(_path_of(location).rstrip("/").split("/"))
    return {part for file in files for part in _path_of(file).split("/")[depth:-1]}


def _path_of(uri: str) -> str:
    return re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?", "", uri)
