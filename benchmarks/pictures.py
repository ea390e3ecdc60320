"""Which results the charts of the report show."""

from __future__ import annotations

from pathlib import Path

from benchmarks import plots
from benchmarks.cases.fractions import FRACTION
from benchmarks.cases.size import ROWS
from benchmarks.comparison import Comparison, figure
from benchmarks.layouts import Layout
from benchmarks.plots import Bar
from benchmarks.view import APPENDS_TO_DRAW, View

SAMPLED = {Layout.QBEAST.value: "dbt-qbeast", Layout.QBEAST_SLICES.value: "dbt-qbeast, slices"}
"""The lines of the chart of samples."""


def draw_cost_and_gain(view: View, stem: Path) -> None:
    """What an index costs and what it gains, on one axis."""

    def bar(label: str, name: str) -> Bar:
        return Bar(label, view.one(name).ratio or 0.0)

    zorder = view.one("write_zorder").other.median / view.one("write").other.median
    groups = {
        "Writing": [
            bar("write a table", "write"),
            bar("write an expensive query", "write_join"),
            bar("rebuild a table", "rebuild"),
            bar("append 1 %", "append"),
            bar("append 0.1 %, 50 times†", "appends"),
            bar("optimize after that†*", "optimize"),
            bar("merge 1 %†", "merge"),
            bar("stored size", "size"),
            Bar("plain write + ZORDER", zorder, is_reference=True),
        ],
        "Reading": [
            bar("full scan", "scan_time"),
            bar("10 % sample, time", "sample_10_all_s"),
            bar("10 % sample, bytes", "sample_10_all_bytes"),
            bar("1 % sample, time", "sample_1_all_s"),
            bar("1 % sample, bytes", "sample_1_all_bytes"),
            bar("1 % range, time", "range_time"),
            bar("1 % range, bytes", "range_1_plain"),
            bar("10 % of a 10 % range, bytes", "filtered_bytes"),
        ],
    }
    cores = view.environment["cores"]
    plots.cost_and_gain(
        stem,
        "What an index costs and gains",
        f"lineitem, {view.rows()} rows, {cores} cores, against plain Delta",
        groups,
        "† taxi trips. * Bytes rewritten, against bytes appended.",
    )


def draw_bytes_read(view: View, stem: Path) -> None:
    """Bytes that samples of lineitem read, against a plain scan and its part of one."""
    found = view.sampled_fractions()
    whole = found[0].other.median
    read: dict[str, list[tuple[float, float]]] = {}
    for each in found:
        points = read.setdefault(SAMPLED[each.ours.name], [])
        points.append((each.ours.details[FRACTION], each.ours.median))
    plots.sample_sizes(
        stem,
        "Bytes that a sample reads",
        f"lineitem, {view.rows()} rows, all columns",
        whole,
        f"plain Delta: {figure(whole, 'bytes')} for any sample",
        read,
    )


def draw_tables(view: View, directory: Path) -> None:
    """The charts of the page with all tables; those of cases that have not run are left out."""
    for each in view.of("growth"):
        if len(each.ours.values) >= APPENDS_TO_DRAW:
            _draw_appends(view, each, directory / f"appends-{view.scale}")
    if view.has("size"):
        _draw_growth(view, directory / f"size-{view.scale}")


def _draw_appends(view: View, appends: Comparison, stem: Path) -> None:
    points = {side.name: list(enumerate(side.values, 1)) for side in (appends.ours, appends.other)}
    plots.lines(
        stem, "Seconds of each append", f"0.1 % of trips each, scale {view.scale}", points, "append"
    )


def _draw_growth(view: View, stem: Path) -> None:
    points: dict[str, list[tuple[float, float]]] = {}
    for what in ("write", "1 % sample"):
        for each in view.grown(what):
            for side in (each.ours, each.other):
                place = (side.details[ROWS], side.median)
                points.setdefault(f"{what}, {side.name}", []).append(place)
    plots.lines(stem, "Seconds as the table grows", "lineitem", points, "rows", log=True)
