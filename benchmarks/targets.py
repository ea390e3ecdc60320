"""The targets: what each judges, its title in the report, and the largest ratio that meets it.

A comparison's case, unit and other side determine its target. So today's targets also judge older
results. A ratio is our figure divided by the other side's, so smaller is always better. Targets
apply from scale 1 on, because below that, starting a job costs more than its work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from benchmarks.comparison import Comparison


@dataclass(frozen=True)
class Target:
    """One target."""

    title: str
    limits: Mapping[float, float]
    """The largest ratio that meets the target, by the scale factor from which it applies."""
    case: str
    """The cases that have this target, as a pattern of `fnmatch`."""
    unit: str = "s"
    other: str = "plain Delta"
    """The name of the other side."""

    def limit(self, scale: float) -> float | None:
        """The largest ratio that meets the target at a scale; None below its first scale."""
        reached = [start for start in self.limits if scale >= start]
        return self.limits[max(reached)] if reached else None

    def is_of(self, each: Comparison) -> bool:
        """Whether a comparison has this target."""
        return (each.unit, each.other.name) == (self.unit, self.other) and fnmatchcase(
            each.case, self.case
        )


def judged(each: Comparison, scale: float) -> Comparison:
    """A comparison with its target, if it has one, and the target's limit at this scale."""
    key = next((key for key, target in TARGETS.items() if target.is_of(each)), None)
    return replace(each, target=key, limit=TARGETS[key].limit(scale) if key else None)


def _always(
    title: str, limit: float, case: str, unit: str = "s", other: str = "plain Delta"
) -> Target:
    return Target(title, {1: limit}, case, unit, other)


def _sample_bytes(key: str, columns: str, limits: Mapping[str, float]) -> dict[str, Target]:
    """Targets for the bytes that samples read, by percent.

    Args:
        limits: how many times its part of a plain scan a sample may read.
    """
    return {
        f"sample_{key}_bytes_{percent}": _always(
            f"{percent} % sample of {columns}: bytes read, against TABLESAMPLE",
            limit * float(percent) / 100,
            f"{percent} % sample of *, {columns}",
            "bytes",
            "TABLESAMPLE",
        )
        for percent, limit in limits.items()
    }


TARGETS: Mapping[str, Target] = {
    "write": _always(
        "write of a scanned source: time, against plain Delta", 1.25, "write lineitem"
    ),
    "write_zorder": _always(
        "the same, against plain Delta and OPTIMIZE ZORDER",
        0.4,
        "write lineitem",
        other="plain Delta, OPTIMIZE ZORDER",
    ),
    "write_original": _always(
        "the same, against qbeast-spark, each over its plain Delta",
        0.5,
        "write lineitem, over plain Delta",
        "times",
        "qbeast-spark",
    ),
    "write_join": _always(
        "write of an expensive query: time, against plain Delta",
        1.3,
        "write a quarter of lineitem join orders",
    ),
    "rebuild": _always(
        "rebuild whose tree still fits: time, against plain Delta", 1.15, "rebuild lineitem"
    ),
    "sample_few_1": Target(
        "1 % sample of 2 columns: time, against TABLESAMPLE",
        {1: 1 / 3, 10: 1 / 10},
        "1 % sample of *, 2 columns",
        other="TABLESAMPLE",
    ),
    "sample_all_1": Target(
        "1 % sample of all columns: time, against TABLESAMPLE",
        {1: 1 / 5, 10: 1 / 15},
        "1 % sample of *, all columns",
        other="TABLESAMPLE",
    ),
    "sample_all_10": Target(
        "10 % sample of all columns: time, against TABLESAMPLE",
        {1: 1 / 4, 10: 1 / 5},
        "10 % sample of *, all columns",
        other="TABLESAMPLE",
    ),
    **_sample_bytes("all", "all columns", {"0.1": 1.5, "1": 1.2, "10": 1.2, "30": 1.2}),
    **_sample_bytes("few", "2 columns", {"0.1": 3.5, "1": 1.5, "10": 1.3, "30": 1.3}),
    "fractions_mean": _always(
        "samples of 0.1 to 100 %: bytes read, against the same part of a plain scan, mean",
        1.9,
        "bytes of * samples of 0.1 to 100 % of lineitem, mean",
        "times",
        "its part of a plain scan",
    ),
    "fractions_worst": _always(
        "the same, the worst of 40",
        3.6,
        "bytes of * samples of 0.1 to 100 % of lineitem, worst",
        "times",
        "its part of a plain scan",
    ),
    "range_zorder": _always(
        "range filters: bytes read, against default ZORDER",
        0.35,
        "* % range of *",
        "bytes",
        "ZORDER",
    ),
    "range_sorted": _always(
        "range filters: bytes read, against sorted ZORDER",
        1.0,
        "* % range of *",
        "bytes",
        "ZORDER, sorted",
    ),
    "scan_time": _always("full scan: time, against plain Delta", 1.05, "full scan of lineitem"),
    "scan_bytes": _always(
        "full scan: bytes read, against plain Delta", 1.05, "full scan of lineitem", "bytes"
    ),
    "planning": _always(
        "planning a sample of 10,000 files: time, against 0.3 s",
        1.0,
        "plan a 1 % sample of 10,000 files",
        other="0.3 s",
    ),
    "planning_delta": _always(
        "the same, against Delta's own planning",
        1.0,
        "plan a 1 % sample of 10,000 files",
        other="Delta, TABLESAMPLE",
    ),
    "planning_filtered": _always(
        "planning a filtered sample of 10,000 files: time, against Delta's own planning",
        1.0,
        "plan a 1 % sample of 10,000 files, filtered",
        other="Delta, TABLESAMPLE where",
    ),
    "planning_first": _always(
        "planning a sample of 10,000 files for the first time: time, against Delta's own planning",
        1.0,
        "plan a 1 % sample of 10,000 files, the first time",
        other="Delta, TABLESAMPLE",
    ),
    "append": _always("append of 1 %: time, against plain Delta", 1.3, "append 1 % to lineitem"),
    "appends": _always(
        "append of 0.1 %: time, against plain Delta", 1.5, "50 appends of 0.1 % to trips"
    ),
    "append_flat": _always(
        "append after 50 and optimize: time, against the first ones",
        1.2,
        "an append after 50 and optimize",
        other="the first ones",
    ),
    "optimize": _always(
        "optimize after 50 appends: bytes rewritten, against appended",
        3.0,
        "optimize after 50 appends",
        "bytes",
        "appended",
    ),
    "optimize_again": _always(
        "second optimize: files rewritten, against the first",
        0.0,
        "optimize again",
        "files",
        "rewritten at first",
    ),
    "memory": _always(
        "write: driver memory kept beyond Spark's, against 1 GiB",
        1.0,
        "memory kept by writing lineitem",
        "bytes",
        "1 GiB",
    ),
}
