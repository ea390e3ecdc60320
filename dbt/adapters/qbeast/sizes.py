"""Sizes in messages."""


def size_text(size_bytes: int) -> str:
    """A size with its unit, in three digits.

    >>> size_text(640), size_text(1_234_567)
    ('640 B', '1.23 MB')
    """
    size = float(size_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"
