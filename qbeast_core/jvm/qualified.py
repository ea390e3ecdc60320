"""Adds a table alias to a condition's unqualified columns, and leaves the rest of its text."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from pyspark.sql import SparkSession

from qbeast_core.jvm.gateway import Jvm
from qbeast_core.jvm.parser import with_variables
from qbeast_core.names import quoted

# Spark parses every name inside a lambda function as a variable; some of them are columns.
_NAMES = ("UnresolvedAttribute", "UnresolvedNamedLambdaVariable")


def qualified(spark: SparkSession, condition: str, columns: Collection[str], alias: str) -> str:
    """The condition, with `alias` before each name that begins with one of the columns.

    Spark's parser finds the names. Nothing is analysed, so any other name stays as it is, such as
    a column of another table, or a function without parentheses (`current_date`).

    Args:
        columns: the columns, in any case.

    Raises:
        ParseException: Spark cannot parse the condition.
    """
    jvm = Jvm(spark)
    condition = with_variables(jvm, condition)
    parsed = jvm.session.sessionState().sqlParser().parseExpression(condition)
    known = {name.lower() for name in columns}
    for start in sorted(_starts(parsed, known), reverse=True):
        condition = f"{condition[:start]}{quoted(alias)}.{condition[start:]}"
    return condition


def _starts(expression: Any, columns: set[str]) -> Iterator[int]:
    """The positions of the names that begin with one of the columns (in lower case)."""
    kind = str(expression.nodeName())
    children = Jvm.elements(expression.children())
    if kind in _NAMES and _first_part(expression) in columns:
        yield int(expression.origin().startIndex().get())
    elif kind == "LambdaFunction":
        function, *variables = children
        yield from _starts(function, columns - {*map(_first_part, variables)})
        return
    for child in children:
        yield from _starts(child, columns)


def _first_part(name: Any) -> str:
    return str(name.nameParts().head()).lower()
