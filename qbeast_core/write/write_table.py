"""Write a DataFrame to an indexed table, with one evaluation of its query and one commit.

Rows are measured before they are written, unless they can be measured from the written files.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from typing import Any, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from qbeast_core.delta.application import ApplicationTransaction
from qbeast_core.delta.reads import TableReads, reads_of
from qbeast_core.delta.schema_merge import merges_schema
from qbeast_core.errors import SampleWarning
from qbeast_core.jvm.failures import typed_errors
from qbeast_core.locate.address import address_to_write
from qbeast_core.locate.compatibility import check_no_copies, check_planned
from qbeast_core.locate.open_table import WritableTable
from qbeast_core.locate.retry import until_committed
from qbeast_core.options import AUTO, WriteMode, parse_flag, parse_path, parse_user_metadata
from qbeast_core.spark.evaluation import evaluated_once
from qbeast_core.spark.source import Source
from qbeast_core.write.append import append, append_single_file
from qbeast_core.write.create import create, rebuild_with_previous_tree
from qbeast_core.write.files import DoesNotFit
from qbeast_core.write.index_options import IndexOptions
from qbeast_core.write.new_index import own_properties
from qbeast_core.write.request import WriteRequest
from qbeast_core.write.result import WriteResult

logger = logging.getLogger(__name__)
T = TypeVar("T")


@typed_errors
def write_table(
    df: DataFrame,
    *,
    table: str | None = None,
    path: str | PathLike[str] | None = None,
    mode: str = "append",
    columns_to_index: str | Sequence[str] | None = None,
    cube_size: int | str = AUTO,
    column_stats: str | Mapping[str, Any] | None = None,
    sample_key: str | Sequence[str] | None = None,
    slices: bool | None = None,
    properties: Mapping[str, Any] | None = None,
    comment: str | None = None,
    location: str | PathLike[str] | None = None,
    user_metadata: str | None = None,
    txn_app_id: str | None = None,
    txn_version: int | str | None = None,
    rechoose: bool = False,
    merge_schema: bool | None = None,
    overwrite_schema: bool | None = None,
    issue_warnings: bool = True,
) -> WriteResult:
    """Write the rows of `df` to an indexed table, in one Delta commit.

    All rows come from one evaluation of the query of `df`, even if it contains `rand()` or a limit.
    An error leaves the table unchanged, except for NotRegistered, CommitStateUnknown, and errors
    that say that Spark's JVM does not answer.

    Args:
        df: the rows to write. An append matches columns, and fields of structs at any depth, by
            name. A missing column gets its default, its generated value or null. A value that does
            not fit the table's type fails the write.
        table: the table's name, `schema.table`. A new name is registered in the catalog after the
            commit. Set exactly one of `table` and `path`.
        path: the table's directory, as a path or URI.
        mode: `"append"` adds rows and creates a missing table. `"overwrite"` replaces rows, schema
            and index and keeps the history. If the table exists, `"error"` fails and `"ignore"`
            does nothing.
        columns_to_index: 1 to 8 columns, as `["ts", "user_id:hash"]` or `"ts,user_id:hash"`. The
            kinds of index are `linear`, `hash` and `quantiles`. Required for a new table; an append
            can repeat the columns but not change them. On overwrite, None keeps the table's
            columns. `"auto"` chooses up to three columns that
            prune best, and `"auto:2"` up to two. The choice stays until a rebuild with `rechoose`,
            unless it was made from fewer than 256 rows. Such a guess is replaced by any rebuild,
            and by the first rows of an empty table.
        cube_size: rows per cube, and roughly per file, or `"auto"`. On append, a different number
            opens a new revision. `"auto"` keeps the table's size, unless that size was automatic
            too and the table now needs one at least eight times as large.
        column_stats: known statistics of indexed columns, by column. `{"min": 0, "max": 9}` makes
            the range of a linear column wider than its rows, so later appends within the range need
            no new revision. `{"quantiles": [0, 5, 100]}` sets the quantiles of a column, which are
            measured otherwise. The format's JSON text works too,
            `{"price_min": 0, "price_max": 9}`. Write dates and timestamps as text, in UTC.
        sample_key: the columns whose hash decides which samples contain a row, as `["order_id"]`,
            `"order_id,line"` or `"all"`; by default the indexed columns. Tables with the same key
            have matching samples, so you can join them. Fixed until a rebuild. An overwrite without
            this option keeps the table's key only if it does not set `columns_to_index` either.
        slices: whether to store a last column `_qbeast_slice`, with which any engine can sample:
            `_qbeast_slice >= 7` keeps 1 / 2^7 of the rows. Off by default. Fixed until a rebuild.
            An overwrite without this option keeps what the table has only if it does not set
            `columns_to_index` either. If `df` has a column of this name, it is ignored.
        properties: table properties, whose values are text, numbers or booleans. On overwrite they
            replace all properties except those of the index, which they cannot set; None keeps the
            present ones. An append ignores them.
        comment: the description of a new or replaced table. On overwrite, None keeps the present
            one and an empty string removes it.
        location: the directory of a new table named `table`, which is then external. The location
            of an existing table cannot be changed.
        user_metadata: the commit's `userMetadata` in the table's history.
        txn_app_id: a name for the program that writes, such as that of a stream. With
            `txn_version`, the table applies each write only once: if it already has this number of
            the program or a higher one, the call does nothing, and the result says `repeated`.
            By default, the session settings `spark.databricks.delta.write.txnAppId` and
            `txnVersion` apply, as in plain Delta.
        txn_version: the number of the write, from 0, which grows from write to write. Set both or
            neither.
        rechoose: whether a rebuild chooses automatic columns again.
        merge_schema: whether to add columns and fields to an existing table if only `df` has them,
            like Delta's option `mergeSchema`. They become the last ones, and are null in the
            table's rows. If type widening is on, a column also takes the wider type of `df`. By
            default, `spark.databricks.delta.schema.autoMerge.enabled` decides, as in plain Delta.
        overwrite_schema: whether an overwrite replaces the table's schema with that of `df`, like
            Delta's option `overwriteSchema`. False keeps the table's schema and matches the rows
            with it as an append does. By default, an overwrite replaces it unless
            `merge_schema` applies.
        issue_warnings: whether to issue the result's `warnings` as Python warnings too.

    Returns:
        The new version, and the rows, cubes, files and bytes that were written.

    Raises:
        InvalidOptions: an option is not valid.
        UnknownColumn: a named column does not exist.
        UnsupportedColumnType: a column cannot be indexed or be part of the sample key.
        IndexMismatch: an append asks for different columns, a different sample key or a different
            `slices` setting than the table has.
        NotAQbeastTable: an append to a Delta table without an index.
        IncompatibleTable: the table has features that an indexed write cannot maintain, or has lost
            a column that its index needs.
        SourceChanged: the rows changed while they were written.
        ConstraintViolated: a row violates a constraint of the table.
        ValueDoesNotFit: a value does not fit its type.
        NotRegistered: the rows of a new table are committed, but the catalog does not have it.
        ExecutionFailed: Spark, Delta or storage failed in another way.
        CommitVetoed: a commit hook refused the commit.
        CommitConflict: other writers changed the table during every attempt.
        CommitStateUnknown: the commit may have been written; the message says how to find out.

    Warns:
        SampleWarning: in a new or rebuilt table, so many rows share the values that decide which
            samples contain them that samples are imprecise; or the rows are already a sample by
            these values.

    Example:
        ```python
        write_table(df, table="db.events", columns_to_index=["ts", "user_id:hash"])
        ```
    """
    started = time.monotonic()
    spark = df.sparkSession
    merges = merges_schema(spark, parse_flag("merge_schema", merge_schema))
    overwrites = parse_flag("overwrite_schema", overwrite_schema)
    request = WriteRequest(
        address=address_to_write(
            spark,
            table=table,
            path=None if path is None else parse_path("path", path),
            location=None if location is None else parse_path("location", location),
        ),
        mode=WriteMode.parse(mode),
        options=IndexOptions.parse(
            columns_to_index=columns_to_index,
            cube_size=cube_size,
            column_stats=column_stats,
            sample_key=sample_key,
            slices=slices,
            rechoose=rechoose,
        ),
        properties=properties,
        comment=comment,
        user_metadata=parse_user_metadata(user_metadata),
        application=ApplicationTransaction.of(spark, txn_app_id, txn_version),
        started=started,
        overwrite_schema=not merges if overwrites is None else overwrites,
        merge_schema=merges,
    )
    begun = request.begin(spark)
    if isinstance(begun, WriteResult):
        return begun
    given = request.without_given_slices(df)
    rows = _prepare(request, begun, given)
    location = request.address.location
    reads = reads_of(rows, location) if begun.snapshot.exists else TableReads.NONE
    if reads is not TableReads.NONE and not request.appends(begun):
        check_no_copies(begun)
    attempts = _Attempts(request, begun, given.schema, reads)
    result = attempts.until_committed(lambda table: _write_in_one_pass(attempts, table, rows))
    if isinstance(result, DoesNotFit):
        if result.rows is not None and not attempts.reads_itself:
            rows = request.without_given_slices(result.rows)
        result = _write_in_two_passes(attempts, rows)
    if issue_warnings:
        # The caller is behind `typed_errors`.
        _issue(result.warnings, stacklevel=3)
    return result


def _prepare(request: WriteRequest, table: WritableTable, given: DataFrame) -> DataFrame:
    """Align the rows with the table and check the request, before anything is computed."""
    # Before the rows are evaluated, because a column's default can be the current time.
    rows = request.aligned(table, given)
    request.check(table, rows.schema)
    if not request.appends(table):
        schema = request.stored_schema(table, rows)
        check_planned(table, schema, own_properties(request, table, schema))
    return rows


class _Attempts:
    """Begins the attempts of a write; the first one reuses the transaction that was checked."""

    def __init__(
        self, request: WriteRequest, checked: WritableTable, given: StructType, reads: TableReads
    ) -> None:
        """Prepare the attempts.

        Args:
            checked: the version of the table with which the rows were aligned.
            given: the schema of the rows before that.
            reads: how the rows are read from the table that they are written to.
        """
        self.request = request
        self.checked = checked
        self._given = given
        self.reads_itself = reads is not TableReads.NONE
        # Rows of an earlier version would replace what others committed since.
        self._retries = reads is not TableReads.FIXED or request.mode is not WriteMode.OVERWRITE
        self._unused: WritableTable | None = checked

    def until_committed(self, write: Callable[[WritableTable], T]) -> T | WriteResult:
        """Begin and write, again after each conflict; begin alone if there is nothing to do."""

        def attempt() -> T | WriteResult:
            unused, self._unused = self._unused, None
            table = unused or self.request.begin(self.checked.spark, since=self.checked)
            if isinstance(table, WriteResult):
                return table
            if self.reads_itself:
                # Delta does not notice what it reads from statistics, such as `max(id)`.
                table.transaction.read_whole_table()
            return write(table)

        return until_committed(self.request.address.label, attempt, retries=self._retries)

    def aligned(self, table: WritableTable, rows: DataFrame) -> DataFrame:
        """The rows as this version of the table stores them."""
        return self.request.aligned(table, table.unfilled(rows, self._given, self.checked))

    def give_back(self, table: WritableTable) -> None:
        """Let the next attempt use this table, because no file was written."""
        self._unused = table

    def discard(self) -> None:
        """Let the next attempt begin on the newest version of the table."""
        self._unused = None


def _write_in_one_pass(
    attempts: _Attempts, table: WritableTable, rows: DataFrame
) -> WriteResult | DoesNotFit:
    """Write the rows in one pass, if there is a way that suits them."""
    request = attempts.request
    result: WriteResult | DoesNotFit = DoesNotFit()
    if request.mode is WriteMode.OVERWRITE:
        result = rebuild_with_previous_tree(request, table, attempts.aligned(table, rows))
    elif request.appends(table) and not request.replaces_guess(table):
        result = append_single_file(request, table, attempts.aligned(table, rows))
    if isinstance(result, DoesNotFit) and result.rows is None:
        attempts.give_back(table)
    return result


def _write_in_two_passes(attempts: _Attempts, rows: DataFrame) -> WriteResult:
    """Write the rows in two passes."""
    request = attempts.request
    columns = partial(request.measured_columns, attempts.checked, rows)
    store = partial(evaluated_once, read_first=columns)
    with Source(rows, store, attempts.reads_itself) as source:
        if source.is_checkpointed:
            # Others may have committed while the rows were checkpointed.
            attempts.discard()

        def write(table: WritableTable) -> WriteResult:
            with table.transaction.pinned_reads():
                aligned = attempts.aligned(table, source.rows())
                if request.appends(table):
                    return append(request, table, aligned)
                return create(request, table, aligned, request.stored_schema(table, aligned))

        return attempts.until_committed(write)


def _issue(texts: Sequence[str], stacklevel: int) -> None:
    """Issue Python warnings; `stacklevel` is that of `warnings.warn` in the calling function."""
    for text in texts:
        try:
            warnings.warn(text, SampleWarning, stacklevel=stacklevel + 1)
        except SampleWarning:
            # The rows are committed, so a filter that makes errors of warnings is too late.
            logger.warning("%s", text)
