"""Where a SQL text samples tables by percent, and the text with other relations in their place.

Nothing here knows Spark. The statement is edited at those places and never printed anew from a
parse tree: hints, comments and syntax of tomorrow stay as the user wrote them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from dbt.adapters.qbeast.sampling.sql_text import SqlText, UnreadableText

from qbeast_core import quoted


@dataclass(frozen=True)
class Slice:
    """The characters `start` to `end` (exclusive) of a statement."""

    start: int
    end: int


@dataclass(frozen=True)
class Sample:
    """`table TABLESAMPLE (p PERCENT) [REPEATABLE (n)]` at one place of a statement.

    Also `(select * from table [where ...]) TABLESAMPLE (...)`, which dbt writes for a relation with
    a row limit or an event time: such a filter keeps the same rows before and after the sampling.
    """

    parts: tuple[str, ...]
    """The table's name as its unquoted parts."""
    fraction: float
    """0 to 1."""
    table: Slice
    clause: Slice
    """From TABLESAMPLE to its last parenthesis."""
    has_alias: bool

    @property
    def name(self) -> str:
        """The table's name, every part quoted."""
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


@dataclass(frozen=True)
class Samples:
    """Every TABLESAMPLE of one statement."""

    rewritable: tuple[Sample, ...] = ()
    leftovers: tuple[Leftover, ...] = ()
    stored: bool = False
    """The statement stores its text (a view, a function): it must not name a temporary view."""


def find_samples(sql: str) -> Samples:
    """Every TABLESAMPLE clause of `sql`, one statement in Spark's dialect, in the text's order.

    What stands in strings, comments, hints and quoted names is not a clause.

    >>> [(s.label, s.fraction) for s in find_samples("from a.b tablesample (1 percent)").rewritable]
    [('a.b', 0.01)]
    """
    if not _MENTIONED.search(sql):
        return Samples()
    try:
        text = SqlText(sql)
    except UnreadableText as error:
        return Samples(leftovers=(Leftover("this statement", f"{error}"),))
    clauses = [p for p in range(len(text.tokens)) if _is_clause(text, p)]
    found = [_sample_at(text, place) for place in clauses]
    return Samples(
        rewritable=tuple(item for item in found if isinstance(item, Sample)),
        leftovers=tuple(dict.fromkeys(item for item in found if isinstance(item, Leftover))),
        stored=_stores_its_text(text),
    )


def replace_samples(sql: str, relations: Sequence[tuple[Sample, str]]) -> str:
    """`sql` with each sample replaced by a relation: the quoted name of a view, or a subquery.

    A relation without an alias gets the table's name as one, so that `table.column` still works.

    >>> sql = "select t.a from s.t tablesample (1 percent) where t.a > 0"
    >>> replace_samples(sql, [(find_samples(sql).rewritable[0], "`v`")])
    'select t.a from `v` AS `t` where t.a > 0'
    """
    for sample, relation in sorted(relations, key=lambda pair: pair[0].table.start, reverse=True):
        alias = "" if sample.has_alias else f" AS {quoted(sample.parts[-1])}"
        between = sql[sample.table.end : sample.clause.start].rstrip(" \t")
        before, after = sql[: sample.table.start], sql[sample.clause.end :]
        sql = f"{before}{relation}{alias}{between}{after}"
    return sql


def without_samples(sql: str) -> str:
    """`sql` with all rows in place of those of each sample by percent, whatever it is of.

    A text that cannot be read stays as it is.

    >>> without_samples("select a from t tablesample (1 percent) as s where a > 0")
    'select a from t as s where a > 0'
    """
    try:
        text = SqlText(sql)
    except UnreadableText:
        return sql
    for place in reversed(range(len(text.tokens))):
        if _is_clause(text, place) and _PERCENT.fullmatch(text.between(place + 1)):
            after = text.tokens[_end_of_clause(text, place)].end
            sql = sql[: text.tokens[place].start].rstrip(" \t") + sql[after:]
    return sql


_MENTIONED = re.compile("tablesample", re.IGNORECASE)
_PERCENT = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s+percent\s*", re.IGNORECASE)
_BEFORE_A_TABLE = frozenset({"from", "join", ",", "("})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that may follow a table; any other word there is its alias. For a word missing here no alias
# is added; where the statement needs it, Spark refuses the edited text and the original is run.
_NOT_AN_ALIAS = _words(
    "anti approx asof cluster cross distribute exact except full group having inner insert"
    " intersect join lateral left limit map minus natural offset on order outer pivot qualify"
    " reduce right select semi set sort tablesample then union unpivot using values watermark"
    " when where window with"
)
# After `select * from t where ...` these would make sampling before and after it differ.
_CHANGES_ROWS = _words(
    "cluster distribute except group having intersect lateral limit minus offset order pivot"
    " qualify sort tablesample union unpivot window |>"
)


def _is_clause(text: SqlText, place: int) -> bool:
    return (
        text.word(place) == "tablesample"
        and text.word(place + 1) == "("
        and text.word(place - 1) != "."
    )


def _stores_its_text(text: SqlText) -> bool:
    place = 0
    while text.word(place) in _words("explain extended formatted codegen cost"):
        place += 1
    verb = text.word(place)
    qualifiers = set()
    while text.word(place := place + 1) in _words("or replace global temp temporary materialized"):
        qualifiers.add(text.word(place))
    if verb not in {"create", "alter"} or text.word(place) not in {"view", "function"}:
        return False
    # A global temporary view is seen by sessions that have none of this session's views.
    return qualifiers.isdisjoint({"temp", "temporary"}) or "global" in qualifiers


def _sample_at(text: SqlText, place: int) -> Sample | Leftover:
    """The clause whose TABLESAMPLE stands at `place`."""
    table = _table_before(text, place)
    if table is None:
        return _not_a_table(text, place)
    first, last, parts = table
    label = ".".join(parts)
    inside = text.between(place + 1)
    percent = _PERCENT.fullmatch(inside)
    if percent is None or Decimal(percent.group(1)) > 100:
        return Leftover(label, f"the index answers (p percent), not ({inside.strip()})")
    if len(parts) == 1 and text.is_common_table(parts[0], first):
        return Leftover(label, "it is a WITH query of this statement, not a table")
    end = _end_of_clause(text, place)
    return Sample(
        parts=parts,
        fraction=float(Decimal(percent.group(1)) / 100),
        table=Slice(text.tokens[first].start, text.tokens[last].end),
        clause=Slice(text.tokens[place].start, text.tokens[end].end),
        has_alias=_has_alias(text, end + 1 if last == place - 1 else last + 1),
    )


def _end_of_clause(text: SqlText, place: int) -> int:
    end = text.closing[place + 1]
    if text.word(end + 1) == "repeatable" and text.word(end + 2) == "(":
        end = text.closing[end + 2]
    return end


def _table_before(text: SqlText, place: int) -> tuple[int, int, tuple[str, ...]] | None:
    """First token, last token and parts of the table that the clause at `place` samples."""
    if text.word(place - 1) == ")":
        return _table_of_filter(text, text.opening[place - 1])
    first, parts = text.name_until(place - 1)
    if not parts or text.word(first - 1) not in _BEFORE_A_TABLE:
        return None
    return first, place - 1, parts


def _table_of_filter(text: SqlText, opening: int) -> tuple[int, int, tuple[str, ...]] | None:
    """The table of `(select * from table [[as] alias] [where ...])`, or of one with LIMIT 0."""
    if [text.word(opening + step) for step in (1, 2, 3)] != ["select", "*", "from"]:
        return None
    first = opening + 4
    last, parts = text.name_from(first)
    after = last + 1
    if _has_alias(text, after):
        after += 2 if text.word(after) == "as" else 1
    closing = text.closing[opening]
    if not parts or (after != closing and text.word(after) != "where"):
        return None
    for inner in text.top_level(after, closing):
        limit_zero = text.word(inner) == "limit" and text.tokens[inner + 1].text == "0"
        if text.word(inner) in _CHANGES_ROWS and not limit_zero:
            return None
    return first, last, parts


def _has_alias(text: SqlText, place: int) -> bool:
    word = text.word(place)
    return word == "as" or (text.name(place) is not None and word not in _NOT_AN_ALIAS)


def _not_a_table(text: SqlText, place: int) -> Leftover:
    """Why what stands before the TABLESAMPLE at `place` is no table."""
    if text.word(place - 1) == ")":
        return Leftover("a subquery", "only a table named right before TABLESAMPLE has an index")
    current = "the index answers samples of a table's current version"
    if text.word(place - 2) == "@":
        return Leftover(".".join(text.name_until(place - 3)[1]), current)
    if text.word(place - 2) == "of":
        return Leftover(".".join(text.name_until(place - 5)[1]), current)
    label = text.tokens[place - 1].text if place else "nothing"
    return Leftover(label, "TABLESAMPLE does not stand right after a table's name")
