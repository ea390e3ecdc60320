"""Where a SQL text samples a table by percent, found by its tokens and edited in place.

Nothing here knows Spark. The text is never printed anew from a parse tree: whatever the tokenizer
does not concern itself with (hints, comments, new syntax) stays as the user wrote it.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlglot.dialects import Spark
from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType


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
        text = _Text(sql, _Tokenizer(dialect="spark").tokenize(sql))
    except TokenError:
        return Samples(leftovers=(_UNREADABLE,))
    places = [place for place in range(len(text.tokens)) if _starts_clause(text, place)]
    if not places:
        return Samples()
    if _is_unreadable(text):
        return Samples(leftovers=(_UNREADABLE,))
    found = [_sample_at(text, place) for place in places]
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
    'select t.a from `v` AS `t`  where t.a > 0'
    """
    for sample, relation in sorted(relations, key=lambda pair: pair[0].table.start, reverse=True):
        alias = "" if sample.has_alias else f" AS {quoted(sample.parts[-1])}"
        between = sql[sample.table.end : sample.clause.start]
        before, after = sql[: sample.table.start], sql[sample.clause.end :]
        sql = f"{before}{relation}{alias}{between}{after}"
    return sql


def quoted(part: str) -> str:
    """One part of a name, in backticks."""
    return "`" + part.replace("`", "``") + "`"


_MENTIONED = re.compile("tablesample", re.IGNORECASE)
_PERCENT = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s+percent\s*", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_UNREADABLE = Leftover("the statement", "its text could not be taken apart")

_BEFORE_A_TABLE = frozenset({"from", "join", ",", "("})
# Words that may follow a table; any other word there is its alias. A word missing here costs an
# alias that the statement may need; Spark then refuses the edited text and the original is run.
_NOT_AN_ALIAS = frozenset(
    "anti approx asof cluster cross distribute exact except full group having inner insert"
    " intersect join lateral left limit map minus natural offset on order outer pivot qualify"
    " reduce right select semi set sort tablesample then union unpivot using values watermark"
    " when where window with".split()
)
# At the end of `select * from t where ...` these would make sampling before and after differ.
_CHANGES_ROWS = frozenset(
    "cluster distribute except group having intersect lateral limit minus offset order pivot"
    " qualify sort tablesample union unpivot window |>".split()
)


class _Tokenizer(Spark.Tokenizer):
    """sqlglot's, without its shortcut of taking what follows EXPLAIN or CALL as one string."""

    COMMANDS = frozenset()


class _Text:
    """A statement, its tokens, and which parenthesis closes which."""

    def __init__(self, sql: str, tokens: list[Token]) -> None:
        self.sql = sql
        self.tokens = tokens
        self.closing: dict[int, int] = {}
        self.opening: dict[int, int] = {}
        open_places: list[int] = []
        for place, token in enumerate(tokens):
            if token.token_type == TokenType.L_PAREN:
                open_places.append(place)
            elif token.token_type == TokenType.R_PAREN and open_places:
                self.closing[open_places[-1]] = place
                self.opening[place] = open_places.pop()
        self.balanced = not open_places and len(self.opening) == sum(
            token.token_type == TokenType.R_PAREN for token in tokens
        )

    def raw(self, place: int) -> str:
        """The token as it was written."""
        return self.sql[self.tokens[place].start : self.tokens[place].end + 1]

    def word(self, place: int) -> str:
        """The keyword, unquoted name or sign at `place` in lower case; empty for all else.

        sqlglot makes one token of `ORDER BY`: its first word counts.
        """
        if not 0 <= place < len(self.tokens):
            return ""
        token = self.tokens[place]
        if token.token_type in _LITERALS:
            return ""
        return (token.text.split() or [""])[0].lower()

    def name(self, place: int) -> str | None:
        """The part of a name that stands at `place`, unquoted."""
        if not 0 <= place < len(self.tokens):
            return None
        token = self.tokens[place]
        if token.token_type == TokenType.IDENTIFIER:
            return str(token.text)
        if token.token_type in _LITERALS or not _WORD.fullmatch(self.raw(place)):
            return None
        return self.raw(place)

    def top_level(self, start: int, end: int) -> Iterator[int]:
        """The places from `start` to `end` (exclusive) that no parenthesis in between encloses."""
        place = start
        while place < end:
            yield place
            place = self.closing.get(place, place) + 1


_LITERALS = frozenset(
    {
        TokenType.STRING,
        TokenType.RAW_STRING,
        TokenType.NATIONAL_STRING,
        TokenType.HEX_STRING,
        TokenType.BIT_STRING,
        TokenType.BYTE_STRING,
        TokenType.NUMBER,
        TokenType.IDENTIFIER,
        TokenType.HINT,
    }
)


def _starts_clause(text: _Text, place: int) -> bool:
    return (
        text.word(place) == "tablesample"
        and text.word(place + 1) == "("
        and text.word(place - 1) != "."
    )


def _is_unreadable(text: _Text) -> bool:
    """Whether the tokens may not be Spark's own, or the text is more than one statement.

    Spark continues a `--` comment over a line end that a backslash precedes, and knows strings in
    dollar signs; sqlglot does neither, and might see code where Spark sees text.
    """
    last = len(text.tokens) - 1
    return (
        not text.balanced
        or any(comment.endswith("\\") for token in text.tokens for comment in token.comments)
        or any(text.word(p) == "$" and text.word(p + 1) != "{" for p in range(len(text.tokens)))
        or any(text.word(p) == ";" and p != last for p in range(len(text.tokens)))
    )


def _stores_its_text(text: _Text) -> bool:
    place = 0
    while text.word(place) in {"explain", "extended", "formatted", "codegen", "cost"}:
        place += 1
    if text.word(place) == "alter":
        return text.word(place + 1) == "view"
    if text.word(place) != "create":
        return False
    kind = [text.word(p) for p in range(place + 1, place + 6)]
    # A global temporary view is seen by sessions that have none of this session's views.
    local = bool({"temp", "temporary"} & set(kind)) and "global" not in kind
    for word in kind:
        if word in {"view", "function"}:
            return not local
        if word in {"table", "schema", "database", "or", "as"} - {"or"}:
            return False
    return False


def _sample_at(text: _Text, place: int) -> Sample | Leftover:
    """The clause whose TABLESAMPLE stands at `place`."""
    table = _table_before(text, place)
    if table is None:
        return _not_a_table(text, place)
    first, last, parts = table
    label = ".".join(parts)
    end = text.closing[place + 1]
    inside = text.sql[text.tokens[place + 1].end + 1 : text.tokens[end].start]
    percent = _PERCENT.fullmatch(inside)
    if percent is None or Decimal(percent.group(1)) > 100:
        return Leftover(label, f"the index answers (p percent) only, not ({inside.strip()})")
    if len(parts) == 1 and _is_common_table(text, parts[0], first):
        return Leftover(label, "it is a WITH query, not a table")
    if text.word(end + 1) == "repeatable" and text.word(end + 2) == "(":
        end = text.closing[end + 2]
    return Sample(
        parts=parts,
        fraction=float(Decimal(percent.group(1)) / 100),
        table=Slice(text.tokens[first].start, text.tokens[last].end + 1),
        clause=Slice(text.tokens[place].start, text.tokens[end].end + 1),
        has_alias=_has_alias(text, end + 1 if last == place - 1 else last + 1),
    )


def _table_before(text: _Text, place: int) -> tuple[int, int, tuple[str, ...]] | None:
    """First and last token and the parts of the table that the clause at `place` samples."""
    if text.word(place - 1) == ")":
        return _filtered_table(text, text.opening[place - 1])
    first, parts = _name_that_ends(text, place - 1)
    if not parts or text.word(first - 1) not in _BEFORE_A_TABLE:
        return None
    return first, place - 1, parts


def _filtered_table(text: _Text, opening: int) -> tuple[int, int, tuple[str, ...]] | None:
    """The table of `(select * from table [[as] alias] [where ...])`."""
    words = [text.word(opening + step) for step in (1, 2, 3)]
    if words != ["select", "*", "from"]:
        return None
    first = last = opening + 4
    while text.word(last + 1) == "." and text.name(last + 2) is not None:
        last += 2
    name_start, parts = _name_that_ends(text, last)
    if not parts or name_start != first:
        return None
    closing = text.closing[opening]
    after = last + 1
    if _has_alias(text, after):
        after += 2 if text.word(after) == "as" else 1
    if after != closing and text.word(after) != "where":
        return None
    if any(text.word(p) in _CHANGES_ROWS for p in text.top_level(after, closing)):
        return None
    return first, last, parts


def _name_that_ends(text: _Text, last: int) -> tuple[int, tuple[str, ...]]:
    """First token and parts of the dotted name whose last token is at `last`."""
    first, part = last, text.name(last)
    parts: list[str] = []
    while part is not None:
        parts.insert(0, part)
        part = text.name(first - 2) if text.word(first - 1) == "." else None
        if part is not None:
            first -= 2
    return first, tuple(parts)


def _has_alias(text: _Text, place: int) -> bool:
    if text.word(place) == "as":
        return True
    name = text.name(place)
    return name is not None and text.word(place) not in _NOT_AN_ALIAS


def _not_a_table(text: _Text, place: int) -> Leftover:
    before = text.word(place - 1)
    if before == ")":
        return Leftover("a subquery", "only a table named right before TABLESAMPLE has an index")
    label = text.raw(place - 1) if place else "nothing"
    if text.word(place - 2) in {"of", "@"}:
        return Leftover(label, "the index answers samples of a table's current version only")
    return Leftover(label, "TABLESAMPLE does not stand right after a table's name")


def _is_common_table(text: _Text, name: str, place: int) -> bool:
    """Whether a WITH query called `name` is what the name at `place` means.

    A WITH query is seen from its end (a recursive one from its start) to the end of the
    parenthesis that the WITH stands in. Spark compares names without regard to case.
    """
    return any(
        query == name.lower() and seen_from <= place < seen_to
        for query, seen_from, seen_to in _common_tables(text)
    )


def _common_tables(text: _Text) -> Iterator[tuple[str, int, int]]:
    """Lower-case name, and first and last place (exclusive) where it is seen, of WITH queries."""
    starts = sorted(text.closing)
    for place in range(len(text.tokens)):
        if text.word(place) != "with":
            continue
        enclosing = [
            text.closing[p] for p in starts[: bisect_right(starts, place)] if text.closing[p] > place
        ]
        scope_end = min(enclosing, default=len(text.tokens))
        recursive = text.word(place + 1) == "recursive"
        query = place + (2 if recursive else 1)
        while (body := _body_of_common_table(text, query)) is not None:
            closing = text.closing[body]
            yield str(text.name(query)).lower(), body if recursive else closing, scope_end
            if text.word(closing + 1) != ",":
                break
            query = closing + 2


def _body_of_common_table(text: _Text, place: int) -> int | None:
    """The parenthesis that opens the query of `name [(columns)] [MAX RECURSION LEVEL n] AS (`."""
    if text.name(place) is None:
        return None
    after = place + 1
    if text.word(after) == "(":
        after = text.closing[after] + 1
    if text.word(after) == "max":
        after += 4
    # AS is optional in Spark.
    after += text.word(after) == "as"
    return after if text.word(after) == "(" and after != place + 1 else None
