"""The filters of a query that reach a table, taken from Spark's own optimized plan.

Spark parses, resolves and pushes them down; what is left to do here is to find them, and to say
them in the terms of `tree.query`.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from qbeast_core.jvm.gateway import Jvm
from qbeast_core.jvm.settings import session_with
from qbeast_core.model.datatypes import EPOCH
from qbeast_core.tree.query import And, Anything, Comparison, In, IsNull, Or, Predicate

# Commands that read what a query gives, with the name of the query in each.
_QUERY_OF_COMMAND = {
    "CreateTableAsSelect": "query",
    "CreateViewCommand": "plan",
    "ExplainCommand": "logicalPlan",
    "InsertIntoStatement": "query",
    "ReplaceTableAsSelect": "query",
}
# Without one of these a statement asks for every row, and need not be optimized to know that.
_FILTERING = re.compile(r"\b(where|having|qualify|join)\b", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class PushedFilters:
    """What one query asks of one table; `None` in its place means that it asks for every row."""

    alternatives: tuple[tuple[Any, ...], ...]
    """For each place where the query reads the table, the Catalyst conditions that all hold."""

    @property
    def text(self) -> str:
        """The filters as Spark prints them, for people."""
        return " OR ".join(
            "(" + " AND ".join(str(condition.sql()) for condition in place) + ")"
            for place in self.alternatives
        )

    @cached_property
    def predicate(self) -> Predicate:
        """The same for the index."""
        return Or(
            tuple(
                And(tuple(_predicate(condition) for condition in place))
                for place in self.alternatives
            )
        )


def filters_on(rows: DataFrame, table: DataFrame) -> PushedFilters | None:
    """The filters of `rows`, a DataFrame made from `table`, on that table."""
    execution = rows._jdf.queryExecution()
    return _pushed(Jvm(rows.sparkSession), execution, {"": table}).get("")


def filters_of_statement(
    spark: SparkSession, sql: str, tables: Mapping[str, DataFrame]
) -> dict[str, PushedFilters]:
    """The filters of a SQL statement on some of the tables that it reads; nothing is executed.

    Args:
        tables: by any key, the DataFrames that stand behind temporary views in the statement.

    Returns:
        The filters by the same key. A key is missing where the statement may need every row.

    Raises:
        AnalysisException, ParseException: as running the statement would.
    """
    jvm = Jvm(spark)
    state = jvm.session.sessionState()
    parsed = state.sqlParser().parsePlan(sql)
    while query := _QUERY_OF_COMMAND.get(parsed.getClass().getSimpleName()):
        parsed = getattr(parsed, query)()
    # SKIP, because asking for the plan of a command would run the command.
    skip = jvm.singleton("org.apache.spark.sql.execution.CommandExecutionMode").SKIP()
    execution = state.executePlan(parsed, skip)
    if not (tables and _FILTERING.search(sql)):
        execution.analyzed()
        return {}
    # While it plans, Delta would look for the files of every other table too, by a job for each.
    with session_with(spark, {"spark.databricks.delta.stats.skipping": "false"}) as copy:
        planned = copy.sessionState().executePlan(execution.analyzed(), skip)
        return _pushed(jvm, planned, tables)


def _pushed(jvm: Jvm, execution: Any, tables: Mapping[str, DataFrame]) -> dict[str, PushedFilters]:
    patterns = jvm.singleton("org.apache.spark.sql.catalyst.trees.TreePattern")
    if execution.analyzed().containsPattern(patterns.CURRENT_LIKE()):
        # The optimizer puts the present moment in the place of current_date() and its like; the
        # statement runs at a later one, and a temporary view of it is read at any time.
        return {}
    keys: dict[int, tuple[str, set[str]]] = {}
    for key, table in tables.items():
        for relation, own in _relations(jvm, table._jdf.queryExecution().analyzed()):
            keys[_identity(jvm, relation)] = key, {str(condition.sql()) for condition in own}
    places: dict[str, list[tuple[Any, ...]]] = {}
    for relation, conditions in _relations(jvm, execution.optimizedPlan()):
        if found := keys.get(_identity(jvm, relation)):
            # The table's own condition, a sample's on the weight, says nothing new of its files.
            key, own_texts = found
            asked = [each for each in conditions if str(each.sql()) not in own_texts]
            usable = tuple(each for each in asked if _usable(each, relation))
            places.setdefault(key, []).append(usable)
    return {
        key: PushedFilters(tuple(alternatives))
        for key, alternatives in places.items()
        if all(alternatives)
    }


def _relations(jvm: Jvm, plan: Any) -> Iterator[tuple[Any, list[Any]]]:
    """Every place where a plan reads files, subqueries included, with the conditions above it."""

    def walk(node: Any, above: list[Any]) -> Iterator[tuple[Any, list[Any]]]:
        name = node.getClass().getSimpleName()
        if name == "LogicalRelation":
            if node.relation().getClass().getSimpleName() == "HadoopFsRelation":
                yield node, above
            return
        conditions = [*above, *_conjuncts(node.condition())] if name == "Filter" else []
        for child in jvm.elements(node.children()):
            yield from walk(child, conditions)
        for inner in jvm.elements(node.innerChildren()):
            yield from walk(inner, [])

    yield from walk(plan, [])


def _identity(jvm: Jvm, relation: Any) -> int:
    # Expression ids are new wherever a CTE is used once more; the list of files stays one object.
    return int(jvm.jvm.java.lang.System.identityHashCode(relation.relation().location()))


def _usable(condition: Any, relation: Any) -> bool:
    """Whether a condition may tell files apart: by columns of the relation, always the same way."""
    if _leaves_every_file(condition) or not condition.deterministic() or not condition.resolved():
        return False
    references = condition.references()
    if not references.size() or not references.subsetOf(relation.outputSet()):
        return False
    text = str(condition.toJSON())
    return not any(hint in text for hint in ("Subquery", "Exists", "OuterReference", "UDF"))


def _leaves_every_file(condition: Any) -> bool:
    """Whether neither the index nor Delta's statistics have anything to say of a condition.

    Data tests are made of these. Spark adds `is not null` to comparisons and joins; that a file has
    nothing but nulls is not worth the job that finds it.
    """
    name = condition.getClass().getSimpleName()
    if name == "Not":
        return condition.child().getClass().getSimpleName() in ("In", "InSet")
    return bool(name == "IsNotNull")


def _conjuncts(condition: Any) -> list[Any]:
    if condition.getClass().getSimpleName() == "And":
        return [*_conjuncts(condition.left()), *_conjuncts(condition.right())]
    return [condition]


_COMPARISONS = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_FLIPPED = {"<": ">", "<=": ">=", "=": "=", ">=": "<=", ">": "<"}


class _Unknown(Exception):
    """A part of a condition that the index knows nothing about."""


def _predicate(condition: Any) -> Predicate:
    name = condition.getClass().getSimpleName()
    try:
        if name in ("And", "Or"):
            parts = (_predicate(condition.left()), _predicate(condition.right()))
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
    if value is None:  # only `<=> null` holds for anything, and for nulls
        return IsNull(column) if op == "=" else Anything()
    return Comparison(column, op, value)


def _in_set(condition: Any) -> Predicate:
    column, data_type = _column(condition.child()), _type(condition.child())
    members = condition.hset().toSeq()
    values = (_convert(members.apply(i), data_type) for i in range(members.size()))
    return In(column, tuple(values))


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
    """A value as Catalyst holds it, as Python has it."""
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
    "float": float,
    "double": float,
    "string": str,
    "decimal": lambda value: Decimal(str(value)),
    "date": lambda days: (EPOCH + datetime.timedelta(days=int(days))).date(),
    "timestamp": lambda micros: EPOCH + datetime.timedelta(microseconds=int(micros)),
}
