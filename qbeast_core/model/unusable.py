"""Transformations of other programs whose coordinates this library does not compute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qbeast_core.errors import CorruptMetadata
from qbeast_core.model.coordinate import Transformation


@dataclass(frozen=True, slots=True)
class UnusableTransformation(Transformation):
    """A transformation that is read, but places no rows.

    Rows can still be sampled by their weights. Filters look everywhere, and further rows need a
    new revision.
    """

    stored: Mapping[str, Any]
    """The JSON object."""
    reason: str
    """Why it is not used, as the end of a sentence."""

    def transform(self, value: Any) -> float:
        """Raises CorruptMetadata."""
        raise CorruptMetadata(
            f"no row can be placed by {dict(self.stored)!r:.200}, because {self.reason}; the next "
            "write begins a new revision"
        )

    def to_json(self) -> dict[str, Any]:
        return dict(self.stored)

    def is_superseded_by(self, other: Transformation) -> bool:
        return True
