"""Answers TABLESAMPLE through the index: samples become views of only the files they need."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dbt.adapters.qbeast.sampling.spans import (
    REASONS,
    Leftover,
    Sample,
    find_samples,
    replace_samples,
)
from dbt.adapters.qbeast.sampling.tables import is_path, open_table, without_version
from dbt_common.exceptions import DbtRuntimeError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from qbeast_core import (
    InvalidOptions,
    NotAQbeastTable,
    QbeastError,
    QbeastTable,
    Sampled,
    filters_of_statement,
)


@dataclass(frozen=True)
class Rewritten:
    """What to run instead of a statement."""

    sql: str
    views: tuple[str, ...] = ()
    """Temporary views that `sql` reads. Spark needs them while it analyses `sql`, and as long as a
    temporary view that `sql` creates is in use: drop them when the node ends.
    """
    warnings: tuple[str, ...] = ()
    """One for each sample that is left to Spark, with the reason."""


def rewrite_tablesample(spark: SparkSession, sql: str) -> Rewritten:
    """`sql` with every `table TABLESAMPLE (p PERCENT)` of an indexed table answered by its index.

    The rows are those of `QbeastTable.sample(p / 100)`. A temporary view over only the files that
    the fraction and the statement's filters on that table need replaces the sample. In a statement
    whose text is stored (a view), a subquery on the rows' weight replaces it. Samples of a table
    without an index, and forms that the index cannot answer, are left to Spark with a warning.

    Spark has analysed the text that is returned. If Spark rejects the edited text but accepts the
    original, the original is returned with a warning. A statement that is wrong either way is
    returned unchanged, so that Spark's error shows the user's own text.

    Raises DbtRuntimeError if the index cannot answer a sample that the run takes by itself: what it
    builds is marked as built from that sample, and Spark's own sample has other rows each time.

    Nothing of `sql` is executed. If this raises, no view is left behind.
    """
    samples = find_samples(spark, sql)
    warnings = [_left_to_spark(left, left.reason) for left in samples.leftovers]
    indexed, unindexed = _with_tables(spark, samples.rewritable)
    warnings += unindexed
    if not indexed:
        return Rewritten(sql, warnings=_once(warnings))
    if samples.is_stored_text:
        rewritten = _with_conditions(spark, samples.sql, indexed)
    else:
        rewritten = _with_views(spark, samples.sql, indexed)
    return replace(rewritten, warnings=_once([*warnings, *rewritten.warnings]))


def drop_views(spark: SparkSession, views: Iterable[str]) -> None:
    """Drops the views of a `Rewritten`; a view that is already gone is not an error."""
    for view in views:
        spark.catalog.dropTempView(view)


@dataclass(frozen=True)
class _IndexedSample:
    sample: Sample
    table: QbeastTable


def _with_tables(
    spark: SparkSession, samples: Sequence[Sample]
) -> tuple[list[_IndexedSample], list[str]]:
    """The samples of indexed tables, and a warning for each of the others.

    A table that is sampled in several places is read at one version.
    """
    tables: dict[str, QbeastTable | str] = {}
    for sample in samples:
        if sample.name not in tables:
            tables[sample.name] = _table_or_reason(spark, sample)
    indexed: list[_IndexedSample] = []
    warnings: list[str] = []
    for sample in samples:
        table = tables[sample.name]
        if isinstance(table, str):
            warnings.append(_left_to_spark(sample, table))
        else:
            indexed.append(_IndexedSample(sample, table))
    return indexed, warnings


def _table_or_reason(spark: SparkSession, sample: Sample) -> QbeastTable | str:
    try:
        return open_table(spark, sample.name)
    except (NotAQbeastTable, InvalidOptions) as error:
        if is_path(sample.parts):
            return _reason_of_path(spark, sample.parts[1], error)
        return "it is not a table with a Qbeast index, so all of it is read"
    except (QbeastError, AnalysisException) as error:
        return _first_line(error)


def _reason_of_path(spark: SparkSession, path: str, error: QbeastError) -> str:
    """Why the index cannot answer a sample by a path, which can end with a version (`@v3`)."""
    current = without_version(path)
    if current != path:
        try:
            QbeastTable.for_path(spark, current)
        except QbeastError:
            return _first_line(error)
        return REASONS[Sampled.OLD_VERSION]
    return _first_line(error)


def _with_conditions(spark: SparkSession, sql: str, indexed: Sequence[_IndexedSample]) -> Rewritten:
    """For a statement that outlives the session: samples as conditions that any Spark can read."""
    relations: list[tuple[Sample, str]] = []
    warnings: list[str] = []
    for item in indexed:
        try:
            condition = item.table.sample_condition(item.sample.fraction)
        except QbeastError as error:
            warnings.append(_left_to_spark(item.sample, _first_line(error)))
        else:
            subquery = f"(select * from {item.sample.name} where {condition})"
            relations.append((item.sample, subquery))
    edited = replace_samples(sql, relations)
    try:
        filters_of_statement(spark, edited, {})
    except AnalysisException as error:
        return _original(spark, sql, indexed, error)
    return Rewritten(edited, warnings=tuple(warnings))


def _with_views(spark: SparkSession, sql: str, indexed: Sequence[_IndexedSample]) -> Rewritten:
    """For a statement of this session: views of the samples, over no more files than it needs.

    The filters on a table are known only after Spark has optimized the statement, for which the
    views must exist. So each view is first created over all files of the fraction, and then
    replaced by one over fewer files.
    """
    views = [f"qbeast_sample_{uuid.uuid4().hex}" for _ in indexed]
    edited = replace_samples(
        sql, [(item.sample, f"`{view}`") for item, view in zip(indexed, views, strict=True)]
    )
    frames: dict[str, DataFrame] = {}
    try:
        for item, view in zip(indexed, views, strict=True):
            frames[view] = item.table.sample(item.sample.fraction, with_slices=True)
            frames[view].createOrReplaceTempView(view)
        pushed = filters_of_statement(spark, edited, frames)
        for item, view in zip(indexed, views, strict=True):
            if view in pushed:
                fraction = item.sample.fraction
                fewer = item.table.sample(fraction, pushed=pushed[view], with_slices=True)
                fewer.createOrReplaceTempView(view)
    except AnalysisException as error:
        drop_views(spark, frames)
        return _original(spark, sql, indexed, error)
    except BaseException:
        drop_views(spark, frames)
        raise
    return Rewritten(edited, tuple(views))


def _original(
    spark: SparkSession, sql: str, indexed: Sequence[_IndexedSample], error: AnalysisException
) -> Rewritten:
    """The original statement, after Spark rejected the edited text with `error`."""
    try:
        filters_of_statement(spark, sql, {})
    except AnalysisException as own_error:
        # The statement itself is wrong: running the original reports it.
        if own_error.getCondition() != "UNBOUND_SQL_PARAMETER":
            return Rewritten(sql)
        reason = (
            "the statement has `?` placeholders, which have no values yet when it is analysed; "
            "write the values into the SQL text"
        )
    else:
        reason = f"Spark rejects the rewritten statement ({_first_line(error)})"
    warnings = _once(_left_to_spark(item.sample, reason) for item in indexed)
    return Rewritten(sql, warnings=warnings)


def _left_to_spark(sample: Sample | Leftover, reason: str) -> str:
    """The warning about a sample that Spark takes; raises if the run promises a fixed one."""
    if sample.is_run_sample:
        raise DbtRuntimeError(
            f"the index cannot answer the sample of {sample.label} that this run takes: {reason}. "
            f"Change the statement, set `sample: false` on {sample.label} to read it whole, or run "
            "with --vars '{qbeast_sample: 1}' to read all rows"
        )
    return f"TABLESAMPLE of {sample.label} is left to Spark: {reason}"


def _first_line(error: Exception) -> str:
    """The first line with text; a message about a syntax error begins with an empty one."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _once(warnings: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(warnings))
