"""Render the stored results as docs/performance.md, with pictures: `python -m benchmarks.report`.

The text stands in `performance.md.jinja`; figures come from `results/` and nowhere else.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import jinja2

from benchmarks import plots
from benchmarks.cases.size import ROWS
from benchmarks.comparison import Comparison, figure, ratio_text
from benchmarks.results import RESULTS, Run, latest
from benchmarks.targets import TARGETS, Target

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs/performance.md"


def main() -> None:
    """Write the page and its pictures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    arguments = parser.parse_args()
    runs = {scale: run for scale, run in latest(arguments.results).items() if scale >= 1}
    if not runs:
        parser.error(f"{arguments.results} has no results of scale 1 or more; run `make bench`")
    write_report(runs, arguments.page)


def write_report(runs: Mapping[float, Run], page: Path) -> None:
    """The page at `page`, its pictures in the directory of the same name beside it."""
    pictures = page.with_suffix("")
    for scale, run in runs.items():
        draw(run, pictures, f"{scale:g}")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    views = [View(run, pictures.name) for _, run in sorted(runs.items())]
    text = environment.get_template("performance.md.jinja").render(views=views)
    page.write_text(text)


class View:
    """What the template asks of the results at one scale."""

    def __init__(self, run: Run, pictures: str) -> None:
        self._run = run
        self.scale = f"{run.scale:g}"
        self.environment = run.environment
        self.pictures = pictures

    def targets(self) -> str:
        """Every target with the ratio that was measured, as a table."""
        rows = []
        for key, target in TARGETS.items():
            found = self._aimed_at(key)
            rows.append([target.title, _limit(target, self._run.scale), *_worst(found)])
        return markdown(["", "target", "measured", "met"], rows)

    def ratio(self, target: str) -> str:
        """The ratio of a target, the largest where it has several."""
        return _worst(self._aimed_at(target))[0]

    def table(self, *groups: str) -> str:
        """The comparisons of some cases, as a table."""
        rows = [
            [
                each.case,
                f"{each.ours.name}: {figure(each.ours.median, each.unit)}",
                f"{each.other.name}: {figure(each.other.median, each.unit)}",
                ratio_text(each.ratio),
            ]
            for each in self._run.comparisons
            if each.group in groups
        ]
        return markdown(["case", "ours", "other", "ratio"], rows)

    def has(self, group: str) -> bool:
        """Whether a case has run."""
        return any(each.group == group for each in self._run.comparisons)

    @property
    def has_targets(self) -> bool:
        """Whether anything was measured that a target is for."""
        return any(each.target for each in self._run.comparisons)

    @property
    def has_costs(self) -> bool:
        """Whether there is a picture of what costs more."""
        return bool(_costs(self._run))

    def _aimed_at(self, target: str) -> list[Comparison]:
        return [each for each in self._run.comparisons if each.target == target]


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [list(header), ["---"] * len(header), *[list(row) for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def draw(run: Run, directory: Path, scale: str) -> None:
    """The pictures of what a run measured; those of cases that have not run are left out."""

    def of(group: str) -> list[Comparison]:
        return [each for each in run.comparisons if each.group == group]

    for what in ("2 columns", "all columns"):
        samples = [each for each in of("sample") if what in each.case and "lineitem" in each.case]
        name = what.partition(" ")[0]
        for unit in ("s", "bytes"):
            _bars(
                directory / f"sample-{name}-{unit}-{scale}.svg",
                f"samples of lineitem, {what}, scale {scale}",
                [each for each in samples if each.unit == unit],
            )
    ranges = [
        each
        for each in of("ranges")
        if each.unit == "bytes" and "lineitem" in each.case and " and " in each.case
    ]
    _bars(
        directory / f"ranges-{scale}.svg",
        f"mean bytes read for ranges of both columns of lineitem, scale {scale}",
        ranges,
    )
    if costs := _costs(run):
        plots.ratios(directory / f"costs-{scale}.svg", f"over plain Delta, scale {scale}", costs)
    points: dict[str, list[tuple[float, float]]] = {}
    for each in of("size"):
        what = each.case.rpartition(" of ")[0]
        for side in (each.ours, each.other) if each.unit == "s" else ():
            points.setdefault(f"{what}, {side.name}", []).append((side.details[ROWS], side.median))
    if points:
        file = directory / f"size-{scale}.svg"
        plots.curves(file, f"lineitem, up to scale {scale}", points, "s", "rows")
    for each in of("growth"):
        if len(each.ours.values) > 10:
            sides = {side.name: side.values for side in (each.ours, each.other)}
            plots.lines(
                directory / f"appends-{scale}.svg", f"appends, scale {scale}", sides, "s", "append"
            )


def _bars(file: Path, title: str, comparisons: Sequence[Comparison]) -> None:
    """Bars for each case of the comparisons, of every side that they have."""
    if not comparisons:
        return
    labels = list(dict.fromkeys(each.case for each in comparisons))
    sides: dict[str, dict[str, float]] = {}
    for each in comparisons:
        for side in (each.ours, each.other):
            sides.setdefault(side.name, {})[each.case] = side.median
    series = {name: [values.get(label) for label in labels] for name, values in sides.items()}
    short = [label.partition(" of ")[0] for label in labels]
    unit = "seconds" if comparisons[0].unit == "s" else comparisons[0].unit
    plots.grouped_bars(file, title, short, series, unit)


def _costs(run: Run) -> dict[str, float]:
    """The ratios of what costs more, by what was measured."""
    return {
        f"{each.case}, {'time' if each.unit == 's' else 'bytes'}": each.ratio
        for each in run.comparisons
        if _is_cost(each) and each.ratio
    }


def _is_cost(each: Comparison) -> bool:
    costly = ("write", "write_join", "rebuild", "append", "full_scan", "merge")
    return (
        each.group in costly
        and each.other.name in ("plain Delta", "MERGE of plain Delta")
        and (each.unit in ("s", "bytes"))
    )


def _limit(target: Target, scale: float) -> str:
    limit = target.limit(scale)
    return "-" if limit is None else f"≤ {ratio_text(limit)}"


def _worst(found: Sequence[Comparison]) -> tuple[str, str]:
    """The range of the ratios, and whether all of them meet their target."""
    if not found:
        return "not measured", "-"
    ratios = [each.ratio for each in found if each.ratio is not None]
    if len(ratios) < len(found):
        return "nothing on the other side", "no"
    low, high = ratio_text(min(ratios)), ratio_text(max(ratios))
    met = [each.met for each in found]
    told = "yes" if all(met) else "no" if not any(met) else f"{sum(map(bool, met))} of {len(met)}"
    return (low if low == high else f"{low} to {high}"), told


if __name__ == "__main__":
    main()
