"""A statement of Spark SQL as tokens: words, names, parentheses, and what its WITH queries hide."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

from sqlglot import TokenType
from sqlglot.dialects import Spark
from sqlglot.errors import TokenError


class Kind(Enum):
    WORD = "a keyword or a name without quotes"
    QUOTED = "a name in backticks"
    LITERAL = "a string, a number or a hint"
    SIGN = "everything else"


@dataclass(frozen=True)
class Token:
    kind: Kind
    text: str
    """As written; of a quoted name what stands between its backticks."""
    start: int
    end: int
    """Exclusive."""


class UnreadableText(ValueError):
    """The tokens of a text cannot be trusted to be those that Spark would see."""


class SqlText:
    """One statement. Places are indexes of tokens; one outside the statement holds nothing.

    Raises UnreadableText for a text that is more than one statement or whose quotes or parentheses
    do not close, and for what sqlglot's tokenizer reads otherwise than Spark's does: a `--` comment
    continued by a backslash at the end of its line, and strings in dollar signs.
    """

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.tokens = _tokens_of(sql)
        self.closing = _parentheses(self.tokens)
        self.opening = {closing: opening for opening, closing in self.closing.items()}
        last = len(self.tokens) - 1
        for place in range(len(self.tokens)):
            if self.word(place) == ";" and place != last:
                raise UnreadableText("it is more than one statement")
            if self.word(place) == "$" and self.word(place + 1) != "{":
                raise UnreadableText("it has a string in dollar signs")

    def word(self, place: int) -> str:
        """The unquoted word (in lower case) or the sign at `place`, else an empty text."""
        if not 0 <= place < len(self.tokens):
            return ""
        token = self.tokens[place]
        return token.text.lower() if token.kind in (Kind.WORD, Kind.SIGN) else ""

    def name(self, place: int) -> str | None:
        """The part of a name at `place`, unquoted. A keyword is one too: Spark reserves few."""
        if not 0 <= place < len(self.tokens):
            return None
        token = self.tokens[place]
        return token.text if token.kind in (Kind.WORD, Kind.QUOTED) else None

    def name_from(self, first: int) -> tuple[int, tuple[str, ...]]:
        """Last token and parts of the dotted name that starts at `first`; no parts: no name."""
        return self._name(first, step=1)

    def name_until(self, last: int) -> tuple[int, tuple[str, ...]]:
        """First token and parts of the dotted name that ends at `last`."""
        place, parts = self._name(last, step=-1)
        return place, parts[::-1]

    def between(self, opening: int) -> str:
        """The text inside the parenthesis that opens at `opening`."""
        return self.sql[self.tokens[opening].end : self.tokens[self.closing[opening]].start]

    def top_level(self, start: int, end: int) -> Iterator[int]:
        """The places from `start` to `end` (exclusive), nothing of what parentheses enclose."""
        place = start
        while place < end:
            yield place
            place = self.closing.get(place, place) + 1

    def is_common_table(self, name: str, place: int) -> bool:
        """Whether a WITH query called `name` is what that name means at `place`."""
        return any(
            table.name == name.lower() and table.seen_from <= place < table.seen_to
            for table in self._common_tables
        )

    def _name(self, place: int, step: int) -> tuple[int, tuple[str, ...]]:
        parts: list[str] = []
        part = self.name(place)
        while part is not None:
            parts.append(part)
            part = self.name(place + 2 * step) if self.word(place + step) == "." else None
            if part is not None:
                place += 2 * step
        return place, tuple(parts)

    @cached_property
    def _common_tables(self) -> tuple["_CommonTable", ...]:
        places = range(len(self.tokens))
        return tuple(t for p in places if self.word(p) == "with" for t in self._defined_by(p))

    def _defined_by(self, place: int) -> Iterator["_CommonTable"]:
        """The queries of the WITH at `place`."""
        around = (end for start, end in self.closing.items() if start < place < end)
        seen_to = min(around, default=len(self.tokens))
        recursive = self.word(place + 1) == "recursive"
        query = place + (2 if recursive else 1)
        while (body := self._body_of_common_table(query)) is not None:
            closing = self.closing[body]
            name = self.tokens[query].text.lower()
            yield _CommonTable(name, body if recursive else closing, seen_to)
            if self.word(closing + 1) != ",":
                break
            query = closing + 2

    def _body_of_common_table(self, place: int) -> int | None:
        """Where the query of `name [(columns)] [MAX RECURSION LEVEL n] [AS] (` opens."""
        if self.name(place) is None:
            return None
        after = place + 1
        if self.word(after) == "(" and self.word(after + 1) not in _STARTS_A_QUERY:
            after = self.closing[after] + 1
        if self.word(after) == "max":
            after += 4
        if self.word(after) == "as":
            after += 1
        return after if self.word(after) == "(" else None


@dataclass(frozen=True)
class _CommonTable:
    """A WITH query and the places that see it: from its end, or its start if it is recursive, to
    the end of the parenthesis around its WITH. Spark compares their names without regard to case.
    """

    name: str
    seen_from: int
    seen_to: int


_STARTS_A_QUERY = frozenset({"select", "with", "from", "values", "table", "("})
_CONTINUED_COMMENT = re.compile(r"--[^\n]*\\\n")
_WORD = re.compile(r"\w+")
_STRINGS = frozenset(
    {
        TokenType.STRING,
        TokenType.RAW_STRING,
        TokenType.NATIONAL_STRING,
        TokenType.HEX_STRING,
        TokenType.BIT_STRING,
        TokenType.BYTE_STRING,
        TokenType.NUMBER,
        TokenType.HINT,
    }
)


class _Tokenizer(Spark.Tokenizer):  # type: ignore[misc]
    """sqlglot's, without its shortcut of taking all that follows EXPLAIN or CALL as one string."""

    COMMANDS: Any = frozenset()


def _tokens_of(sql: str) -> list[Token]:
    try:
        found = _Tokenizer(dialect="spark").tokenize(sql)
    except TokenError as error:
        raise UnreadableText("a quote or a comment in it does not end") from error
    tokens: list[Token] = []
    end = 0
    for token in found:
        if token.start < end:
            continue  # of `1L` sqlglot makes a number, a sign and a type, all in the same place
        if _CONTINUED_COMMENT.search(sql, end, token.start):
            raise UnreadableText("a comment in it is continued by a backslash")
        tokens.extend(_split(sql, token))
        end = token.end + 1
    return tokens


def _split(sql: str, token: Any) -> Iterator[Token]:
    """sqlglot's token as ours: of `ORDER BY` it makes one."""
    start, end = token.start, token.end + 1
    written = sql[start:end]
    if token.token_type == TokenType.IDENTIFIER:
        yield Token(Kind.QUOTED, token.text, start, end)
    elif token.token_type in _STRINGS:
        yield Token(Kind.LITERAL, written, start, end)
    elif _WORD.match(written):
        for word in _WORD.finditer(sql, start, end):
            yield Token(Kind.WORD, word.group(), word.start(), word.end())
    else:
        yield Token(Kind.SIGN, written, start, end)


def _parentheses(tokens: list[Token]) -> dict[int, int]:
    """The place of each opening parenthesis with that of the one that closes it."""
    closing: dict[int, int] = {}
    open_places: list[int] = []
    for place, token in enumerate(tokens):
        if token.kind is Kind.SIGN and token.text == "(":
            open_places.append(place)
        elif token.kind is Kind.SIGN and token.text == ")":
            if not open_places:
                raise UnreadableText("a parenthesis in it has no beginning")
            closing[open_places.pop()] = place
    if open_places:
        raise UnreadableText("a parenthesis in it does not end")
    return closing
