"""Estimate avg, sum and count from samples that grow until they are precise enough.

`qbeast_core.estimation` chooses the sample sizes and computes the intervals. This module aggregates
the samples with Spark, or all rows if no affordable sample is precise enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import NumericType

from qbeast_core.delta.snapshot import known_rows
from qbeast_core.errors import InvalidOptions
from qbeast_core.estimation.answer import Estimate, GroupEstimate
from qbeast_core.estimation.growing import (
    Goal,
    Look,
    Outcome,
    Population,
    exact_outcome,
    grow,
)
from qbeast_core.jvm.expressions import FunctionCall, function_call
from qbeast_core.locate.open_table import OpenTable
from qbeast_core.model.weight import weight_of_fraction
from qbeast_core.options import parse_texts
from qbeast_core.read.logged_rows import (
    column_extremes,
    estimated_rows_below,
    max_rows_above,
    min_rows,
    null_share,
)
from qbeast_core.read.query_files import QueryFiles, share_below
from qbeast_core.read.sample import (
    row_weight,
    rows_below,
    where_filters,
)
from qbeast_core.spark import moments
from qbeast_core.spark.grouping import grouped
from qbeast_core.spark.moments import Cluster, SampledGroups, sampled_groups

MAX_GROUPS = 10_000
"""The maximum number of groups, to protect the driver."""

MAX_CONFIDENCE = 0.999999999
"""The maximum confidence; the quantiles of intervals are not precise enough for more."""

_FUNCTIONS = {"avg": "avg", "mean": "avg", "sum": "sum", "count": "count"}
_NUMBER, _ROWS = "number", "rows"


def estimate_table(
    table: OpenTable,
    expression: str,
    where: str | None,
    group_by: str | Iterable[str] | None,
    tolerance: float,
    confidence: float,
) -> Estimate:
    """Estimate an aggregate; the arguments are those of `QbeastTable.estimate`."""
    goal = Goal(
        _parse_share(tolerance, "tolerance", 1.0),
        _parse_share(confidence, "confidence", MAX_CONFIDENCE),
    )
    keys = () if group_by is None else parse_texts("group_by", group_by, "a SQL expression")
    query = _Query.of(table, expression, where, keys)
    lost = table.index.lost_column(table.label)
    outcome = exact_outcome(lost) if lost else query.grown(goal)
    groups = query.exact_groups() if outcome.exact_because else query.estimated_groups(outcome)
    return Estimate(
        expression=expression,
        where=where,
        group_by=keys,
        tolerance=goal.tolerance,
        confidence=goal.confidence,
        groups=tuple(sorted(groups, key=lambda group: _sortable(group.group))),
        exact=outcome.exact_because is not None,
        reason=outcome.exact_because or "every interval is within the tolerance",
        fraction=outcome.look.moments.fraction if outcome.look else 1.0,
        looks=query.looks,
        files=int(query.files.were_read.sum()),
        size_bytes=query.files.bytes_read,
        table_files=len(table.index.with_rows),
        table_bytes=table.snapshot.size_bytes(table.index.with_rows),
    )


class _Query:
    """One aggregate over one version of a table."""

    def __init__(
        self,
        table: OpenTable,
        call: FunctionCall,
        expression: str,
        where: str | None,
        keys: tuple[str, ...],
    ) -> None:
        self.table, self.call = table, call
        self.expression, self.where, self.keys = expression, where, keys
        self.function = _FUNCTIONS[call.name]
        self.filters = where_filters(table, where)
        self.files = QueryFiles(table, self.filters)
        self.looks = 0
        self.keys_seen: list[tuple[Any, ...]] = []

    @staticmethod
    def of(
        table: OpenTable,
        expression: str,
        where: str | None,
        keys: tuple[str, ...],
    ) -> _Query:
        """Parse the query. Raises InvalidOptions, AnalysisException or ParseException."""
        call = function_call(table.snapshot.spark, expression)
        if call is None or not _is_known(call):
            raise InvalidOptions(
                f"{expression!r} cannot be estimated; use avg(x), sum(x), count(x) or count(*) of "
                "one expression, without DISTINCT, FILTER or OVER"
            )
        query = _Query(table, call, expression, where, keys)
        kind = query.exact_rows(table.snapshot.dataframe()).schema[_NUMBER].dataType
        if not isinstance(kind, NumericType):
            raise InvalidOptions(
                f"{expression!r} is of type {kind.simpleString()}; only numbers can be estimated"
            )
        return query

    def grown(self, goal: Goal) -> Outcome:
        return grow(self._look, goal, self._population(), self.files.largest_fraction())

    def estimated_groups(self, outcome: Outcome) -> list[GroupEstimate]:
        assert outcome.look is not None and outcome.intervals is not None
        value, half = outcome.intervals.value, outcome.intervals.half_width
        rows = outcome.look.rows_of_group
        groups = []
        for i, key in enumerate(self.keys_seen):
            # As in SQL, the sum of no values is null rather than 0.
            is_null = self.function == "sum" and outcome.intervals.clusters[i] == 0
            number = float(value[i]) if np.isfinite(value[i]) and not is_null else None
            known = number is not None and bool(np.isfinite(half[i]))
            low, high = (value[i] - half[i], value[i] + half[i]) if known else (None, None)
            groups.append(
                GroupEstimate(
                    group=key,
                    value=number,
                    low=None if low is None else float(low),
                    high=None if high is None else float(high),
                    rows=int(rows[i]),
                    too_small=bool(outcome.too_small[i]),
                )
            )
        return groups

    def exact_groups(self) -> list[GroupEstimate]:
        whole = self.table.snapshot.dataframe(self.files.read_all())
        with self._reporting_groups():
            rows = self.exact_rows(whole).limit(MAX_GROUPS + 1).collect()
        self._check_groups(len(rows))
        return [
            GroupEstimate(
                tuple(row)[:-2], row[_NUMBER], row[_NUMBER], row[_NUMBER], rows=row[_ROWS]
            )
            for row in rows
        ]

    def exact_rows(self, rows: DataFrame) -> DataFrame:
        """The grouping expressions, the aggregate and the number of rows, for each group."""
        kept = rows if self.where is None else rows.where(self.where)
        keys = [F.expr(key).alias(f"key{i}") for i, key in enumerate(self.keys)]
        return grouped(
            kept, keys, F.expr(self.expression).alias(_NUMBER), F.count(F.lit(1)).alias(_ROWS)
        )

    def _look(self, fraction: float) -> Look:
        below = self.files.limit_of_same_files(weight_of_fraction(fraction))
        files = self.files.read_below(below)
        self.looks += 1
        kept = F.lit(True) if self.where is None else F.expr(self.where)
        with self._reporting_groups():
            found: SampledGroups = sampled_groups(
                rows_below(self.table, files, below),
                fraction=share_below(below),
                weight=row_weight(self.table),
                kept=F.coalesce(kept, F.lit(False)),
                argument=self._number,
                keys=[F.expr(key) for key in self.keys],
                cluster=self._cluster,
                max_groups=MAX_GROUPS,
            )
        self._check_groups(len(found.keys))
        self.keys_seen = found.keys
        return Look(
            found.moments,
            found.rows,
            found.squared_rows,
            found.rows_of_group,
            estimated_rows_below(self.table, below, ~self.files.candidates),
            max_rows_above(self.table, below, self.filters, self.files.candidates),
        )

    @property
    def _number(self) -> Column | None:
        argument = self.call.argument
        if self.function == "count" and argument is not None:
            return F.when(argument.isNotNull(), F.lit(1.0))
        return argument

    @property
    def _cluster(self) -> Cluster:
        if self.function == "avg":
            return Cluster(moments.SUM, moments.VALUES)
        # Without groups, a total of a sample that leaves no rows out is a ratio to the rows.
        return Cluster(moments.SUM, None if self._total_rows is None else moments.ROWS)

    @property
    def _total_rows(self) -> int | None:
        """The number of rows by which to scale a total.

        It is unknown for groups, and if a filter prunes files with rows: such files can hold only
        rows of high weights, whose neighbours of low weights are in files that are read.
        """
        pruned = np.flatnonzero(~self.files.candidates & ~self.table.index.copies).tolist()
        if self.keys or any(self.table.snapshot.files[i].rows != 0 for i in pruned):
            return None
        return self._all_rows

    @property
    def _all_rows(self) -> int | None:
        """The number of rows of the table; None if the log does not have it."""
        return known_rows(self.table.snapshot.files[i] for i in self.table.index.with_rows.tolist())

    def _population(self) -> Population:
        scale: float | None = 1.0
        if self.function != "avg":
            scale = None if self._total_rows is None else float(self._total_rows)
        return Population(
            rows=self._all_rows,
            estimated_rows=self.table.snapshot.row_count_in_log(
                np.flatnonzero(self.files.candidates)
            ),
            scale=scale,
            extremes=self._extremes,
            min_rows=min_rows(self.table, self.filters, self.files.candidates),
            unsampled_share=self._unsampled_share,
            is_total=self.function != "avg",
        )

    @property
    def _unsampled_share(self) -> float:
        """The share of rows with the weight of null, which no sample has.

        With several columns, all of them must be null, and the log does not count such rows.
        """
        names = self.table.index.weight_columns(self.table.label)
        if len(names) != 1 or self._is_count_of_all:
            return 0.0
        return null_share(self.table, self.files.candidates, names[0])

    @property
    def _is_count_of_all(self) -> bool:
        return self.function == "count" and self.call.argument is None and self.where is None

    @property
    def _extremes(self) -> tuple[float, float] | None:
        """The smallest and largest number that a row adds; None if unknown."""
        if self.function == "count":
            counts_all = self._is_count_of_all and self._total_rows is not None
            return (1.0, 1.0) if counts_all else None
        if self.call.column is None:
            return None
        found = column_extremes(self.table, self.files.candidates, self.call.column)
        if found is None or self.function == "avg":
            return found
        # A row that has no value, or that the filter drops, adds nothing to a sum.
        return min(found[0], 0.0), max(found[1], 0.0)

    @contextmanager
    def _reporting_groups(self) -> Iterator[None]:
        """Raise InvalidOptions if Python lacks the value of a group."""
        try:
            yield
        except (ValueError, OverflowError) as problem:
            if not self.keys:
                raise
            raise InvalidOptions(
                f"group_by {', '.join(self.keys)} has a value that Python cannot hold ({problem}); "
                "group by its text, as in cast(day as string)"
            ) from problem

    def _check_groups(self, groups: int) -> None:
        if groups > MAX_GROUPS:
            raise InvalidOptions(
                f"group_by {', '.join(self.keys)} has more than {MAX_GROUPS:,} groups; group by "
                "a coarser expression, or filter the rows with where"
            )


def _parse_share(value: float, name: str, highest: float) -> float:
    """A number above 0 and up to the highest. Raises InvalidOptions."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and 0 < value <= highest:
        return float(value)
    raise InvalidOptions(
        f"{name} must be a number above 0 and at most {highest:.10g}, got {value!r}; "
        "for an exact answer, query dataframe()"
    )


def _is_known(call: FunctionCall) -> bool:
    return call.name in _FUNCTIONS and (call.argument is not None or call.name == "count")


def _sortable(group: tuple[Any, ...]) -> list[tuple[bool, Any]]:
    numbers = (int, float, Decimal)
    return [(each is not None, each if isinstance(each, numbers) else str(each)) for each in group]
