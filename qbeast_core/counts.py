"""Counts in messages."""


def counted(number: int, noun: str) -> str:
    """Write a number with its noun, in the singular or the plural.

    >>> counted(1, "cube"), counted(1234, "row"), counted(0, "file")
    ('1 cube', '1,234 rows', '0 files')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
