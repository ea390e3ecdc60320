"""Pictures of the report, as static SVG.

A page of Markdown shows static pictures only, so matplotlib draws them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

_COLOURS = ("#1f6f8b", "#c0392b", "#e59866", "#7f8c8d", "#8e44ad", "#2e7d32", "#34495e")
# The same figures give the same bytes, so that a new report changes what has changed.
_STYLE = {"svg.hashsalt": "dbt-qbeast", "svg.fonttype": "none", "font.size": 9.0}

Series = Mapping[str, Sequence[float | None]]
"""Values by the name of a side, one for each label; None where there is none."""

Points = Sequence[tuple[float, float]]
"""Places and values."""


def grouped_bars(
    file: Path, title: str, labels: Sequence[str], series: Series, unit: str, log: bool = True
) -> None:
    """Bars side by side for each label."""
    with matplotlib.rc_context(_STYLE):
        figure, axes = _figure(title, unit)
        width = 0.8 / max(1, len(series))
        for number, (name, values) in enumerate(series.items()):
            places = [i + width * (number - (len(series) - 1) / 2) for i in range(len(labels))]
            heights = [value if value is not None else 0.0 for value in values]
            axes.bar(places, heights, width, label=name, color=_COLOURS[number % len(_COLOURS)])
        axes.set_xticks(range(len(labels)), labels)
        if log:
            axes.set_yscale("log")
        figure.legend(frameon=False, loc="outside right upper")
        _save(figure, file)


def ratios(file: Path, title: str, values: Mapping[str, float]) -> None:
    """A bar for each ratio, from 1: to the right it costs more than the other side's."""
    with matplotlib.rc_context(_STYLE):
        figure, axes = _figure(title, "")
        names = list(values)[::-1]
        lengths = [values[name] - 1 for name in names]
        colours = [_COLOURS[1] if length > 0 else _COLOURS[0] for length in lengths]
        axes.barh(names, lengths, left=1.0, color=colours)
        axes.axvline(1.0, color="black", linewidth=0.8)
        for place, name in enumerate(names):
            axes.annotate(f" {values[name]:.2f}", (max(1.0, values[name]), place), va="center")
        axes.margins(x=0.12)
        _save(figure, file)


def lines(file: Path, title: str, series: Series, unit: str, of: str) -> None:
    """A line for each side, over the number of what was done."""
    with matplotlib.rc_context(_STYLE):
        figure, axes = _figure(title, unit)
        for number, (name, values) in enumerate(series.items()):
            axes.plot(range(1, len(values) + 1), values, label=name, color=_COLOURS[number])
        axes.set_xlabel(of)
        axes.set_ylim(bottom=0)
        figure.legend(frameon=False, loc="outside right upper")
        _save(figure, file)


def curves(file: Path, title: str, points: Mapping[str, Points], unit: str, of: str) -> None:
    """A line for each name through its points, both axes logarithmic."""
    with matplotlib.rc_context(_STYLE):
        figure, axes = _figure(title, unit)
        for number, (name, pairs) in enumerate(points.items()):
            places, values = zip(*sorted(pairs), strict=True)
            axes.loglog(places, values, "o-", label=name, color=_COLOURS[number % len(_COLOURS)])
        axes.set_xlabel(of)
        figure.legend(frameon=False, loc="outside right upper")
        _save(figure, file)


def _figure(title: str, unit: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7.5, 3.4), layout="constrained")
    axes = figure.subplots()
    axes.set_title(title)
    axes.set_ylabel(unit)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _save(figure: Figure, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, format="svg", metadata={"Date": None})
