"""Parses SQL expressions with Spark's own parser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql.classic.column import Column as ClassicColumn

from qbeast_core.jvm.gateway import Jvm


@dataclass(frozen=True, eq=False)
class FunctionCall:
    """A function call such as `avg(price)`."""

    name: str
    """The function's name in lower case."""
    argument: Column | None
    """None for a star, and for `count` of a literal, which Spark's parser makes of `count(*)`."""
    column: str | None
    """The argument's name as written, if it is a plain column."""


def function_call(spark: SparkSession, text: str) -> FunctionCall | None:
    """Parses a plain function call with one argument; None for any other expression.

    Calls with DISTINCT, FILTER, OVER or several arguments are not plain.

    Raises:
        ParseException: the text is not a SQL expression.
    """
    jvm = Jvm(spark)
    parsed = jvm.session.sessionState().sqlParser().parseExpression(text)
    if parsed.getClass().getSimpleName() != "UnresolvedFunction":
        return None
    names, arguments = jvm.elements(parsed.nameParts()), jvm.elements(parsed.arguments())
    if len(names) != 1 or len(arguments) != 1:
        return None
    if parsed.isDistinct() or parsed.filter().isDefined() or _ignores_nulls(parsed):
        return None
    argument, name = arguments[0], str(names[0]).lower()
    kind = argument.getClass().getSimpleName()
    if kind == "UnresolvedStar":
        return FunctionCall(name, None, None) if argument.target().isEmpty() else None
    if name == "count" and kind == "Literal" and argument.value() is not None:
        return FunctionCall(name, None, None)
    parts = jvm.elements(argument.nameParts()) if kind == "UnresolvedAttribute" else []
    return FunctionCall(
        name,
        _as_column(jvm, argument),
        str(parts[0]) if len(parts) == 1 else None,
    )


def unsubstituted(spark: SparkSession, text: str) -> Column:
    """A SQL expression in which `${...}` is text, as in the default of a column."""
    jvm = Jvm(spark)
    parser = jvm.singleton("org.apache.spark.sql.catalyst.parser.CatalystSqlParser")
    return _as_column(jvm, parser.parseExpression(text))


def _as_column(jvm: Jvm, expression: Any) -> Column:
    return ClassicColumn(jvm.jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))


def _ignores_nulls(parsed: Any) -> bool:
    # A Boolean or an Option of a Boolean, depending on the Spark version.
    return str(parsed.ignoreNulls()) not in ("False", "false", "None")
