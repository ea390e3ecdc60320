"""A measurement of two sides, their ratio, and the target for it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table


@dataclass(frozen=True)
class Side:
    """The measured values of one side."""

    name: str
    values: tuple[float, ...]
    details: Mapping[str, float] = field(default_factory=dict)
    """Further figures to store, such as the number of files that Spark scheduled."""

    @property
    def median(self) -> float:
        return statistics.median(self.values)


@dataclass(frozen=True)
class Comparison:
    """Our side and another one. The smaller the ratio, the better for ours."""

    case: str
    """What was measured, such as `1 % sample, 2 columns`."""
    unit: str
    """`s`, `bytes`, `files`, or `times` if the values are ratios."""
    ours: Side
    other: Side
    target: str | None = None
    """The key of a row of `targets.TARGETS`."""
    limit: float | None = None
    """The largest ratio that meets the target; None without a target at this scale."""
    group: str = ""
    """The module in `benchmarks.cases` that measured it."""
    measured: str | None = None
    """When its run started, in UTC; None until it is loaded."""

    @property
    def ratio(self) -> float | None:
        """Our median over the other side's; None if only the other side's is zero."""
        if self.other.median == 0.0:
            return 0.0 if self.ours.median == 0.0 else None
        return self.ours.median / self.other.median

    @property
    def met(self) -> bool | None:
        """Whether the ratio is within the limit; None without a limit."""
        if self.limit is None:
            return None
        return self.ratio is not None and self.ratio <= self.limit

    def line(self) -> dict[str, Any]:
        """The comparison as JSON, for the results."""
        return {
            "group": self.group,
            "case": self.case,
            "unit": self.unit,
            "ours": _stored(self.ours),
            "other": _stored(self.other),
            "ratio": None if self.ratio is None else round(self.ratio, 4),
        }

    @staticmethod
    def of_line(line: Mapping[str, Any]) -> Comparison:
        """The comparison of a stored line. `targets.judged` adds its target."""
        return Comparison(
            line["case"],
            line["unit"],
            _read(line["ours"]),
            _read(line["other"]),
            group=line["group"],
        )


def table_of(title: str, comparisons: Sequence[Comparison]) -> Table:
    """The comparisons as a table for a terminal."""
    table = Table("case", "ours", "other", "ratio", "target", "met", title=title)
    for each in comparisons:
        table.add_row(
            each.case,
            f"{each.ours.name}: {figure(each.ours.median, each.unit)}",
            f"{each.other.name}: {figure(each.other.median, each.unit)}",
            ratio_text(each.ratio),
            ratio_text(each.limit) if each.limit is not None else "",
            {True: "yes", False: "no", None: ""}[each.met],
        )
    return table


def figure(value: float, unit: str) -> str:
    """A value with its unit, to about three digits.

    >>> figure(0.1234, "s"), figure(12_345_678, "bytes"), figure(3, "files")
    ('0.123 s', '12.3 MB', '3 files')
    """
    if unit == "bytes":
        for power, name in ((9, "GB"), (6, "MB"), (3, "kB")):
            if value >= 10**power:
                return f"{_digits(value / 10**power)} {name}"
        return f"{value:.0f} bytes"
    if unit in ("s", "times"):
        return f"{_digits(value)} {unit}"
    return f"{value:,.0f} {unit}"


def ratio_text(ratio: float | None) -> str:
    """A ratio to about three digits.

    >>> ratio_text(0.0123), ratio_text(1.2345), ratio_text(None)
    ('0.0123', '1.23', '-')
    """
    return "-" if ratio is None else _digits(ratio)


def _digits(value: float) -> str:
    if value == 0 or value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.3g}"


def _stored(side: Side) -> dict[str, Any]:
    return {
        "name": side.name,
        "values": [round(value, 6) for value in side.values],
        **({"details": dict(side.details)} if side.details else {}),
    }


def _read(stored: Mapping[str, Any]) -> Side:
    return Side(stored["name"], tuple(stored["values"]), stored.get("details", {}))
