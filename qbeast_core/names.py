"""Names as SQL text."""


def quoted(name: str) -> str:
    """A name as one part of a path in SQL."""
    return "`" + name.replace("`", "``") + "`"
