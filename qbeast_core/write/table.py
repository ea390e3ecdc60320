"""Write a DataFrame into an indexed table: one evaluation of its rows, one commit.

Rows are measured before they are written, but where they can be measured in the files.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from pyspark.sql import DataFrame

from qbeast_core.errors import SampleWarning
from qbeast_core.locate.address import address_to_write
from qbeast_core.locate.compatibility import check_planned
from qbeast_core.locate.retry import until_committed
from qbeast_core.locate.table import WritableTable
from qbeast_core.options import AUTO, WriteMode
from qbeast_core.spark.evaluation import evaluated_once
from qbeast_core.write.append import append, append_single_file
from qbeast_core.write.create import create, rebuild_by_tree
from qbeast_core.write.files import DoesNotFit
from qbeast_core.write.index_options import IndexOptions
from qbeast_core.write.new_index import own_properties
from qbeast_core.write.request import WriteRequest, WriteResult


def write_table(
    df: DataFrame,
    *,
    table: str | None = None,
    path: str | None = None,
    mode: str = "append",
    columns_to_index: str | Sequence[str] | None = None,
    cube_size: int | str = AUTO,
    column_stats: str | Mapping[str, Any] | None = None,
    sample_key: str | Sequence[str] | None = None,
    slices: bool | None = None,
    properties: Mapping[str, str] | None = None,
    comment: str | None = None,
    location: str | None = None,
    user_metadata: str | None = None,
    rechoose: bool = False,
    overwrite_schema: bool = True,
    issue_warnings: bool = True,
) -> WriteResult:
    """Write the rows of `df`, indexed, in a single Delta commit.

    Args:
        df: the rows. Its query counts as evaluated once, also if it has `rand()` or a limit. An
            append matches columns, and fields of structs at any depth, by name. A missing column
            gets its default, its generated value or null, and a value that does not fit the
            table's type fails the write.
        table, path: where to; exactly one of them. A name that the catalog does not know yet is
            registered after the commit.
        mode: `append` (creates a missing table), `overwrite` (replaces rows, schema and index, and
            keeps the history), `error` or `ignore` if the table exists.
        columns_to_index: as in `["ts", "user_id:hash"]` or `"ts,user_id:hash"`, at most 8. Needed
            for a new table; an append may repeat them and cannot change them. Kinds are `linear`,
            `hash` and `quantiles`. `"auto"` chooses the columns that prune best, at most three, or
            two with `"auto:2"`; they stay until a rebuild with `rechoose`. A choice from fewer than
            256 rows is a guess: any rebuild chooses again, and so do the first rows of a table that
            has none.
        cube_size: rows per cube and about rows per file, or `auto`. On append, a number other than
            the table's opens a new revision, and `auto` keeps the table's; only where that was
            chosen by `auto` too and the table has outgrown it eight times, one is opened.
        column_stats: what is known of indexed columns beforehand, by column: `{"min": 0, "max": 9}`
            lets a linear one start with a wider range than its rows have (appends within it need no
            new revision), `{"quantiles": [0, 5, 100]}` gives those of a column indexed by
            quantiles, which are measured otherwise. Also as the format's JSON text,
            `{"price_min": 0, "price_max": 9}`. Dates and timestamps are texts, in UTC.
        sample_key: the columns whose hash decides in which samples a row is, as `["order_id"]` or
            `"order_id,line"`, or `all`; without it, the indexed columns. Tables with the same key
            are sampled alike, so that their samples join. It is fixed until a rebuild.
        slices: whether the table gets a last column `_qbeast_slice`, by which any engine samples:
            `_qbeast_slice >= 7` keeps 1 / 2^7 of the rows. Not without being asked for. It is fixed
            until a rebuild. A column of that name in the rows of a table that has it is left out.
        properties: table properties. On overwrite they replace all properties but the index's own;
            None keeps those that the table has. An append ignores them.
        comment: the table's description, for a new or replaced table. On overwrite None keeps the
            one that the table has, and an empty text removes it.
        location: where a new table of that name is to lie; it is then external.
        user_metadata: text for the commit's `userMetadata` in the table's history.
        rechoose: whether a rebuild chooses automatic columns anew.
        overwrite_schema: whether an overwrite gives the table the schema of `df`, as Delta's option
            `overwriteSchema` does. False keeps the table's schema, and aligns the rows as an append
            does.
        issue_warnings: whether Python's `warnings` tell what the result's `warnings` say too.

    Where rows share their weights in large groups, so that samples say little, a new or rebuilt
    table issues a `SampleWarning`.

    Raises:
        InvalidOptions: an option is wrong (also UnknownColumn, UnsupportedColumnType).
        IndexMismatch: an append asks for other columns, another sample key or other slices than
            the table has.
        NotAQbeastTable: an append to a Delta table without an index.
        IncompatibleTable: the table has features that a write would break, or has lost a column
            that its index needs.
        SourceChanged: the rows changed while they were written.
        CommitConflict: other writers came first on every attempt.
        CommitStateUnknown: the commit may have been written; the message says how to find out.
        In every other case the table is as it was.
    """
    started = time.monotonic()
    spark = df.sparkSession
    request = WriteRequest(
        address=address_to_write(spark, table=table, path=path, location=location),
        mode=WriteMode.parse(mode),
        options=IndexOptions.parse(
            columns_to_index, cube_size, column_stats, sample_key, slices, rechoose
        ),
        properties=properties,
        comment=comment,
        user_metadata=user_metadata,
        started=started,
        overwrite_schema=overwrite_schema,
    )
    checked = request.begin(spark)
    # Before the rows are evaluated: a column's default may be the present time.
    given = request.aligned(checked, request.own_rows(df))
    skipped = request.check(checked, given.schema)
    if skipped is not None:
        return skipped
    if not request.appends(checked):
        schema = request.stored_schema(checked, given)
        check_planned(checked, schema, own_properties(request, checked, schema))
    # The log is not read again for the first attempt.
    tables = chain([checked], iter(lambda: request.begin(spark), None))
    result = until_committed(
        request.address.label, lambda: _in_one_pass(request, next(tables), given)
    )
    if isinstance(result, DoesNotFit):
        if result.rows is not None:
            given = request.own_rows(result.rows)
        with evaluated_once(given, read_first=lambda: request.measured_columns(given)) as rows:
            result = until_committed(
                request.address.label, lambda: _measured(request, request.begin(spark), rows)
            )
    for warning in result.warnings if issue_warnings else ():
        warnings.warn(warning, SampleWarning, stacklevel=2)
    return result


def _in_one_pass(
    request: WriteRequest, table: WritableTable, rows: DataFrame
) -> WriteResult | DoesNotFit:
    """Write the rows by reading them once, where they fit a way that does."""
    if request.mode is WriteMode.OVERWRITE:
        return rebuild_by_tree(request, table, request.aligned(table, rows))
    if request.appends(table) and not request.decides(table):
        return append_single_file(request, table, rows)
    return DoesNotFit()


def _measured(request: WriteRequest, table: WritableTable, rows: DataFrame) -> WriteResult:
    """Write the rows by reading them twice."""
    with table.transaction.pinned_reads():
        if request.appends(table):
            return append(request, table, rows)
        rows = request.aligned(table, rows)
        return create(request, table, rows, request.stored_schema(table, rows))
