"""Names: as SQL text, and what a misspelt one stands for."""

import difflib
from collections.abc import Iterable


def quoted(name: str) -> str:
    """A name as one part of a path in SQL.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def closest(name: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known name that a misspelt one most likely stands for, whatever the case of either.

    `likeness` is how alike they must be, from 0 to 1.

    >>> closest("Apend", ["append", "merge"])
    'append'
    """
    by_lower = {each.lower(): each for each in known}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=likeness)
    return by_lower[found[0]] if found else None
