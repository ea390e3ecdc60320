"""The result of an estimate: one number, or one for each group, with an interval."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from qbeast_core.counts import counted

Number = int | float | Decimal

_SHOWN = 50


@dataclass(frozen=True)
class GroupEstimate:
    """The estimate of one group."""

    group: tuple[Any, ...]
    """The values of `group_by`; empty without `group_by`."""
    value: Number | None
    """The estimate; None if SQL returns null, as for the average of no rows."""
    low: Number | None
    high: Number | None
    """Ends of the interval; None if the sample is too small. Equal to `value` if it is exact."""
    rows: int
    """Rows of the sample that are aggregated; all such rows if the answer is exact."""
    too_small: bool = False
    """Whether the group has too few rows for the tolerance, so its interval is unreliable."""

    def to_dict(self) -> dict[str, Any]:
        """Convert to values that JSON supports; other group values become text."""
        group = [each if _is_json(each) else str(each) for each in self.group]
        ends = {name: _plain(getattr(self, name)) for name in ("value", "low", "high")}
        return {**asdict(self), **ends, "group": group}


@dataclass(frozen=True)
class Estimate:
    """The result of `QbeastTable.estimate`: the numbers, and what was read for them.

    `str()` returns it as a report of a few lines.
    """

    expression: str
    where: str | None
    group_by: tuple[str, ...]
    tolerance: float
    confidence: float
    groups: tuple[GroupEstimate, ...]
    """One entry without `group_by`, else one for each group that was found, sorted by group."""
    exact: bool
    """Whether all rows were read."""
    reason: str
    """Why the answer is exact, or why the estimate is precise enough."""
    fraction: float
    """The sample fraction; 1.0 if the answer is exact."""
    looks: int
    """The number of samples that were taken."""
    files: int
    """The number of distinct files that were read."""
    size_bytes: int
    """The bytes of all files that were read; a file that was read twice counts twice."""
    table_files: int
    table_bytes: int

    @property
    def value(self) -> Number | None:
        """The estimate. Raises ValueError if there is a `group_by`."""
        return self._only.value

    @property
    def low(self) -> Number | None:
        """The lower end of the interval. Raises ValueError if there is a `group_by`."""
        return self._only.low

    @property
    def high(self) -> Number | None:
        """The upper end of the interval. Raises ValueError if there is a `group_by`."""
        return self._only.high

    @property
    def largest_unseen_group(self) -> float:
        """The number of distinct weights that an unlisted group can have, at the confidence.

        A sample can miss small groups. 0 if the answer is exact.
        """
        return 0.0 if self.exact else -math.log(1.0 - self.confidence) / self.fraction

    def to_dict(self) -> dict[str, Any]:
        """Convert to values that JSON supports."""
        groups = [group.to_dict() for group in self.groups]
        unseen = {"largest_unseen_group": self.largest_unseen_group}
        return {**asdict(self), "group_by": list(self.group_by), "groups": groups, **unseen}

    def __str__(self) -> str:
        lines = [f"{self.expression}{' where ' + self.where if self.where else ''}"]
        lines += [self._line(group) for group in self.groups[:_SHOWN]]
        if len(self.groups) > _SHOWN:
            lines.append(f"  and {counted(len(self.groups) - _SHOWN, 'more group')}")
        share = self.size_bytes / self.table_bytes if self.table_bytes else 0.0
        read = f"{self.files:,} of {counted(self.table_files, 'file')}, {share:.1%} of the bytes"
        if self.exact:
            lines.append(f"exact, because {self.reason}; read {read}")
        else:
            lines.append(
                f"from {self.fraction:.3%} of the rows, {self.confidence:.4g} confidence; "
                f"read {read} in {counted(self.looks, 'sample')}"
            )
            if self.group_by:
                few = math.ceil(self.largest_unseen_group)
                weights = counted(few, "distinct weight")
                lines.append(f"groups with fewer than about {weights} may be missing")
        return "\n".join(lines)

    def _line(self, group: GroupEstimate) -> str:
        name = ", ".join("null" if each is None else str(each) for each in group.group)
        text = f"  {name}: " if self.group_by else "  "
        text += "null" if group.value is None else f"{group.value:,.6g}"
        if not self.exact:
            known = group.low is not None and group.high is not None
            text += f"  ({group.low:,.6g} to {group.high:,.6g})" if known else "  (unknown)"
        return text + ("  group too small" if group.too_small else "")

    @property
    def _only(self) -> GroupEstimate:
        if self.group_by:
            raise ValueError("an estimate with group_by has a value per group; read `groups`")
        return self.groups[0]


def _is_json(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def _plain(value: Number | None) -> int | float | None:
    return float(value) if isinstance(value, Decimal) else value
