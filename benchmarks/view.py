"""What the templates of the report show of the results at one scale: figures and tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from benchmarks.cases.fractions import COUNT, FRACTION
from benchmarks.cases.size import ROWS
from benchmarks.changes import CHANGES, LAYOUT
from benchmarks.comparison import Comparison, figure, ratio_text
from benchmarks.results import Run
from benchmarks.targets import TARGETS, Target

NONE = "–"
"""A cell without a measurement."""

APPENDS_TO_DRAW = 10
"""The fewest appends that make a chart."""
_HEADER = ("case", "measured", "compared with", "ratio")


class Key(NamedTuple):
    """Which comparison a named figure is."""

    case: str
    unit: str
    ours: str = "qbeast"
    other: str = "plain Delta"


_PERCENTS = ("0.1", "1", "10")
_SAMPLED = (*_PERCENTS, "30")

FIGURES: Mapping[str, Key] = {
    "write": Key("write lineitem", "s"),
    "write_zorder": Key("write lineitem", "s", other="plain Delta, OPTIMIZE ZORDER"),
    "write_trips": Key("write trips", "s"),
    "write_join": Key("write a quarter of lineitem join orders", "s"),
    "rebuild": Key("rebuild lineitem", "s"),
    "append": Key("append 1 % to lineitem", "s"),
    "appends": Key("50 appends of 0.1 % to trips", "s"),
    "append_after": Key("an append after 50 and optimize", "s", "after", "the first ones"),
    "optimize": Key("optimize after 50 appends", "bytes", "rewritten", "appended"),
    "optimize_again": Key("optimize again", "files", "rewritten then", "rewritten at first"),
    "merge": Key("merge 1 % into trips", "s", other="MERGE of plain Delta"),
    "size": Key("lineitem, as stored", "bytes"),
    "size_trips": Key("trips, as stored", "bytes"),
    "plan_sample": Key("plan a 1 % sample of 10,000 files", "s", "qbeast, API", "0.3 s"),
    "plan_filtered": Key(
        "plan a 1 % sample of 10,000 files, filtered", "s", "qbeast, SQL where", "0.3 s"
    ),
    "plan_first": Key(
        "plan a 1 % sample of 10,000 files, the first time",
        "s",
        "qbeast, API",
        "Delta, TABLESAMPLE",
    ),
    "scan_time": Key("full scan of lineitem", "s"),
    "scan_bytes": Key("full scan of lineitem", "bytes"),
    "scan_time_trips": Key("full scan of trips", "s"),
    "range_time": Key("5 ranges of 1 % of lineitem, both columns", "s"),
    "range_time_sorted": Key(
        "5 ranges of 1 % of lineitem, both columns", "s", other="ZORDER, sorted"
    ),
    "error_few_values": Key("error of averages, low-cardinality index", "times", other="theory"),
    **{
        f"sample_{percent}_{short}_{unit}": Key(
            f"{percent} % sample of lineitem, {columns}", unit, "qbeast, API", "TABLESAMPLE"
        )
        for percent in _SAMPLED
        for short, columns in (("few", "2 columns"), ("all", "all columns"))
        for unit in ("s", "bytes")
    },
    **{
        f"range_{percent}_{short}": Key(
            f"{percent} % range of lineitem, l_partkey and l_shipdate", "bytes", other=other
        )
        for percent in _PERCENTS
        for short, other in (
            ("plain", "plain Delta"),
            ("zorder", "ZORDER"),
            ("sorted", "ZORDER, sorted"),
            ("slices", "qbeast, slices"),
        )
    },
    **{
        f"fractions_{what}{ending}": Key(
            f"bytes of {COUNT} samples of 0.1 to 100 % of lineitem, {what}",
            "times",
            f"qbeast{side}",
            "its part of a plain scan",
        )
        for what in ("mean", "worst")
        for ending, side in (("", ""), ("_slices", ", slices"))
    },
    "filtered_bytes": Key(
        "5 10 % samples in ranges of 10 % of lineitem",
        "bytes",
        "qbeast, SQL",
        "TABLESAMPLE of plain Delta",
    ),
}
"""The figures that pages and charts name. The texts are those of the stored results."""


class MissingResult(LookupError):
    """A page needs a figure that the results don't have."""


class View:
    """What the templates ask of the results at one scale."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._known = {
            Key(each.case, each.unit, each.ours.name, each.other.name): each
            for each in run.comparisons
        }
        self.scale = f"{run.scale:g}"
        self.environment = run.environment
        self.groups = {each.group for each in run.comparisons}

    def of(self, group: str) -> list[Comparison]:
        """The comparisons of a case of the suite."""
        return [each for each in self._run.comparisons if each.group == group]

    def has(self, group: str) -> bool:
        """Whether a case has run."""
        return group in self.groups

    def measured(self, group: str, unit: str, text: str) -> bool:
        """Whether a case has results in a unit whose description contains a text."""
        return any(each.unit == unit and text in each.case for each in self.of(group))

    def groups_of_day(self) -> dict[str, list[str]]:
        """The groups of comparisons by the day of their newest figures, oldest first."""
        newest: dict[str, str] = {}
        for each in self._run.comparisons:
            newest[each.group] = max(newest.get(each.group, ""), (each.measured or "")[:10])
        return {
            day: sorted(group for group in newest if newest[group] == day)
            for day in sorted({*newest.values()})
        }

    def is_older(self, *groups: str) -> bool:
        """Whether any of these groups has figures from before the present layout of files."""
        return any(_is_older(each) for group in groups for each in self.of(group))

    @property
    def older(self) -> str:
        """The groups with figures from before the present layout of files, as a list in words."""
        return _listed(sorted(group for group in self.groups if self.is_older(group)))

    def age(self, *groups: str) -> str:
        """The changes since some groups were measured, such as ` (measured before …)`; or nothing.

        If a change came after some groups only, the text names them.
        """
        measured = [group for group in groups if self.has(group)]
        found: dict[str, list[str]] = {}
        for change in CHANGES:
            outdated = [
                group
                for group in measured
                if any(change.outdates(group, each.measured) for each in self.of(group))
            ]
            if outdated:
                named = "" if outdated == measured else f"{_listed(outdated)}: "
                found.setdefault(named, []).append(change.what)
        texts = [
            f"{named}measured before {', and before '.join(what)}" for named, what in found.items()
        ]
        return f" ({'; '.join(texts)})" if texts else ""

    def heading(self, *groups: str) -> str:
        """The line above the tables of some groups."""
        return f"**Scale {self.scale}**{self.age(*groups)}"

    def has_appends(self) -> bool:
        """Whether there are enough appends for a chart of them."""
        return any(len(each.ours.values) >= APPENDS_TO_DRAW for each in self.of("growth"))

    def one(self, name: str) -> Comparison:
        """A figure by its name in `FIGURES`.

        Raises:
            MissingResult: its case has not run at this scale.
        """
        key = FIGURES[name]
        if key not in self._known:
            raise MissingResult(
                f"no result at scale {self.scale} for {key.case!r} in {key.unit}, "
                f"{key.ours} against {key.other}; run `make bench` and `make bench-large`"
            )
        return self._known[key]

    def ratio(self, name: str) -> str:
        """The ratio of a figure."""
        return ratio_text(self.one(name).ratio)

    def marked(self, name: str) -> str:
        """The ratio of a figure, marked if it misses its target or has another layout of files."""
        each = self.one(name)
        return _marked(self.ratio(name), "missed" if each.met is False else "", _is_older(each))

    def limit_of(self, name: str) -> str:
        """The largest ratio of a figure that meets its target."""
        return _limit(self.one(name).limit)

    def percent(self, name: str) -> str:
        """The ratio of a figure, in percent."""
        return percent(self.one(name).ratio or 0.0)

    def factor(self, name: str) -> str:
        """How many times smaller our side is."""
        return factor(self.one(name))

    def ours(self, name: str) -> str:
        """Our side of a figure."""
        each = self.one(name)
        return figure(each.ours.median, each.unit)

    def other(self, name: str) -> str:
        """The other side of a figure."""
        each = self.one(name)
        return figure(each.other.median, each.unit)

    def files(self, name: str) -> tuple[str, str]:
        """How many files both sides of a figure scanned."""
        each = self.one(name)
        ours, other = (figure(side.details["files"], "files") for side in (each.ours, each.other))
        return ours, other

    def between(self, *names: str) -> str:
        """The smallest and the largest ratio of some figures, in percent."""
        ratios = sorted(self.one(name).ratio or 0.0 for name in names)
        return f"{percent(ratios[0])} to {percent(ratios[-1])}"

    def factors(self, *names: str) -> str:
        """The smallest and the largest factor of some figures."""
        found = sorted((self.one(name) for name in names), key=lambda each: -(each.ratio or 0.0))
        return f"{factor(found[0])} to {factor(found[-1])}"

    def rows(self) -> str:
        """The rows of lineitem, in millions."""
        return _millions(self.one("scan_bytes"))

    def grown(self, what: str) -> list[Comparison]:
        """A measurement of the case `size`, such as `write`, from the smallest table on.

        Raises:
            MissingResult: the case has not run at this scale.
        """
        found = [each for each in self.of("size") if each.case.startswith(f"{what} of ")]
        if not found:
            raise MissingResult(
                f"no result at scale {self.scale} of the case 'size'; run `make bench-large`"
            )
        return sorted(found, key=lambda each: each.ours.details[ROWS])

    def sampled_fractions(self) -> list[Comparison]:
        """The samples of the case `fractions`.

        Raises:
            MissingResult: the case has not run at this scale.
        """
        found = [each for each in self.of("fractions") if FRACTION in each.ours.details]
        if not found:
            raise MissingResult(
                f"no result at scale {self.scale} of the case 'fractions'; run `make bench`"
            )
        return found

    def growth_of(self, what: str) -> str:
        """The ratios of a measurement of the case `size`, each with its number of rows."""
        found = self.grown(what)
        return ", ".join(f"{ratio_text(each.ratio)} for {_millions(each)}" for each in found)

    def of_largest(self, what: str) -> tuple[str, str]:
        """Both sides of a measurement of the case `size`, with the largest table."""
        largest = self.grown(what)[-1]
        return figure(largest.ours.median, largest.unit), figure(largest.other.median, largest.unit)

    def largest(self) -> str:
        """The rows of the largest table of the case `size`, in millions."""
        return _millions(self.grown("write")[-1])

    def smallest(self) -> str:
        """The rows of the smallest table of the case `size`, in millions."""
        return _millions(self.grown("write")[0])

    def saved(self, what: str) -> str:
        """What the smallest table of the case `size` saves of the other side's time."""
        smallest = self.grown(what)[0]
        return figure(smallest.other.median - smallest.ours.median, smallest.unit)

    def samples_to_repay(self) -> int:
        """How many 1 % samples save the extra time of a write, for the largest table of `size`."""
        write, sample = self.grown("write")[-1], self.grown("1 % sample")[-1]
        extra = write.ours.median - write.other.median
        return math.ceil(extra / (sample.other.median - sample.ours.median))

    def met_targets(self) -> str:
        """How many of the measured targets are met, such as `17 of 20`."""
        met = [not self.misses(key) for key in TARGETS if self._aimed_at(key)]
        return f"{sum(met)} of {len(met)}"

    def misses(self, target: str) -> bool:
        """Whether a target was measured and not met."""
        return any(each.met is False for each in self._aimed_at(target))

    def aims_at(self, target: str) -> str:
        """The ratios that were measured for a target, marked as in `marked`."""
        found = self._aimed_at(target)
        if not found:
            return NONE
        ratios = [each.ratio for each in found if each.ratio is not None]
        met = [bool(each.met) for each in found]
        missed = f"{sum(met)} of {len(met)} met" if any(met) else "missed"
        return _marked(
            _span(ratios) if len(ratios) == len(found) else "nothing on the other side",
            "" if all(met) else missed,
            any(map(_is_older, found)),
        )

    def limit(self, target: Target) -> str:
        """The largest ratio that meets a target."""
        return _limit(target.limit(self._run.scale))

    def table(self, *groups: str) -> str:
        """The comparisons of some cases, a row each."""
        return markdown(_HEADER, [_row(each) for group in groups for each in self.of(group)])

    def sizes_with_slices(self) -> str:
        """The sizes of the tables with and without slices."""
        found = [each for each in self.of("sample") if each.case.endswith("as stored")]
        return markdown(_HEADER, [_row(each) for each in found])

    def pivot(self, group: str, unit: str, source: str) -> str:
        """The comparisons of a case with a row for each question and a column for each side.

        One side is in all comparisons of a group: its column comes first, and the others have the
        ratio in parentheses.
        """
        found = [
            each for each in self.of(group) if each.unit == unit and f" of {source}" in each.case
        ]
        ours, others = ({side(each) for each in found} for side in (_ours, _other))
        base, varied = (_ours, _other) if len(ours) == 1 else (_other, _ours)
        assert len(ours) == 1 or len(others) == 1
        columns = list(dict.fromkeys(varied(each) for each in found))
        rows = []
        for case in dict.fromkeys(each.case for each in found):
            cells = {varied(each): each for each in found if each.case == case}
            first = next(iter(cells.values()))
            rows.append(
                [case.replace(f" of {source}", ""), _value(first, base(first))]
                + [_with_ratio(cells.get(name), name) for name in columns]
            )
        header = [f"{group.rstrip('s')} of {source}", base(found[0]), *columns]
        return markdown(header, rows)

    def _aimed_at(self, target: str) -> list[Comparison]:
        return [each for each in self._run.comparisons if each.target == target]


def targets(views: Sequence[View]) -> str:
    """A table of all targets: their limits, and what was measured at each scale."""
    rows = []
    for key, target in TARGETS.items():
        limit = views[0].limit(target)
        others = {view.scale: view.limit(target) for view in views[1:]}
        limit += "".join(f"; scale {at}: {each}" for at, each in others.items() if each != limit)
        rows.append([target.title, limit, *(view.aims_at(key) for view in views)])
    return markdown(["target", "limit", *(f"scale {view.scale}" for view in views)], rows)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [list(header), ["---"] * len(header), *[list(row) for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def percent(ratio: float) -> str:
    """A ratio in percent, to two digits.

    >>> percent(0.01094), percent(0.138), percent(1.031)
    ('1.1 %', '14 %', '103 %')
    """
    value = 100 * ratio
    return f"{value:.0f} %" if value >= 10 else f"{value:.2g} %"


def factor(each: Comparison) -> str:
    """How many times smaller our side is, to two digits from 10 on and one decimal below."""
    assert each.ratio
    value = 1 / each.ratio
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def _is_older(each: Comparison) -> bool:
    return LAYOUT.outdates(each.group, each.measured)


def _marked(ratio: str, missed: str, is_older: bool) -> str:
    """A ratio with its notes in parentheses: a missed target, an older measurement."""
    notes = ", ".join([missed] * bool(missed) + ["older"] * is_older)
    return (f"**{ratio}**" if missed else ratio) + (f" ({notes})" if notes else "")


def _listed(groups: Iterable[str]) -> str:
    return ", ".join(groups).replace("_", " ")


def _limit(limit: float | None) -> str:
    return NONE if limit is None else f"≤ {ratio_text(limit)}"


def _row(each: Comparison) -> list[str]:
    return [each.case, _cell(each, each.ours.name), _cell(each, each.other.name), _ratio(each)]


def _millions(each: Comparison) -> str:
    """The rows of our side, in millions."""
    return f"{each.ours.details[ROWS] / 1e6:.0f} million"


def _span(ratios: Iterable[float]) -> str:
    found = sorted(ratios)
    low, high = ratio_text(found[0]), ratio_text(found[-1])
    return low if low == high else f"{low} to {high}"


def _ours(each: Comparison) -> str:
    return each.ours.name


def _other(each: Comparison) -> str:
    return each.other.name


def _value(each: Comparison, side: str) -> str:
    return figure((each.ours if side == each.ours.name else each.other).median, each.unit)


def _cell(each: Comparison, side: str) -> str:
    """The side and its value; a side that is named by its value stands alone."""
    value = _value(each, side)
    return value if value == side else f"{side}: {value}"


def _with_ratio(each: Comparison | None, side: str) -> str:
    return NONE if each is None else f"{_value(each, side)} ({_ratio(each)})"


def _ratio(each: Comparison) -> str:
    return ratio_text(each.ratio)
