"""The filters that a query applies to a table, taken from Spark's optimized plan.

Spark parses, resolves and pushes the filters down. This module finds them in the plan and converts
them to predicates of `tree.query`.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from qbeast_core.jvm.clock import has_clock_literal, uses_clock
from qbeast_core.jvm.gateway import Jvm
from qbeast_core.jvm.settings import session_with
from qbeast_core.model.datatypes import EPOCH
from qbeast_core.tree.query import And, Anything, Comparison, In, IsNull, Or, Predicate

# Commands that read the result of a query, with the name of the query's field in each.
_QUERY_OF_COMMAND = {
    "CreateTableAsSelect": "query",
    "CreateViewCommand": "plan",
    "ExplainCommand": "logicalPlan",
    "InsertIntoStatement": "query",
    "ReplaceTableAsSelect": "query",
}
# Commands whose query runs later, when session variables and settings may have other values.
_RUN_LATER = frozenset({"CacheTableAsSelect", "CreateViewCommand"})
# A statement without any of these reads every row, so its plan need not be optimized.
_FILTERING = re.compile(r"\b(where|having|qualify|join)\b", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class PushedFilters:
    """The filters of a query on one table. Functions return None if the query may need all rows."""

    alternatives: tuple[tuple[Any, ...], ...]
    """For each place where the query reads the table, the Catalyst conditions joined by AND."""

    @property
    def text(self) -> str:
        """The filters as Spark prints them, for messages."""
        return " OR ".join(
            "(" + " AND ".join(str(condition.sql()) for condition in place) + ")"
            for place in self.alternatives
        )

    @cached_property
    def predicate(self) -> Predicate:
        """The filters as a predicate for the index."""
        return Or(
            tuple(
                And(tuple(_predicate(condition) for condition in place))
                for place in self.alternatives
            )
        )


def filters_on(rows: DataFrame, table: DataFrame) -> PushedFilters | None:
    """The filters on `table` in `rows`, a DataFrame that is derived from it."""
    execution = rows._jdf.queryExecution()
    return _pushed(Jvm(rows.sparkSession), execution, {"": table}).get("")


def filters_of_statement(
    spark: SparkSession, sql: str, tables: Mapping[str, DataFrame]
) -> dict[str, PushedFilters]:
    """The filters of a SQL statement on some of the tables that it reads; nothing is executed.

    Args:
        tables: the DataFrames behind the temporary views in the statement, by any key.

    Returns:
        The filters by the same key. A key is missing if the statement may need every row, as a
        temporary view may when it is read.

    Raises:
        AnalysisException, ParseException: the statement is not valid.
    """
    jvm = Jvm(spark)
    state = jvm.session.sessionState()
    parsed = state.sqlParser().parsePlan(sql)
    commands = [parsed.getClass().getSimpleName()]
    while query := _QUERY_OF_COMMAND.get(commands[-1]):
        parsed = getattr(parsed, query)()
        commands.append(parsed.getClass().getSimpleName())
    runs_now = _RUN_LATER.isdisjoint(commands)
    # SKIP, because planning a command would otherwise run it.
    skip = jvm.singleton("org.apache.spark.sql.execution.CommandExecutionMode").SKIP()
    execution = state.executePlan(parsed, skip)
    if not (runs_now and tables and _FILTERING.search(sql)) or has_clock_literal(sql):
        execution.analyzed()
        return {}
    # With data skipping, Delta would run a job per table during planning to find its files.
    with session_with(spark, {"spark.databricks.delta.stats.skipping": "false"}) as copy:
        planned = copy.sessionState().executePlan(execution.analyzed(), skip)
        return _pushed(jvm, planned, tables)


def _pushed(jvm: Jvm, execution: Any, tables: Mapping[str, DataFrame]) -> dict[str, PushedFilters]:
    if uses_clock(jvm, execution.analyzed()):
        # The optimizer replaces the clock by the present time, but the statement runs later, and a
        # temporary view of it may be read at any time.
        return {}
    keys: dict[int, tuple[str, set[str]]] = {}
    for key, table in tables.items():
        for relation, own in _relations(jvm, table._jdf.queryExecution().analyzed()):
            keys[_identity(jvm, relation)] = key, {str(condition.sql()) for condition in own}
    places: dict[str, list[tuple[Any, ...]]] = {}
    for relation, conditions in _relations(jvm, execution.optimizedPlan()):
        if found := keys.get(_identity(jvm, relation)):
            # The table's own condition (a sample's, on the weight) excludes no further files.
            key, own_texts = found
            asked = [each for each in conditions if str(each.sql()) not in own_texts]
            usable = [each for each in asked if _usable(each, relation)]
            places.setdefault(key, []).append(_in_the_tables_case(jvm, usable, relation))
    return {
        key: PushedFilters(tuple(alternatives))
        for key, alternatives in places.items()
        if all(alternatives)
    }


def _relations(jvm: Jvm, plan: Any) -> Iterator[tuple[Any, list[Any]]]:
    """Yields relations that read files, also in subqueries, with the conditions above them."""

    def walk(node: Any, above: list[Any]) -> Iterator[tuple[Any, list[Any]]]:
        name = node.getClass().getSimpleName()
        if name == "LogicalRelation":
            if node.relation().getClass().getSimpleName() == "HadoopFsRelation":
                yield node, above
            return
        conditions = [*above, *_joined(node.condition(), "And")] if name == "Filter" else []
        for child in jvm.elements(node.children()):
            yield from walk(child, conditions)
        for inner in jvm.elements(node.innerChildren()):
            yield from walk(inner, [])

    yield from walk(plan, [])


def _identity(jvm: Jvm, relation: Any) -> int:
    # Each use of a CTE gets new expression ids, but the list of files remains one object.
    return int(jvm.jvm.java.lang.System.identityHashCode(relation.relation().location()))


def _in_the_tables_case(jvm: Jvm, conditions: list[Any], relation: Any) -> tuple[Any, ...]:
    """The conditions with columns spelled as in the table; Spark keeps the query's spelling."""
    strategy = jvm.singleton("org.apache.spark.sql.execution.datasources.DataSourceStrategy")
    spelled = strategy.normalizeExprs(jvm.seq(conditions), relation.output())
    return tuple(jvm.elements(spelled))


def _usable(condition: Any, relation: Any) -> bool:
    """Whether a condition can prune files: deterministic, and on columns of the relation only."""
    if _leaves_every_file(condition) or not condition.deterministic() or not condition.resolved():
        return False
    references = condition.references()
    if not references.size() or not references.subsetOf(relation.outputSet()):
        return False
    text = str(condition.toJSON())
    return not any(hint in text for hint in ("Subquery", "Exists", "OuterReference", "UDF"))


def _leaves_every_file(condition: Any) -> bool:
    """Whether neither the index nor Delta's statistics can prune files by a condition.

    Data tests consist of such conditions. Spark adds `is not null` to comparisons and joins; it
    prunes only files with nothing but nulls, which does not justify a job.
    """
    name = condition.getClass().getSimpleName()
    if name == "Not":
        return condition.child().getClass().getSimpleName() in ("In", "InSet")
    return bool(name == "IsNotNull")


def _joined(condition: Any, connective: str) -> list[Any]:
    """The conditions that `And`s, or `Or`s, join into this one, in order."""
    parts, left = [], [condition]
    while left:  # Spark can nest a thousand of them, which is too deep for recursion
        present = left.pop()
        if present.getClass().getSimpleName() == connective:
            left += [present.right(), present.left()]
        else:
            parts.append(present)
    return parts


_COMPARISONS = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_FLIPPED = {"<": ">", "<=": ">=", "=": "=", ">=": "<=", ">": "<"}

_DEEPEST = 50
"""The depth of alternating `And`s and `Or`s at which a condition is no longer evaluated."""


class _Unknown(Exception):
    """A part of a condition that the index cannot evaluate."""


def _predicate(condition: Any, depth: int = 0) -> Predicate:
    name = condition.getClass().getSimpleName()
    try:
        if name in ("And", "Or"):
            if depth == _DEEPEST:
                return Anything()
            parts = tuple(_predicate(part, depth + 1) for part in _joined(condition, name))
            return And(parts) if name == "And" else Or(parts)
        if name == "IsNull":
            return IsNull(_column(condition.child()))
        if name == "In":
            listed = condition.list()
            values = (_value(listed.apply(i)) for i in range(listed.size()))
            return In(_column(condition.value()), tuple(values))
        if name == "InSet":
            return _in_set(condition)
        if name in _COMPARISONS:
            return _comparison(_COMPARISONS[name], condition.left(), condition.right())
    except _Unknown:
        pass
    return Anything()


def _comparison(op: Any, left: Any, right: Any) -> Predicate:
    if left.getClass().getSimpleName() == "Literal":
        left, right, op = right, left, _FLIPPED[op]
    column, value = _column(left), _value(right)
    if value is None:  # only `<=> null` can be true, and only for nulls
        return IsNull(column) if op == "=" else Anything()
    return Comparison(column, op, value)


def _in_set(condition: Any) -> Predicate:
    column, data_type = _column(condition.child()), _type(condition.child())
    members = getattr(condition.hset(), "$minus")(None)
    # All in one call, because a list may have tens of thousands of values.
    texts = str(members.mkString("\0")).split("\0")
    if len(texts) != members.size():
        raise _Unknown  # a text with this character, or no value but null
    return In(column, tuple(_convert(text, data_type) for text in texts))


def _column(expression: Any) -> str:
    if expression.getClass().getSimpleName() != "AttributeReference":
        raise _Unknown
    return str(expression.name())


def _value(expression: Any) -> Any:
    if expression.getClass().getSimpleName() != "Literal":
        raise _Unknown
    return _convert(expression.value(), _type(expression))


def _type(expression: Any) -> str:
    return str(expression.dataType().simpleString()).partition("(")[0]


def _convert(value: Any, data_type: str) -> Any:
    """Converts a value from Catalyst's internal form to Python."""
    if value is None:
        return None
    convert = _CONVERSIONS.get(data_type)
    if convert is None:
        raise _Unknown
    try:
        return convert(value)
    except (OverflowError, ValueError):
        raise _Unknown from None


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "tinyint": int,
    "smallint": int,
    "int": int,
    "bigint": int,
    # py4j sends the shortest text of the 32-bit number, which is another number in 64 bits.
    "float": lambda value: float(np.float32(value)),
    "double": float,
    "string": str,
    "decimal": lambda value: Decimal(str(value)),
    "date": lambda days: (EPOCH + datetime.timedelta(days=int(days))).date(),
    "timestamp": lambda micros: EPOCH + datetime.timedelta(microseconds=int(micros)),
}
