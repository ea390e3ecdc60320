"""SQL conditions given as text: checked once, then the same whenever they are evaluated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from qbeast_core.errors import InvalidOptions
from qbeast_core.jvm.catalyst import condition_of

_SUBQUERIES = ("Exists", "InSubquery", "ListQuery", "ScalarSubquery")


def freeze_clock(rows: DataFrame, text: str, option: str) -> str:
    """The condition as text that means the same in every later query.

    Args:
        rows: what the condition is about; aliases of it may be used.
        text: a SQL condition. The clock in it (`current_date()` ...) is replaced by the time of
            this call.
        option: what messages call it, such as `where`.

    Raises:
        InvalidOptions: it is no condition on these columns, it is not deterministic, or it has a
            subquery.
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidOptions(f"{option} {text!r} is not a SQL condition; write one like 'id > 5'")
    with understood(f"{option} {text!r}", rows):
        condition = condition_of(rows.where(text))
    simple = {name.rpartition(".")[2] for name in condition.classes}
    if found := simple.intersection(_SUBQUERIES):
        raise InvalidOptions(
            f"{option} {text!r} has a subquery ({', '.join(sorted(found))}), which is not "
            "supported; put its rows into the source of a merge or of replace_matching"
        )
    if not condition.is_deterministic:
        raise InvalidOptions(
            f"{option} {text!r} is not deterministic; leave out rand(), uuid() and the like"
        )
    return condition.at_one_time or text


def check_row_values(rows: DataFrame, values: Iterable[Column]) -> None:
    """Raise AnalysisException where a value is not computed from one row alone.

    Spark takes no window functions, aggregates or generators in a condition, and here they would
    depend on which rows are written together.
    """
    rows.where(F.struct(*values).isNotNull())


@contextmanager
def understood(what: str, rows: DataFrame) -> Iterator[None]:
    """Raise InvalidOptions where Spark cannot make sense of what a user wrote about `rows`."""
    try:
        yield
    except (AnalysisException, ParseException) as problem:
        first_line = str(problem).strip().partition("\n")[0]
        raise InvalidOptions(
            f"{what} cannot be understood: {first_line} The columns are {', '.join(rows.columns)}"
        ) from problem


def holds(text: str) -> Column:
    """Whether the condition is true: false where it is null."""
    return F.coalesce(F.expr(text), F.lit(False))
