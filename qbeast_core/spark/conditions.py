"""SQL conditions given as text: checked once, then with the same meaning in every query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from qbeast_core.errors import InvalidOptions
from qbeast_core.jvm.catalyst import condition_of, has_star

_SUBQUERIES = ("Exists", "InSubquery", "ListQuery", "ScalarSubquery")


@dataclass(frozen=True, eq=False)
class Condition:
    """A SQL condition that has the same meaning in every query."""

    text: str
    """The condition as the user wrote it."""
    column: Column
    """The condition, with constants in place of the clock."""
    uses_python: bool = False
    """Whether the condition calls a Python function."""

    @property
    def holds(self) -> Column:
        """Whether the condition is true; false if it is null."""
        return F.coalesce(self.column, F.lit(False))


def parse_condition(rows: DataFrame, text: str, option: str) -> Condition:
    """Parse a condition and check it.

    Args:
        rows: the rows that the condition applies to; it may use their aliases.
        text: a SQL condition. Functions of the clock (`current_date()` ...) and strings that Spark
            reads as a time (`'now'` ...) are replaced by the time of this call.
        option: the name of the option in messages, such as `where`.

    Raises:
        InvalidOptions: the text is not a condition on these columns, is not deterministic, or has
            a star, a subquery or a function that is defined in SQL.
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidOptions(f"{option} {text!r} is not a SQL condition; write one like 'id > 5'")
    with reporting_invalid_sql(f"{option} {text!r}", rows):
        check_has_no_star(rows, text, f"{option} {text!r}")
        condition = condition_of(rows, text)
    if condition is None:
        raise InvalidOptions(
            f"{option} {text!r} calls a function that is defined in SQL, or has a metadata column, "
            "which is not supported; write what the function computes"
        )
    simple = {name.rpartition(".")[2] for name in condition.classes}
    if found := simple.intersection(_SUBQUERIES):
        raise InvalidOptions(
            f"{option} {text!r} has a subquery ({', '.join(sorted(found))}), which is not "
            "supported; use its rows as the source of a merge or of replace_matching"
        )
    if not condition.is_deterministic:
        raise InvalidOptions(
            f"{option} {text!r} is not deterministic; remove rand(), uuid() and the like"
        )
    column = F.expr(text) if condition.at_one_time is None else condition.at_one_time
    return Condition(text, column, uses_python="PythonUDF" in simple)


def check_has_no_star(rows: DataFrame, text: str, what: str) -> None:
    """Raise InvalidOptions if a SQL expression has a star.

    The steps of a change add columns of their own to the rows, and a star would include them.
    Delta's UPDATE, DELETE and MERGE refuse it too.

    Args:
        what: the expression in messages.
    """
    if has_star(rows.sparkSession, text):
        raise InvalidOptions(f"{what} has a star (*), which is not supported; name the columns")


def check_row_values(rows: DataFrame, values: Iterable[Column]) -> None:
    """Raise AnalysisException if a value is not computed from a single row.

    Spark rejects window functions, aggregates and generators in a condition, so we test the values
    in one. Their results would depend on which rows are written together.
    """
    rows.where(F.struct(*values).isNotNull())


@contextmanager
def reporting_invalid_sql(what: str, rows: DataFrame) -> Iterator[None]:
    """Raise InvalidOptions if Spark cannot parse or resolve the user's SQL on `rows`."""
    try:
        yield
    except (AnalysisException, ParseException) as problem:
        first_line = str(problem).strip().partition("\n")[0]
        raise InvalidOptions(
            f"{what} is not valid: {first_line} The columns are {', '.join(rows.columns)}"
        ) from problem
