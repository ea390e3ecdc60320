"""Changes of dbt-qbeast and of the suite after which older results are out of date."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """One change. The report says of older results that they were measured before it."""

    since: str
    """When it was committed, in UTC."""
    what: str
    """What follows "measured before" in the report."""
    groups: Collection[str] = ()
    """The groups of comparisons that it affects; all of them if empty."""

    def outdates(self, group: str, measured: str | None) -> bool:
        """Whether it came after a measurement of a group. A run without a date is new."""
        affects = not self.groups or group in self.groups
        return affects and measured is not None and measured < self.since


LAYOUT = Change("2026-11-28T08:35:45+00:00", "ADR 31 changed the layout of files")
"""Files got their present layout (ADR 31)."""
CHANGES = (
    LAYOUT,
    Change(
        "2026-11-28T16:32:07+00:00",
        "ADR 32 compared filters in Python instead of in a Spark job",
        ("planning", "filtered_sample"),
    ),
    Change(
        "2026-11-29T14:50:00+00:00",
        "the sides took turns",
        ("growth", "planning", "original"),
    ),
)
