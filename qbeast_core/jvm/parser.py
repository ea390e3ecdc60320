"""Finds TABLESAMPLE clauses in a SQL statement with Spark's own parser.

Every node of a parsed plan records its position in the statement. So the grammar is exactly that of
the Spark version in use, with its comments, strings, names and WITH queries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from qbeast_core.jvm.gateway import Jvm

_CLAUSE = re.compile("tablesample", re.IGNORECASE)
_TOKEN = re.compile(
    r"""(?P<between>\s+ | --[^\n]* | (?P<comment>/\*))
    | [rR]'[^']*' | [rR]"[^"]*" | '(?:\\.|[^'\\])*' | "(?:\\.|[^"\\])*"
    | `[^`]*` | \w+ | \|> | .""",
    re.DOTALL | re.VERBOSE,
)
_COMMENT_BOUND = re.compile(r"/\*|\*/")
_SIZE = re.compile(r"tablesample\s*\((.*?)\)", re.IGNORECASE | re.DOTALL)
_ALIASES = frozenset({"SubqueryAlias", "UnresolvedSubqueryColumnAliases"})
_MADE_BY_A_CLAUSE = frozenset({"GlobalLimit", "Sample"})
_STORED = frozenset(
    {
        "AlterViewAs",
        "CreateMaterializedViewAsSelect",
        "CreateUserDefinedFunction",
        "CreateView",
    }
)
_FUNCTIONS = frozenset({"CreateUserDefinedFunction", "CreateSQLFunctionCommand"})
_BEFORE_AN_EXPRESSION = "select "


class Span(NamedTuple):
    """The characters from `start` to `end` (exclusive) of a statement."""

    start: int
    end: int


class Sampled(Enum):
    """What a TABLESAMPLE clause samples."""

    TABLE = "a table, or `select * from table [where ...]` in parentheses"
    COMMON_TABLE = "a WITH query of the statement"
    OLD_VERSION = "a table at a version or a time"
    OPTIONS = "a table that is read with options, or as a stream"
    OTHER = "any other query"


@dataclass(frozen=True)
class SampleClause:
    """`TABLESAMPLE (...) [REPEATABLE (n)]` at one place in a statement."""

    clause: Span
    """From TABLESAMPLE to its last parenthesis."""
    with_pipe: Span
    """The same with the `|>` before it, if it is a step of a pipe."""
    sampled: Sampled
    size: str
    """What the first parentheses enclose, without comments."""
    parts: tuple[str, ...] = ()
    """The unquoted parts of the table's name; none for other queries."""
    table: Span | None = None
    """The position of the table's name."""
    has_alias: bool = False


@dataclass(frozen=True)
class SampledStatement:
    """All TABLESAMPLE clauses of a statement."""

    sql: str
    """The statement with Spark's variables (`${...}`) replaced by their values."""
    clauses: tuple[SampleClause, ...] = ()
    """In the order of the text."""
    stores_text: bool = False
    """Whether the statement creates a view or a function that outlives the session."""
    is_script: bool = False
    """Whether the statement is a BEGIN ... END block of several statements."""
    runs_text: bool = False
    """Whether the statement is EXECUTE IMMEDIATE, whose text Spark parses only when it runs it."""


def sampled_statement(spark: SparkSession, sql: str) -> SampledStatement:
    """The TABLESAMPLE clauses of one statement. Nothing is analysed or executed.

    Raises:
        ParseException: Spark cannot parse the statement.
    """
    if not _CLAUSE.search(sql):
        return SampledStatement(sql)
    jvm = Jvm(spark)
    sql = with_variables(jvm, sql)
    parse = jvm.session.sessionState().sqlParser().parsePlan
    plan = parse(sql)
    if plan.nodeName() == "ExplainCommand":
        plan = plan.logicalPlan()
    kind = str(plan.nodeName())
    clauses = set(_Clauses(sql).within(plan))
    if kind in _FUNCTIONS:
        # The parser keeps the body of a function as text.
        for body, before in ((plan.queryText(), ""), (plan.exprText(), _BEFORE_AN_EXPRESSION)):
            if body.isDefined():
                start = sql.rindex(body.get())
                inner = before + body.get()
                found = _Clauses(inner, start - len(before)).within(parse(inner))
                clauses.update(found)
    return SampledStatement(
        sql,
        tuple(sorted(clauses, key=lambda each: each.clause)),
        stores_text=kind in _STORED or _is_lasting_view(plan, kind),
        is_script=kind == "CompoundBody",
        runs_text="ExecuteImmediate" in kind,
    )


def with_variables(jvm: Jvm, sql: str) -> str:
    """The text with Spark's variables (`${...}`) replaced by their values, as the parser does."""
    if "${" not in sql:
        return sql
    return str(jvm.new("org.apache.spark.sql.internal.VariableSubstitution").substitute(sql))


def _is_lasting_view(plan: Any, kind: str) -> bool:
    # Other sessions can read a global temporary view, but not the views of this session.
    return kind == "CreateViewCommand" and str(plan.viewType()) != "LocalTempView"


class _Clauses:
    """Finds the TABLESAMPLE clauses of a text that starts at `offset` in a statement."""

    def __init__(self, text: str, offset: int = 0) -> None:
        self._text, self._offset = text, offset

    def within(self, plan: Any, common: frozenset[str] = frozenset()) -> Iterator[SampleClause]:
        """The clauses in a plan that can use the WITH queries `common` (names in lower case)."""
        kind = str(plan.nodeName())
        inner = Jvm.elements(plan.innerChildren())
        if kind == "UnresolvedWith":
            recursive = plan.productArity() > 2 and plan.allowRecursion()
            for query in inner:
                name = str(query.alias()).lower()
                yield from self.within(query, common | {name} if recursive else common)
                common |= {name}
            inner = []
        elif kind in _MADE_BY_A_CLAUSE:
            clause = self._span(plan)
            if _CLAUSE.match(self._text, clause.start):
                yield self._described(clause, plan.child(), common)
        for child in Jvm.elements(plan.children()) + inner:
            yield from self.within(child, common)

    def _described(self, clause: Span, plan: Any, common: frozenset[str]) -> SampleClause:
        """The description of a clause that samples this plan."""
        before = self._token_before(clause.start)
        is_piped = before is not None and before.group() == "|>"
        start = before.start() if before is not None and is_piped else clause.start
        with_pipe = self._in_statement(Span(start, clause.end))
        size = _size(self._text[clause.start : clause.end])
        other = SampleClause(self._in_statement(clause), with_pipe, Sampled.OTHER, size)
        if is_piped:
            return other
        relation, has_alias = self._without_alias(plan)
        if relation.nodeName() == "LocalLimit":  # of `(n ROWS)`, below the node of the clause
            relation, has_alias = self._without_alias(relation.child())
        elif (filtered := self._filtered(relation)) is not None:
            relation, has_alias = self._without_alias(filtered)
        sampled = Sampled.TABLE
        if relation.nodeName() == "RelationTimeTravel":
            relation, sampled = relation.relation(), Sampled.OLD_VERSION
        if relation.nodeName() != "UnresolvedRelation" or self._is_table_query(relation):
            return other
        if relation.isStreaming() or not relation.options().isEmpty():
            sampled = Sampled.OPTIONS
        parts = tuple(map(str, Jvm.elements(relation.multipartIdentifier())))
        if len(parts) == 1 and parts[0].lower() in common:
            sampled = Sampled.COMMON_TABLE
        table = self._in_statement(self._span(relation))
        return replace(other, sampled=sampled, parts=parts, table=table, has_alias=has_alias)

    def _is_table_query(self, relation: Any) -> bool:
        """Whether the relation is named in the query `TABLE name`, which takes no subquery."""
        before = self._token_before(self._span(relation).start)
        return before is not None and before.group().lower() == "table"

    def _token_before(self, position: int) -> re.Match[str] | None:
        """The last token of the text before a position, apart from spaces and comments."""
        tokens = _tokens(self._text, position)
        return next((t for t in reversed(list(tokens)) if t["between"] is None), None)

    def _without_alias(self, plan: Any) -> tuple[Any, bool]:
        has_alias = False
        while plan.nodeName() in _ALIASES:
            plan, has_alias = plan.child(), True
        return plan, has_alias

    def _filtered(self, plan: Any) -> Any | None:
        """The source of a `select * from ... [where ...] [limit 0]`; None for any other query.

        Such a query keeps the same rows whether the sample is taken before or after it.
        """
        if plan.nodeName() == "GlobalLimit" and plan.limitExpr().sql() == "0":
            plan = plan.child().child()
        if plan.nodeName() != "Project":
            return None
        selected = Jvm.elements(plan.projectList())
        if [each.getClass().getSimpleName() for each in selected] != ["UnresolvedStar"]:
            return None
        if selected[0].target().isDefined():
            return None
        plan = plan.child()
        return plan.child() if plan.nodeName() == "Filter" else plan

    def _span(self, node: Any) -> Span:
        origin = node.origin()
        return Span(origin.startIndex().get(), origin.stopIndex().get() + 1)

    def _in_statement(self, span: Span) -> Span:
        return Span(span.start + self._offset, span.end + self._offset)


def _tokens(text: str, end: int) -> Iterator[re.Match[str]]:
    """The tokens of a text up to a position; of a comment, only its first two characters."""
    position = 0
    while position < end and (token := _TOKEN.match(text, position, end)) is not None:
        yield token
        position = token.end() if token["comment"] is None else _end_of_comment(text, position)


def _end_of_comment(text: str, start: int) -> int:
    """Where the comment that starts at a position ends, because comments can contain others."""
    depth = 0
    for bound in _COMMENT_BOUND.finditer(text, start):
        depth += 1 if bound.group() == "/*" else -1
        if depth == 0:
            return bound.end()
    return len(text)


def _size(clause: str) -> str:
    """The text in the first parentheses of a clause, without comments.

    >>> _size("tablesample /* a /* b */ ( */ (10 -- c\\n percent) repeatable (1)")
    '10   percent'
    """
    tokens = _tokens(clause, len(clause))
    plain = "".join(" " if token["between"] else token.group() for token in tokens)
    found = _SIZE.match(plain)
    return found.group(1) if found else ""
