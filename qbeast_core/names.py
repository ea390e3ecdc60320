"""Quote names and texts for SQL, and suggest corrections for misspelt ones."""

import difflib
from collections.abc import Iterable


def quoted(name: str) -> str:
    """Quote a name as one part of a SQL identifier.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def quoted_text(text: str) -> str:
    """Quote a text as a string literal of SQL.

    Spark replaces `${...}` in a statement before it parses it, so the dollar sign is escaped there.

    >>> print(quoted_text("it's"))
    'it\\'s'
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{")
    return f"'{escaped}'"


def closest(name: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """Find the known name that is most similar to a misspelt one, ignoring case.

    Args:
        name: the misspelt name.
        known: the valid names.
        likeness: the minimum similarity, from 0 to 1.

    Returns:
        The most similar name as `known` spells it; None if no name is similar enough.

    >>> closest("Apend", ["append", "merge"])
    'append'
    """
    by_lower = {each.lower(): each for each in known}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=likeness)
    return by_lower[found[0]] if found else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """The part of a message that suggests the known name closest to a misspelt one.

    >>> suggestion("Apend", ["append", "merge"]), suggestion("x", ["append", "merge"])
    (" (did you mean 'append'?)", '')
    """
    close = closest(name, known)
    return f" (did you mean {close!r}?)" if close else ""
