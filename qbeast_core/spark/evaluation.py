"""Ensures that a query behaves as if evaluated once, however often its rows are read.

Reading a query twice is correct only if both readings give the same rows. Spark's analyzed plan
shows this (in the optimized plan, the clock is already replaced by a constant). If it does not, the
query is checkpointed first. If the first reading needs some columns only, it is enough that these
have the same values in the second reading, from which all rows are written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from qbeast_core import phases
from qbeast_core.jvm.catalyst import (
    PlanSummary,
    analyzed_plan,
    pruned_plan,
    release_checkpoint,
    with_fresh_plan,
)
from qbeast_core.jvm.settings import setting
from qbeast_core.spark.columns import column

logger = logging.getLogger(__name__)

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
_AGGREGATES = _EXPRESSIONS + "aggregate."
_RELATION = "org.apache.spark.sql.execution.datasources.LogicalRelation"

_REPEATABLE_NODES = frozenset(
    (
        "Aggregate",
        "CTERelationDef",
        "CTERelationRef",
        "Distinct",
        "Except",
        "Expand",
        "Filter",
        "Generate",
        "Intersect",
        "Join",
        "LocalRelation",
        "OneRowRelation",
        "Project",
        "Range",
        "Repartition",
        "RepartitionByExpression",
        "ResolvedHint",
        "Sort",
        "SubqueryAlias",
        "Union",
        "View",
        "WithCTE",
    )
)
"""Plan nodes whose rows depend only on their input. Limits, samples and windows (because of ties)
are excluded, and so is everything that runs user code."""

_UNREPEATABLE_EXPRESSIONS = frozenset(
    (
        # A random vector, which the expression does not report as not deterministic.
        "AesEncrypt",
        # The clock, the place from which a row was read, and the user.
        "CurrentDate",
        "CurrentTime",
        "CurrentTimestamp",
        "CurrentTimestampLike",
        "InputFileBlockLength",
        "InputFileBlockStart",
        "InputFileName",
        "LocalTimestamp",
        "Now",
    )
)
"""Expressions whose values depend on more than their input."""

_REPEATABLE_AGGREGATES = frozenset(
    (
        "BitAndAgg",
        "BitOrAgg",
        "BitXorAgg",
        "BoolAnd",
        "BoolOr",
        "Count",
        "CountIf",
        "HyperLogLogPlusPlus",
        "Max",
        "Median",
        "Min",
        "Percentile",
        "PercentileCont",
        "PercentileDisc",
        "PivotFirst",
    )
)
"""Aggregates that do not depend on the order of rows. Others do, because of ties, in the last bits
of a sum, or in what a sketch keeps."""

_SCANNING = frozenset(
    (
        _RELATION,
        *(_LOGICAL + node for node in ("Filter", "Project")),
        *(
            _EXPRESSIONS + expression
            for expression in (
                "Alias",
                "And",
                "AttributeReference",
                "Cast",
                "CheckOverflowInTableInsert",
                "EqualTo",
                "GreaterThan",
                "GreaterThanOrEqual",
                "In",
                "IsNotNull",
                "IsNull",
                "LessThan",
                "LessThanOrEqual",
                "Literal",
                "Not",
                "Or",
            )
        ),
    )
)
"""The nodes and expressions of queries that cost no more than reading their source."""

_DELTA_SOURCE = "org.apache.spark.sql.delta.files.TahoeLogFileIndex"
_PINS_DELTA = "spark.databricks.delta.stats.skipping"
"""The setting without which Delta reads the newest version whenever it plans, even inside
`Transaction.pinned_reads`."""
_PINNED_SOURCES = frozenset(
    (
        # Delta's reads stay at one version inside `Transaction.pinned_reads`.
        _DELTA_SOURCE,
        "org.apache.spark.sql.delta.files.TahoeBatchFileIndex",
        # Plain files stay at the listing from when the DataFrame was created.
        "org.apache.spark.sql.execution.datasources.InMemoryFileIndex",
        _LOGICAL + "LocalRelation",
        _LOGICAL + "OneRowRelation",
        _LOGICAL + "Range",
        _LOGICAL + "CTERelationRef",
    )
)


def is_repeatable(df: DataFrame, repeatable_part: DataFrame | None = None) -> bool:
    """Whether two readings of the DataFrame certainly give the same rows.

    `repeatable_part` is a part of it for which this is already known.
    """
    plan = analyzed_plan(df)
    part = analyzed_plan(repeatable_part) if repeatable_part else None
    return plan.is_deterministic and _is_understood(df.sparkSession, plan, part)


def is_repeatable_in(df: DataFrame, columns: Sequence[str]) -> bool:
    """Whether two readings certainly give the same values in these columns, row by row.

    Always false for aggregated rows: `evaluated_once` asks only if the query as a whole is not
    repeatable, and storing aggregated rows costs less than computing them twice.
    """
    plan = pruned_plan(df.select(*map(column, columns)))
    aggregates = _LOGICAL + "Aggregate" in plan.classes
    return plan.is_deterministic and not aggregates and _is_understood(df.sparkSession, plan, None)


def is_scan(df: DataFrame) -> bool:
    """Whether the rows are read from columnar files, and at most filtered, cast and renamed."""
    plan = pruned_plan(df)
    by_columns = all(name.endswith("ParquetFileFormat") for name in plan.file_formats)
    return by_columns and plan.classes <= _SCANNING and _is_understood(df.sparkSession, plan, None)


@contextmanager
def evaluated_once(
    df: DataFrame,
    repeatable_part: DataFrame | None = None,
    read_first: Callable[[], Sequence[str]] = tuple,
) -> Iterator[DataFrame]:
    """The rows of one evaluation of `df`, which can be read any number of times inside the block.

    Args:
        repeatable_part: a part of `df` that comes from another such block.
        read_first: the columns that all readings except the last one need; empty for all columns.
    """
    if is_repeatable(df, repeatable_part) or (
        (columns := read_first()) and is_repeatable_in(df, columns)
    ):
        yield df
        return
    with checkpointed(df) as stored:
        yield stored


@contextmanager
def checkpointed(df: DataFrame) -> Iterator[DataFrame]:
    """The rows of `df`, computed once and kept on disk inside the block.

    This uses a checkpoint, not a cache: Spark recomputes lost blocks of a cache, which could give
    other rows, whereas a lost checkpoint fails the write.
    """
    phases.enter(phases.STORING)
    stored = with_fresh_plan(df).localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY)
    try:
        yield stored
    finally:
        try:
            release_checkpoint(stored)
        except Exception as problem:
            # The rows have already been used, and garbage collection frees them too.
            logger.debug("a checkpoint was not released: %s", problem)


def _is_understood(spark: SparkSession, plan: PlanSummary, part: PlanSummary | None) -> bool:
    """Whether everything in the plan, besides its repeatable part, is known to be repeatable."""
    sources = plan.sources - (part.sources if part else frozenset())
    if not sources <= _PINNED_SOURCES or plan.hidden_relations or plan.casts_clock:
        return False
    if _DELTA_SOURCE in sources and not setting(spark, _PINS_DELTA):
        return False
    aggregates = plan.aggregates - (part.aggregates if part else frozenset())
    if not {name.removeprefix(_AGGREGATES) for name in aggregates} <= _REPEATABLE_AGGREGATES:
        return False
    for name in plan.classes - (part.classes if part else frozenset()):
        package, _, simple = name.rpartition(".")
        if package + "." == _LOGICAL:
            if simple not in _REPEATABLE_NODES:
                return False
        elif name != _RELATION and not _is_repeatable_expression(package, simple):
            return False
    return True


def _is_repeatable_expression(package: str, simple: str) -> bool:
    known = (package + ".").startswith(_EXPRESSIONS)
    user_code = simple.endswith(("UDF", "UDAF", "UDTF", "Aggregator", "PythonFuncExpression"))
    return known and not user_code and simple not in _UNREPEATABLE_EXPRESSIONS
