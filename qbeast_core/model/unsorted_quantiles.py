"""Quantiles that another program stored out of order.

qbeast-spark does not check their order. It sorts the strings that it measures by their UTF-8 bytes,
but searches them by their UTF-16 units, so coordinates do not follow the order of the values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

from qbeast_core.errors import CorruptMetadata
from qbeast_core.model.coordinate import Transformation

T = TypeVar("T")
K = TypeVar("K", float, bytes)


@dataclass(frozen=True, slots=True)
class UnsortedQuantiles(Transformation):
    """Quantiles or a histogram that are not in ascending order.

    Rows can still be sampled by their weights. Filters look everywhere, and further rows need a
    new revision.
    """

    stored: Mapping[str, Any]
    """The JSON object."""

    def transform(self, value: Any) -> float:
        """Raises CorruptMetadata."""
        raise CorruptMetadata(
            "quantiles that are not in ascending order place no rows, so the next write measures "
            f"others: {dict(self.stored)!r:.200}"
        )

    def to_json(self) -> dict[str, Any]:
        return dict(self.stored)

    def is_superseded_by(self, other: Transformation) -> bool:
        return True


def is_ascending(values: Sequence[T], key: Callable[[T], K]) -> bool:
    """Whether the values are in ascending order of their keys; values may repeat."""
    keys = [key(value) for value in values]
    return not any(low > high for low, high in pairwise(keys))
