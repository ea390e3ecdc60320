"""A column as Spark describes it."""

from dataclasses import dataclass

from dbt.adapters.spark.column import SparkColumn

from qbeast_core import quoted


@dataclass
class QbeastColumn(SparkColumn):
    @property
    def quoted(self) -> str:
        """The name in backticks; backticks inside it are doubled."""
        return quoted(self.column)


def unquoted(name: str) -> str:
    """A name without the backticks around it.

    >>> unquoted("`a``b`"), unquoted("a.b")
    ('a`b', 'a.b')
    """
    if len(name) > 2 and name.startswith("`") and name.endswith("`"):
        return name[1:-1].replace("``", "`")
    return name
