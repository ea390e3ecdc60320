"""The base class of transformations, which map a column's values to coordinates.

Each kind has its own module; `transformation` collects them and reads their JSON.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from qbeast_core.errors import CorruptMetadata
from qbeast_core.model.datatypes import DataType, Number

PACKAGE = "io.qbeast.core.transform."

NullValueDraw = Callable[[Number, Number, DataType], Number]
"""Draws the value that replaces null, between a minimum and a maximum."""


class Transformation(ABC):
    """Maps the values of one indexed column to coordinates in [0, 1] (docs/format.md 4)."""

    class_name: ClassVar[str]
    """The class name stored in revisions, without its package."""

    @abstractmethod
    def transform(self, value: Any) -> float:
        """The coordinate of a value; None is null. Values out of range may map outside [0, 1].

        Raises ValueError for a value that the transformation does not accept.
        """

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The JSON object stored in revisions, with its keys in the stored order."""

    def is_superseded_by(self, other: Transformation) -> bool:
        """Whether data described by `other` needs a new revision."""
        return not isinstance(other, EmptyTransformation)

    def merged_with(self, other: Transformation, null_value: NullValueDraw) -> Transformation:
        """The transformation that covers both this data and that of `other`.

        Equals `self` unless `other` supersedes it. `null_value` draws the null value of a range
        that must grow.
        """
        return other if self.is_superseded_by(other) else self

    def _named(self, **fields: Any) -> dict[str, Any]:
        return {"className": PACKAGE + self.class_name, **fields}


@dataclass(frozen=True, slots=True)
class EmptyTransformation(Transformation):
    """The transformation of staging revisions, which index nothing: every coordinate is 0.0."""

    class_name: ClassVar[str] = "EmptyTransformation"

    def transform(self, value: Any) -> float:
        return 0.0

    def to_json(self) -> dict[str, Any]:
        return self._named()

    @staticmethod
    def from_json(_: Mapping[str, Any]) -> EmptyTransformation:
        return EmptyTransformation()


def field_of(json_object: Mapping[str, Any], field: str) -> Any:
    """The value of a required field. Raises CorruptMetadata if it is missing."""
    try:
        return json_object[field]
    except KeyError:
        raise CorruptMetadata(f"{field} is missing in {dict(json_object)!r:.200}") from None
