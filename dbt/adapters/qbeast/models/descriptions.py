"""The descriptions that a model stores with its table: its own and those of its columns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ColumnComment:
    """The description of a column, empty if it has none.

    A name that the model quotes matches only in its exact case.
    """

    name: str
    text: str
    is_quoted: bool = False

    def is_of(self, column: str) -> bool:
        if self.is_quoted:
            return column == self.name
        return column.lower() == self.name.lower()


@dataclass(frozen=True)
class Descriptions:
    """What `persist_docs` stores with a table."""

    table: str | None
    """Empty for a model without a description; None to leave the table's comment unchanged."""
    columns: tuple[ColumnComment, ...]


def descriptions_of(config: Any, model: Mapping[str, Any]) -> Descriptions:
    """The descriptions of a model that its `persist_docs` configuration stores."""
    docs = config.get("persist_docs") or {}
    return Descriptions(
        table=(model.get("description") or "") if docs.get("relation") else None,
        columns=column_comments(model.get("columns")) if docs.get("columns") else (),
    )


def comment_of_column(name: str, columns: Mapping[str, Any]) -> str:
    """The description of a column, empty if it has none.

    Args:
        name: the name as the query spells it.
        columns: the `columns` of the model.
    """
    found = [comment.text for comment in column_comments(columns) if comment.is_of(name)]
    return next(filter(None, found), "")


def column_comments(columns: Mapping[str, Any] | None) -> tuple[ColumnComment, ...]:
    """The descriptions in the `columns` of a model."""
    return tuple(
        ColumnComment(name, column.get("description") or "", bool(column.get("quote")))
        for name, column in (columns or {}).items()
    )
