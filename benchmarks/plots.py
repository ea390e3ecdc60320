"""Charts of the report: static SVG files, each in a light and a dark version.

Charts are 640 pixels wide and stay legible at 400. Markers, line styles, direction and labels
repeat what the colours say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import blended_transform_factory

from scripts.theme import THEMES, Theme

Points = Sequence[tuple[float, float]]
"""Pairs of x and y."""

_WIDTH = 6.67
"""Inches: 480 points, or 640 pixels."""
_HEAD = 0.68
"""Inches for the title and the line under it."""
_LEFT = 0.02
"""The left edge of texts, as a share of the width."""
_MARKERS = "osD^v"
_DASHES = ("-", "--", ":", "-.", (0, (5, 1)))
# The drawing measures text in DejaVu Sans, which matplotlib brings along, so every machine lays a
# chart out alike. Browsers show the reader's own font, which is narrower and therefore fits.
_FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
_DRAWN_WITH = "'DejaVu Sans'"


@dataclass(frozen=True)
class Bar:
    """A row of the chart of cost and gain."""

    label: str
    ratio: float
    """Measured value over that of plain Delta."""
    is_reference: bool = False
    """Whether the row shows Delta itself, for comparison."""


def cost_and_gain(
    stem: Path, title: str, subtitle: str, groups: Mapping[str, Sequence[Bar]], note: str
) -> None:
    """Bars that start at 1, on a logarithmic axis: to the right costs more, to the left less."""
    rows = sum(1 + len(bars) for bars in groups.values())
    for theme in THEMES:
        height = 1.7 + 0.27 * rows
        with _figure(stem, theme, height, title, subtitle, below=0.3) as axes:
            _draw_groups(axes, theme, groups)
            _text(axes, 0.1, note, color=theme.muted, fontsize=10.5)


def sample_sizes(
    stem: Path,
    title: str,
    subtitle: str,
    whole: float,
    label: str,
    read: Mapping[str, Points],
) -> None:
    """Bytes over sample fraction: measured, ideal, and what plain Delta reads.

    Args:
        whole: bytes that plain Delta reads, whatever the fraction.
        label: what to print for `whole`.
        read: for each line its fractions, and the bytes that samples read through the index.
    """
    for theme in THEMES:
        with _figure(stem, theme, 4.7, title, subtitle) as axes:
            _draw_samples(axes, theme, whole, label, read)


def lines(
    stem: Path,
    title: str,
    subtitle: str,
    points: Mapping[str, Points],
    x_label: str,
    *,
    log: bool = False,
) -> None:
    """A line per series. Axes start at zero; logarithmic ones show x in millions."""
    for theme in THEMES:
        with _figure(stem, theme, 3.9, title, subtitle) as axes:
            for number, (name, pairs) in enumerate(points.items()):
                axes.plot(
                    *zip(*sorted(pairs), strict=True),
                    label=name,
                    color=theme.series[number % len(theme.series)],
                    linestyle=_DASHES[number % len(_DASHES)],
                    marker=_MARKERS[number % len(_MARKERS)] if log else None,
                    linewidth=2,
                )
            if log:
                places = sorted({place for pairs in points.values() for place, _ in pairs})
                axes.set_xscale("log")
                axes.set_yscale("log")
                axes.set_xticks(places, [f"{place / 1e6:.0f} million" for place in places])
                axes.set_xticks([], minor=True)
                axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
            else:
                axes.set_xlim(left=0)
                axes.set_ylim(bottom=0)
            axes.grid(color=theme.grid, linewidth=0.8)
            axes.set_xlabel(x_label)
            _figure_of(axes).legend(frameon=False, loc="outside lower center", ncols=2, fontsize=11)


@contextmanager
def _figure(
    stem: Path, theme: Theme, height: float, title: str, subtitle: str, below: float = 0.0
) -> Iterator[Axes]:
    """Axes to draw on; saves the figure afterwards as `<stem>-<theme>.svg`.

    Args:
        height: of the figure, in inches.
        below: the inches to leave free under the axes.
    """
    style: Any = {
        # The same figures give the same bytes, so a new report changes only what was measured.
        "svg.hashsalt": "dbt-qbeast",
        "svg.fonttype": "none",
        "font.family": "DejaVu Sans",
        "font.size": 12.0,
        "text.color": theme.text,
        "axes.labelcolor": theme.text,
        "axes.edgecolor": theme.grid,
        "axes.facecolor": theme.background,
        "xtick.color": theme.text,
        "ytick.color": theme.text,
        "legend.labelcolor": theme.text,
    }
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(_WIDTH, height), facecolor=theme.background)
        free = (0.0, below / height, 1.0, 1 - (below + _HEAD) / height)
        figure.set_layout_engine("constrained", rect=free, w_pad=0.12, h_pad=0.08)
        axes = figure.subplots()
        _text(axes, height - 0.26, title, fontsize=15, fontweight="bold")
        _text(axes, height - 0.53, subtitle, fontsize=11.5, color=theme.muted)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_axisbelow(True)
        yield axes
        _save(figure, stem.with_name(f"{stem.name}-{theme.name}.svg"), title)


def _text(axes: Axes, inches: float, text: str, **style: Any) -> None:
    """A line of text at the left edge of the figure, some inches above its lower edge."""
    figure = _figure_of(axes)
    figure.text(_LEFT, inches / figure.get_figheight(), text, va="center", **style)


def _figure_of(axes: Axes) -> Figure:
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    return figure


def _save(figure: Figure, file: Path, title: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    drawn = StringIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None, "Title": title})
    file.write_text(drawn.getvalue().replace(_DRAWN_WITH, _FONTS), encoding="utf-8")


def _draw_groups(axes: Axes, theme: Theme, groups: Mapping[str, Sequence[Bar]]) -> None:
    ticks: dict[float, str] = {}
    row = 0.0
    left = blended_transform_factory(_figure_of(axes).transFigure, axes.transData)
    for group, bars in groups.items():
        axes.text(_LEFT, row, group, transform=left, va="center", fontweight="bold")
        for bar in bars:
            row += 1
            ticks[row] = bar.label
            _draw_bar(axes, theme, row, bar)
        row += 1.25
    axes.axvline(1.0, color=theme.text, linewidth=1.2)
    axes.set_xscale("log")
    axes.set_xlim(1 / 260, 6.5)
    axes.set_xticks([0.01, 0.1, 1, 3], ["1/100", "1/10", "same", "3×"], minor=False)
    axes.set_xticks([], minor=True)
    axes.grid(axis="x", color=theme.grid, linewidth=0.8)
    axes.set_yticks(list(ticks), list(ticks.values()))
    axes.set_ylim(max(ticks) + 0.6, -0.8)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    for text, x, side, colour in (
        ("◀ less than plain Delta", 0.93, "right", theme.less),
        ("more ▶", 1.08, "left", theme.more),
    ):
        axes.annotate(text, (x, -0.1), ha=side, va="center", color=colour, fontsize=11.5)


def _draw_bar(axes: Axes, theme: Theme, row: float, bar: Bar) -> None:
    costs_more = bar.ratio > 1
    colour = theme.more if costs_more else theme.less
    axes.barh(
        row,
        bar.ratio - 1,
        0.66,
        left=1.0,
        color=theme.background if bar.is_reference else colour,
        edgecolor=theme.muted if bar.is_reference else colour,
        hatch="////" if bar.is_reference else None,
    )
    axes.annotate(
        times(bar.ratio),
        (bar.ratio, row),
        (5 if costs_more else -5, 0),
        textcoords="offset points",
        ha="left" if costs_more else "right",
        va="center_baseline",
    )


def times(ratio: float) -> str:
    """A ratio as a label: a multiple, or a fraction from a half down.

    >>> [times(ratio) for ratio in (1.175, 0.86, 0.134, 0.0114)]
    ['1.18×', '0.86×', '1/7.5', '1/88']
    """
    if ratio > 0.5:
        return f"{ratio:.2f}×"
    return f"1/{1 / ratio:.0f}" if ratio < 0.1 else f"1/{1 / ratio:.1f}"


def _draw_samples(
    axes: Axes, theme: Theme, whole: float, label: str, read: Mapping[str, Points]
) -> None:
    ends = (1e-4, 1.0)
    axes.plot(ends, [whole] * 2, "--", color=theme.muted, linewidth=2)
    axes.plot(ends, [whole * each for each in ends], ":", color=theme.text, linewidth=1.8)
    for number, (name, points) in enumerate(read.items()):
        axes.plot(
            *zip(*sorted(points), strict=True),
            label=name,
            color=theme.series[number],
            linestyle=_DASHES[number],
            linewidth=2,
        )
    _name(axes, ends[0], whole, label, theme.muted, (0, 13))
    _name(axes, 2e-4, 2e-4 * whole, "ideal", theme.text, (6, -15))
    axes.legend(frameon=False, loc="lower right")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(ends[0] * 0.7, 1.6)
    axes.set_ylim(whole * ends[0] * 0.7, whole * 3.5)
    ticks = (1e-4, 1e-3, 0.01, 0.1, 1.0)
    axes.set_xticks(ticks, [f"{100 * each:g} %" for each in ticks])
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_formatter(_byte_count)
    axes.set_yticks([], minor=True)
    axes.grid(color=theme.grid, linewidth=0.8)
    axes.set_xlabel("sample fraction")


def _name(
    axes: Axes, x: float, y: float, text: str, colour: str, away: tuple[float, float]
) -> None:
    """A bold text that begins some points away from a place."""
    axes.annotate(
        text, (x, y), away, textcoords="offset points", va="center", color=colour,
        fontweight="bold",
    )  # fmt: skip


def _byte_count(value: float, _: float) -> str:
    for power, unit in ((9, "GB"), (6, "MB"), (3, "kB")):
        if value >= 10**power:
            return f"{value / 10**power:g} {unit}"
    return f"{value:g} B"
