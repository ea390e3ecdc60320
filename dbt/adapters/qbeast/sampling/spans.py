"""Finds where a SQL text samples tables by percent, and replaces these samples in the text.

Spark's parser finds the places. The text is edited there and never generated from a parse tree, so
hints, comments and layout stay as the user wrote them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from dbt.adapters.qbeast.relation import RUN_SAMPLE_COMMENT
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from qbeast_core import SampleClause, Sampled, Span, quoted, sampled_statement

_PERCENT = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s+percent\s*", re.IGNORECASE)
_BETWEEN_WORDS = re.compile(r"\W|$")
REASONS = {
    Sampled.COMMON_TABLE: "it is a WITH query of this statement, not a table",
    Sampled.OLD_VERSION: "the index can sample only the current version of a table",
    Sampled.OPTIONS: "the index cannot sample a table that is read with options or as a stream",
    Sampled.OTHER: "the index can sample only a table named directly before TABLESAMPLE",
}


@dataclass(frozen=True)
class Sample:
    """`table TABLESAMPLE (p PERCENT) [REPEATABLE (n)]` in one place of a statement.

    Instead of the table, there can be `(select * from table [where ...])`, which dbt writes for a
    relation with a row limit or an event time: such a filter keeps the same rows before and after
    sampling.
    """

    parts: tuple[str, ...]
    """The unquoted parts of the table's name."""
    fraction: float
    """0 to 1."""
    table: Span
    clause: Span
    """From TABLESAMPLE to its closing parenthesis."""
    has_alias: bool
    is_run_sample: bool = False
    """Whether the run adds the sample (`qbeast_sample`), not the user's SQL."""

    @property
    def name(self) -> str:
        """The table's name, with every part quoted."""
        return ".".join(quoted(part) for part in self.parts)

    @property
    def label(self) -> str:
        """The table's name as a message shows it."""
        return ".".join(self.parts)


@dataclass(frozen=True)
class Leftover:
    """A TABLESAMPLE that only Spark can answer."""

    label: str
    """What is sampled, as the statement names it."""
    reason: str
    is_run_sample: bool = False


@dataclass(frozen=True)
class Samples:
    """Every TABLESAMPLE of one statement."""

    sql: str
    """The statement; if it samples anything, with Spark's variables replaced by their values."""
    rewritable: tuple[Sample, ...] = ()
    leftovers: tuple[Leftover, ...] = ()
    is_stored_text: bool = False
    """Whether the text is stored (a view, a function), so that it must not name temporary views."""


def find_samples(spark: SparkSession, sql: str) -> Samples:
    """Every TABLESAMPLE clause of one statement, in the order of the text.

    A text that Spark cannot parse has none: running it reports what is wrong.
    """
    try:
        statement = sampled_statement(spark, sql)
    except ParseException:
        return Samples(sql)
    if statement.is_script:
        reason = "only single statements are sampled through the index"
        left = Leftover("this script", reason, RUN_SAMPLE_COMMENT in sql)
        return Samples(sql, leftovers=(left,) if statement.clauses else ())
    if statement.runs_text:
        reason = "Spark parses the text of EXECUTE IMMEDIATE only when it runs it"
        return Samples(sql, leftovers=(Leftover("this text", reason, RUN_SAMPLE_COMMENT in sql),))
    found = [_sample_of(statement.sql, clause) for clause in statement.clauses]
    return Samples(
        sql=statement.sql,
        rewritable=tuple(item for item in found if isinstance(item, Sample)),
        leftovers=tuple(dict.fromkeys(item for item in found if isinstance(item, Leftover))),
        is_stored_text=statement.stores_text,
    )


def replace_samples(sql: str, relations: Sequence[tuple[Sample, str]]) -> str:
    """`sql` with each sample replaced by a relation: the quoted name of a view, or a subquery.

    A relation without an alias gets the table's name as its alias, so `table.column` still works.

    >>> sql = "select t.a from s.t tablesample (1 percent) where t.a > 0"
    >>> sample = Sample(("s", "t"), 0.01, Span(16, 19), Span(20, 43), has_alias=False)
    >>> replace_samples(sql, [(sample, "`v`")])
    'select t.a from `v` AS `t` where t.a > 0'
    """
    edits: list[tuple[int, int, str]] = []
    for sample, relation in relations:
        alias = "" if sample.has_alias else f" AS {quoted(sample.parts[-1])}"
        edits.append((sample.table.start, sample.table.end, relation + alias))
        # Other samples may be between a table and its clause.
        between = sql[sample.table.end : sample.clause.start].rstrip(" \t")
        edits.append((sample.table.end + len(between), sample.clause.end, ""))
    for start, end, text in sorted(edits, reverse=True):
        sql = sql[:start] + text + sql[end:]
    return sql


def without_samples(spark: SparkSession, sql: str) -> str:
    """`sql` without samples by percent, of any relation, so that it reads all rows instead."""
    try:
        statement = sampled_statement(spark, sql)
    except ParseException:
        return sql
    sql = statement.sql
    for each in reversed(statement.clauses):
        if _PERCENT.fullmatch(each.size):
            start, end = each.with_pipe
            between = "" if _BETWEEN_WORDS.match(sql, end) else " "
            sql = sql[:start].rstrip(" \t") + between + sql[end:]
    return sql


def _sample_of(sql: str, clause: SampleClause) -> Sample | Leftover:
    label = ".".join(clause.parts) or "a subquery"
    text = sql[clause.clause.start : clause.clause.end]
    is_run_sample = RUN_SAMPLE_COMMENT in text
    percent = _PERCENT.fullmatch(clause.size)
    if clause.parts and percent is None:
        return Leftover(
            label, f"the index supports (p percent), not ({clause.size.strip()})", is_run_sample
        )
    if percent is None or clause.table is None or clause.sampled is not Sampled.TABLE:
        return Leftover(label, REASONS[clause.sampled], is_run_sample)
    return Sample(
        parts=clause.parts,
        # Spark accepts slightly more than 100 percent.
        fraction=min(float(Decimal(percent.group(1)) / 100), 1.0),
        table=clause.table,
        clause=clause.clause,
        has_alias=clause.has_alias,
        is_run_sample=is_run_sample,
    )
