"""Draw the pictures of docs/how-the-index-works.md, light and dark, from the table of that page.

The Python of the page runs, and its table is drawn as the index describes it: cubes and weights are
those of `blocks`, files of `files`, dots of `sample`. The pictures of the index page, for
docs/insight.md, are screenshots of this table's page. The two terminals show what `dbt run` and
`dbt run-operation index_metrics` print for examples/tpch.

    python -m scripts.pictures [--images docs/images] [--without-dbt]
"""

from __future__ import annotations

import argparse
import math
import os
import re
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray
from PIL import Image
from pyspark.sql import SparkSession
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from qbeast_core import QbeastTable, counted
from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import fraction_of_weight
from scripts.theme import THEMES, Theme
from tests.docs.markdown import code_blocks
from tests.support import spark_session
from tests.support.browser import chromium
from tests.support.index_page import opened

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/how-the-index-works.md"
IMAGES = ROOT / "docs/images"
TPCH = ROOT / "examples/tpch"

TABLES = ("trips_1000", "trips_10000", "trips_100000")
"""The table of the page in three sizes."""
KILOMETRES = 20
FRACTIONS = (0.1, 0.01)
# The airport of the page: most of it is one dense spot.
BOX = (14, 18, 2, 6)
WHERE = "east between {} and {} and north between {} and {}".format(*BOX)

Points = NDArray[np.float64]
"""Rows of a table: float64[rows, 2], in kilometres to the east and to the north."""


# -- what the index says


@dataclass(frozen=True)
class Cube:
    """One cube of the tree, summed up over its blocks."""

    id: CubeId
    rows: int
    weight: float
    """The fraction of all weights up to which it keeps rows; 1 for a leaf."""
    rows_in: dict[str, int]
    """Its rows in each of its files."""

    def share_in(self, files: Collection[str]) -> float:
        """The share of its rows that are in these files."""
        found = sum(rows for file, rows in self.rows_in.items() if file in files)
        return found / self.rows if self.rows else 0.0


@dataclass(frozen=True)
class Reading:
    """What a query reads: its files, in the order of `Layout.files`, and the rows it returns."""

    files: tuple[str, ...]
    points: Points


@dataclass(frozen=True)
class Layout:
    """A version of the table: its rows, its files and the cubes in them."""

    points: Points
    cubes: dict[CubeId, Cube]
    files: tuple[str, ...]
    """In the order of their lowest weights, so that each sample reads the first few."""
    samples: dict[float, Reading]
    filtered: dict[float, Reading]
    """Of the rows in BOX, by the fraction that is read."""

    @staticmethod
    def of(table: QbeastTable) -> Layout:
        """What the index says of the table's present version."""
        blocks = table.blocks().collect()
        lowest: dict[str, int] = {}
        of_cube = defaultdict(list)
        for block in blocks:
            of_cube[CubeId.parse(block.cubeId, len(table.columns_to_index))].append(block)
            lowest[block.path] = min(lowest.get(block.path, block.minWeight), block.minWeight)
        cubes = {
            cube: Cube(
                cube,
                sum(block.elementCount for block in found),
                fraction_of_weight(min(block.maxWeight for block in found)),
                {block.path: block.elementCount for block in found},
            )
            for cube, found in of_cube.items()
        }
        files = tuple(sorted((file.path for file in table.files()), key=lowest.__getitem__))

        def reading(fraction: float, where: str | None) -> Reading:
            chosen = {file.path for file in table.files(fraction, where)}
            rows = table.sample(fraction, where).select("east", "north").collect()
            return Reading(tuple(file for file in files if file in chosen), np.array(rows))

        return Layout(
            points=np.array(table.dataframe().select("east", "north").collect()),
            cubes=cubes,
            files=files,
            samples={fraction: reading(fraction, None) for fraction in FRACTIONS},
            filtered={fraction: reading(fraction, WHERE) for fraction in (1.0, FRACTIONS[0])},
        )


@dataclass(frozen=True)
class PageRun:
    """What the Python of the page does."""

    layouts: tuple[Layout, ...]
    """Each of TABLES, as it is after the block that wrote it."""
    table: QbeastTable
    """The last of these."""
    printed: tuple[str, ...]
    """The output of each block of Python."""


def run_page(spark: SparkSession) -> PageRun:
    """Run the Python of the page."""
    namespace: dict[str, object] = {"spark": spark}
    tables: dict[str, QbeastTable] = {}
    found: dict[str, Layout] = {}
    printed = []
    for block in code_blocks(PAGE):
        if block.language != "python":
            continue
        with redirect_stdout(StringIO()) as output:
            exec(compile(f"{chr(10) * block.line}{block.text}", PAGE.name, "exec"), namespace)
        printed.append(output.getvalue())
        for name in TABLES:
            if name not in found and QbeastTable.is_qbeast(spark, name):
                tables[name] = QbeastTable.for_name(spark, name)
                found[name] = Layout.of(tables[name])
    return PageRun(tuple(found[name] for name in TABLES), tables[TABLES[-1]], tuple(printed))


# -- pictures


# The same table gives the same bytes. The text is drawn as shapes, so it looks alike everywhere.
_STYLE = {"svg.hashsalt": "dbt-qbeast", "svg.fonttype": "path", "font.size": 15.0}
_BINS = 48
_GRID = 20


def draw_growth(file: Path, theme: Theme, grown: Sequence[Layout]) -> None:
    """The cubes of the same table as it grows, over the density of its rows."""
    figure, panels = _panels(theme, len(grown))
    for panel, layout in zip(panels, grown, strict=True):
        _density(panel, theme, layout.points)
        _outlines(panel, theme, layout.cubes)
        cubes = counted(len(layout.cubes), "cube")
        panel.set_title(f"{len(layout.points):,} rows\n{cubes}", color=theme.text, fontsize=16)
    _save(figure, file)


def draw_samples(file: Path, theme: Theme, layout: Layout) -> None:
    """All rows, a tenth and a hundredth of them, and the files that hold these."""
    whole = Reading(layout.files, layout.points)
    readings = [whole, *(layout.samples[fraction] for fraction in FRACTIONS)]
    names = ["all rows", *(f"{fraction * 100:g} % sample" for fraction in FRACTIONS)]
    figure, panels, grids = _panels_over_files(theme, len(readings))
    for panel, grid, name, reading in zip(panels, grids, names, readings, strict=True):
        if reading is whole:
            _density(panel, theme, reading.points)
        else:
            _dots(panel, theme, reading.points)
        panel.set_title(f"{name}\n{len(reading.points):,}", color=theme.text, fontsize=16)
        _files(grid, theme, layout.files, reading.files)
    _save(figure, file)


def draw_filter(file: Path, theme: Theme, layout: Layout) -> None:
    """The cubes in the files that a filter reads, by itself and on a sample."""
    figure, panels, grids = _panels_over_files(theme, len(layout.filtered))
    names = ["filter", f"filter, {FRACTIONS[0] * 100:g} % sample"]
    for panel, grid, name, reading in zip(
        panels, grids, names, layout.filtered.values(), strict=True
    ):
        _share_read(panel, theme, layout, reading)
        _outlines(panel, theme, layout.cubes)
        left, right, low, high = BOX
        panel.add_patch(
            Rectangle((left, low), right - left, high - low, fill=False, ec=theme.text, lw=2.5)
        )
        panel.set_title(f"{name}\n{len(reading.points):,} rows", color=theme.text, fontsize=16)
        _files(grid, theme, layout.files, reading.files)
    _save(figure, file)


def draw_tree(file: Path, theme: Theme, layout: Layout) -> None:
    """The tree over weights: as wide as its rows, and the part that two samples read."""
    figure = Figure(figsize=(8, 4.4), layout="constrained", facecolor=theme.background)
    axes = figure.subplots()
    axes.set_facecolor(theme.background)
    lowest = min(FRACTIONS) / 4
    read = {fraction: set(layout.samples[fraction].files) for fraction in FRACTIONS}
    for cube, left, width in _spans(layout.cubes):
        parent = layout.cubes.get(cube.id.parent) if cube.id.depth else None
        above = parent.weight if parent else 0.0
        top = max(above, lowest)
        shares = (1.0, *(cube.share_in(read[fraction]) for fraction in FRACTIONS))
        for share, tint in zip(shares, (theme.grid, theme.pale_more, theme.more), strict=True):
            # Files are divided by weight, so those that a sample reads have the lowest weights.
            upto = above + share * (cube.weight - above)
            if upto > top:
                axes.add_patch(
                    Rectangle((left, top), width, upto - top, fc=tint, ec=theme.background, lw=0.6)
                )
    axes.text(
        0.5, lowest * 2, "root", color=theme.background, fontsize=16, ha="center", va="center"
    )
    axes.set_xlim(0, 1)
    axes.set_yscale("log")
    axes.set_ylim(1.0, lowest)
    for fraction in FRACTIONS:
        axes.axhline(fraction, color=theme.text, lw=1.5, ls=(0, (4, 3)))
    axes.set_yticks([1.0, *FRACTIONS], ["100 %", *(f"{f * 100:g} %" for f in FRACTIONS)])
    axes.set_yticks([], minor=True)
    axes.set_xticks([])
    axes.tick_params(colors=theme.text, length=0, labelsize=16)
    axes.set_ylabel("weight", color=theme.text, fontsize=16)
    axes.set_xlabel("place", color=theme.text, fontsize=16)
    for spine in axes.spines.values():
        spine.set_visible(False)
    _save(figure, file)


def draw_all(images: Path, found: Sequence[Layout]) -> None:
    """All pictures of the table, in each theme."""
    drawings: dict[str, Callable[[Path, Theme], None]] = {
        "otree-growth": lambda file, theme: draw_growth(file, theme, found),
        "sample-reads": lambda file, theme: draw_samples(file, theme, found[-1]),
        "filter-reads": lambda file, theme: draw_filter(file, theme, found[-1]),
        "tree-weights": lambda file, theme: draw_tree(file, theme, found[-1]),
    }
    for name, draw in drawings.items():
        for theme in THEMES:
            with matplotlib.rc_context(_STYLE):
                draw(images / f"{name}-{theme.name}.svg", theme)


def _panels(theme: Theme, count: int) -> tuple[Figure, list[Axes]]:
    """Maps side by side, with two lines above each."""
    width, gap, above = 8.0, 0.08, 0.72
    side = (width - (count + 1) * gap) / count
    height = side + above + gap
    figure = Figure(figsize=(width, height), facecolor=theme.background)
    panels = [
        figure.add_axes(
            ((gap + number * (side + gap)) / width, gap / height, side / width, side / height)
        )
        for number in range(count)
    ]
    for panel in panels:
        _as_map(panel, theme)
    return figure, panels


def _panels_over_files(theme: Theme, count: int) -> tuple[Figure, list[Axes], list[Axes]]:
    """Maps side by side, with a grid of files under each."""
    width = 8 / count
    figure = Figure(
        figsize=(8, width * 1.25 + 1.1), layout="constrained", facecolor=theme.background
    )
    cells = figure.subplots(2, count, squeeze=False, height_ratios=[4, 1.3])
    for panel in cells[0]:
        _as_map(panel, theme)
    return figure, list(cells[0]), list(cells[1])


def _as_map(panel: Axes, theme: Theme) -> None:
    panel.set_aspect("equal")
    panel.set(xlim=(0, KILOMETRES), ylim=(0, KILOMETRES), xticks=[], yticks=[])
    panel.set_facecolor(theme.background)
    for spine in panel.spines.values():
        spine.set_color(theme.muted)


def _density(panel: Axes, theme: Theme, points: Points) -> None:
    counts, _, _ = np.histogram2d(*points.T, bins=_BINS, range=[(0, KILOMETRES)] * 2)
    shades = LinearSegmentedColormap.from_list("density", [theme.background, theme.less])
    panel.imshow(counts.T**0.4, origin="lower", extent=(0, KILOMETRES) * 2, cmap=shades, vmin=0)


def _dots(panel: Axes, theme: Theme, points: Points) -> None:
    size = 3.0 if len(points) < 5000 else 0.6
    panel.scatter(*points.T, s=size, color=theme.less, linewidths=0, rasterized=True)


def _share_read(panel: Axes, theme: Theme, layout: Layout, reading: Reading) -> None:
    """Shade each leaf by the share of the rows with a point in it that are in files read."""
    read = set(reading.files)
    inner = {cube.parent for cube in layout.cubes if cube.depth}
    patches, shares = [], []
    for leaf in layout.cubes:
        if leaf in inner:
            continue
        share, above = 0.0, 0.0
        for cube in [*reversed([c for c in leaf.ancestors() if c in layout.cubes]), leaf]:
            weight = layout.cubes[cube].weight
            share += (weight - above) * layout.cubes[cube].share_in(read)
            above = weight
        left, low, width, height = _place(leaf)
        patches.append(Rectangle((left, low), width, height))
        shares.append(share)
    shades = LinearSegmentedColormap.from_list("read", [theme.background, theme.more])
    panel.add_collection(PatchCollection(patches, array=shares, cmap=shades, clim=(0, 1)))


def _outlines(panel: Axes, theme: Theme, cubes: dict[CubeId, Cube]) -> None:
    lines = []
    for cube in cubes:
        if cube.depth:
            left, low, width, height = _place(cube.parent)
            middle, centre = left + width / 2, low + height / 2
            lines += [
                [(left, centre), (left + width, centre)],
                [(middle, low), (middle, low + height)],
            ]
    unique = sorted({(tuple(a), tuple(b)) for a, b in lines})
    panel.add_collection(LineCollection(unique, colors=theme.muted, linewidths=0.7))


def _place(cube: CubeId) -> tuple[float, float, float, float]:
    """Left, low, width and height on the map: the index starts at 0 and ends at KILOMETRES."""
    left, low = (corner * KILOMETRES for corner in cube.lower)
    right, high = (corner * KILOMETRES for corner in cube.upper)
    return left, low, right - left, high - low


def _files(grid: Axes, theme: Theme, files: Sequence[str], read: Sequence[str]) -> None:
    """A square for each file, filled if it is read."""
    chosen = set(read)
    for number, file in enumerate(files):
        row, column = divmod(number, _GRID)
        colour = theme.more if file in chosen else theme.grid
        grid.add_patch(Rectangle((column + 0.1, -row - 0.9), 0.8, 0.8, fc=colour, ec="none"))
    rows = math.ceil(len(files) / _GRID)
    grid.set(xlim=(0, _GRID), ylim=(-rows, 0), xticks=[], yticks=[])
    grid.set_aspect("equal", anchor="N")
    grid.axis("off")
    text = (
        f"{len(files)} files" if len(read) == len(files) else f"{len(read)} of {len(files)} files"
    )
    grid.text(
        0.5,
        -0.08,
        text,
        color=theme.text,
        fontsize=16,
        ha="center",
        va="top",
        transform=grid.transAxes,
    )


def _spans(cubes: dict[CubeId, Cube]) -> Iterator[tuple[Cube, float, float]]:
    """Each cube with its left edge and its width, in parts of the tree's rows."""
    below: dict[CubeId, int] = defaultdict(int)
    for cube in cubes.values():
        for around in (cube.id, *cube.id.ancestors()):
            below[around] += cube.rows
    root = CubeId.root(next(iter(cubes)).dimensions)
    pending = [(root, 0.0, 1.0)]
    while pending:
        cube, left, width = pending.pop()
        if cube in cubes:
            yield cubes[cube], left, width
        children = [child for child in cube.children() if child in below]
        rows = sum(below[child] for child in children)
        for child in children:
            share = width * below[child] / rows
            pending.append((child, left, share))
            left += share


def _save(figure: Figure, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, format="svg", dpi=200, metadata={"Date": None})


# -- the index page

_CHOICE = {"from_0": 12, "to_0": 31, "from_1": 24, "to_1": 43}
"""The centre of the city, in steps of the sliders; a 1 % sample is chosen already."""


def draw_index_page(images: Path, page: Path) -> None:
    """The upper part of an index page, with a 10 % sample of a range chosen."""
    with chromium() as browser:
        for theme in THEMES:
            size = {"width": 1400, "height": 900}
            with opened(browser, page, viewport=size, color_scheme=theme.name) as shown:
                shown.page.get_by_role("button", name="10 %", exact=True).click()
                shown.choose(**_CHOICE)
                below = shown.page.locator("section[aria-labelledby=skew-title]").bounding_box()
                assert below is not None
                picture = shown.page.screenshot(
                    full_page=True, clip={"x": 0, "y": 0, "width": 1400, "height": below["y"]}
                )
            # A palette takes a third of the bytes. Without k-means, it loses rare colours.
            small = Image.open(BytesIO(picture)).convert("RGB").quantize(256, kmeans=2)
            small.save(images / f"index-page-{theme.name}.png", optimize=True)


# -- terminals

_TERMINAL = TerminalTheme(
    (18, 23, 30),
    (230, 237, 243),
    [
        (72, 79, 88),
        (255, 140, 122),
        (86, 211, 100),
        (227, 179, 65),
        (121, 192, 255),
        (210, 168, 255),
        (86, 212, 221),
        (230, 237, 243),
    ],
)
# Where dbt ends its dots: the time before them and the outcome behind them need the rest.
_DBT_COLUMNS = 56


@dataclass(frozen=True)
class Command:
    """What a picture of a terminal shows."""

    line: str
    first: str
    """A part of the first line of the output that is shown."""
    columns: int


COMMANDS = {
    "dbt-run": Command("dbt run", "1 of 2 START", columns=76),
    "index-metrics": Command(
        "dbt run-operation index_metrics --args '{models: lineitem}'", "lineitem:", columns=90
    ),
}


def draw_terminals(images: Path) -> None:
    """Run dbt on a copy of examples/tpch, and draw what its commands print."""
    scripts = sysconfig.get_path("scripts")
    environment = {
        **os.environ,
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "DBT_PRINTER_WIDTH": str(_DBT_COLUMNS),
    }
    with tempfile.TemporaryDirectory() as directory:
        project = Path(directory) / "tpch"
        shutil.copytree(
            TPCH, project, ignore=shutil.ignore_patterns("data", "warehouse", "target", "logs")
        )
        # On a slow machine, lines about progress would fill the picture.
        with (project / "profiles.yml").open("a", encoding="utf-8") as profile:
            profile.write("      progress: false\n")

        def output(command: Sequence[str]) -> str:
            done = subprocess.run(
                command, cwd=project, env=environment, capture_output=True, text=True
            )
            if done.returncode:
                raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
            return done.stdout

        data = "--scale-factor 0.1 --tables lineitem,orders --output-dir data"
        output(["tpchgen-cli", "parquet", *data.split()])
        for name, command in COMMANDS.items():
            program, *arguments = shlex.split(command.line)
            lines = output([program, "--use-colors", *arguments]).splitlines()
            start = next(number for number, line in enumerate(lines) if command.first in line)
            svg = terminal(name, command, "\n".join(lines[start:]))
            (images / f"{name}.svg").write_text(svg, encoding="utf-8")


def terminal(name: str, command: Command, output: str) -> str:
    """A command and its output as an SVG that loads no font."""
    console = Console(record=True, width=command.columns, file=StringIO())
    console.print(Text(f"$ {command.line}", style="bold"))
    console.print(Text.from_ansi(output.rstrip()))
    svg = console.export_svg(title="", theme=_TERMINAL, unique_id=name)
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=Path, default=IMAGES, help="where the pictures go")
    parser.add_argument("--without-dbt", action="store_true", help="draw no terminals")
    options = parser.parse_args()
    options.images.mkdir(parents=True, exist_ok=True)
    if not options.without_dbt:
        draw_terminals(options.images)
    with tempfile.TemporaryDirectory() as warehouse:
        spark = spark_session.start(warehouse)
        run = run_page(spark)
        draw_all(options.images, run.layouts)
        draw_index_page(options.images, run.table.visualize_index(f"{warehouse}/index.html"))
        spark.stop()


if __name__ == "__main__":
    main()
