"""Draw the index of one revision as one HTML page that needs nothing else."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from qbeast_core.errors import InvalidOptions, UnsupportedEnvironment
from qbeast_core.locate.table import OpenTable
from qbeast_core.model.revision import Revision
from qbeast_core.model.transformation import LinearTransformation
from qbeast_core.read.metrics import revision_files, table_metrics
from qbeast_core.tree.metrics import FileBlocks, IndexMetrics
from qbeast_core.tree.picture import CubePicture, TreePicture, tree_picture

_DEPTH_COLORS = ("#1b4965", "#2a9d8f", "#8ab17d", "#e9c46a", "#f4a261", "#e76f51", "#9b2226")
_CONFIG = {"displaylogo": False}
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; color: #222 }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2rem }
pre { background: #f4f4f2; padding: 1rem; overflow-x: auto }
p { max-width: 50rem }
"""


def visualize_table(
    table: OpenTable,
    path: str,
    revision_id: int | None,
    columns: Sequence[str] | None,
) -> Path:
    """Write the page; the arguments are those of `QbeastTable.visualize_index`."""
    metrics = table_metrics(table, revision_id)
    revision = table.index.configuration.revisions[metrics.revision_id]
    files = revision_files(table, revision.revision_id)
    title = (
        f"Index of {table.label}, revision {revision.revision_id}, version {table.snapshot.version}"
    )
    return write_page(path, title, revision, files, metrics, columns)


def write_page(
    path: str,
    title: str,
    revision: Revision,
    files: Sequence[FileBlocks],
    metrics: IndexMetrics,
    columns: Sequence[str] | None = None,
) -> Path:
    """Draw a revision from its files. Raises InvalidOptions, UnsupportedEnvironment."""
    graph_objects, to_html = _plotly()
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        raise InvalidOptions(
            f"{path!r} cannot be written; give the name of an HTML file in a directory that exists"
        )
    first = _chosen_dimensions(revision, columns)
    picture = tree_picture(files, revision.dimensions)
    figures = [
        _space_figure(graph_objects, revision, picture, first),
        _tree_figure(graph_objects, picture),
        _files_figure(graph_objects, metrics),
    ]
    drawn = [
        to_html(figure, full_html=False, include_plotlyjs=number == 0, config=_CONFIG)
        for number, figure in enumerate(figures)
    ]
    target.write_text(_page(title, metrics, picture, drawn), encoding="utf-8")
    return target


def _plotly() -> tuple[Any, Any]:
    try:
        import plotly.graph_objects
        from plotly.io import to_html
    except ImportError:
        raise UnsupportedEnvironment(
            "visualize_index draws with plotly, which is not installed; "
            "run: pip install dbt-qbeast[viz]"
        ) from None
    return plotly.graph_objects, to_html


def _chosen_dimensions(revision: Revision, columns: Sequence[str] | None) -> tuple[int, ...]:
    """The dimensions to draw: those named, else the first two, or the only one."""
    if columns is None:
        return tuple(range(min(2, revision.dimensions)))
    known = ", ".join(revision.columns)
    if isinstance(columns, str) or len(columns) != 2 or len(set(columns)) != 2:
        raise InvalidOptions(f"columns must name two columns of {known}; got {columns!r}")
    for name in columns:
        if name not in revision.columns:
            raise InvalidOptions(f"column {name!r} is not indexed; the indexed ones are {known}")
    return tuple(revision.columns.index(name) for name in columns)


def _space_figure(go: Any, revision: Revision, picture: TreePicture, first: tuple[int, ...]) -> Any:
    """Cubes over two dimensions; of a single dimension, over it and the weights."""
    of_depth: dict[int, list[CubePicture]] = defaultdict(list)
    for cube in picture.cubes:
        of_depth[cube.cube.depth].append(cube)
    pairs = list(itertools.combinations(range(revision.dimensions), 2)) or [(0, 0)]
    if len(first) == 2:
        pairs = [first, *(pair for pair in pairs if set(pair) != set(first))]
    figure = go.Figure()
    for number, pair in enumerate(pairs):
        for depth, cubes in sorted(of_depth.items()):
            x, y = _rectangles(cubes, pair)
            figure.add_scatter(
                x=x,
                y=y,
                fill="toself",
                mode="lines",
                line={"width": 1, "color": _DEPTH_COLORS[depth % len(_DEPTH_COLORS)]},
                opacity=0.55,
                hoverinfo="skip",
                name=f"depth {depth}",
                legendgroup=f"depth {depth}",
                visible=number == 0,
            )
            centers = [_rectangle(cube, pair) for cube in cubes]
            figure.add_scatter(
                x=[(left + right) / 2 for left, right, _, _ in centers],
                y=[(low + high) / 2 for _, _, low, high in centers],
                mode="markers",
                marker={"size": 5, "color": _DEPTH_COLORS[depth % len(_DEPTH_COLORS)]},
                text=[_description(cube) for cube in cubes],
                hovertemplate="%{text}<extra></extra>",
                legendgroup=f"depth {depth}",
                showlegend=False,
                visible=number == 0,
            )
    traces = 2 * len(of_depth)
    buttons = [
        {
            "label": " × ".join(_axis(revision, dimension) for dimension in dict.fromkeys(pair)),
            "method": "update",
            "args": [
                {"visible": [i // traces == number for i in range(traces * len(pairs))]},
                _axis_titles(revision, pair),
            ],
        }
        for number, pair in enumerate(pairs)
    ]
    figure.update_layout(
        height=620,
        margin={"t": 60, "l": 70, "r": 20, "b": 60},
        template="plotly_white",
        updatemenus=[{"buttons": buttons, "x": 0, "y": 1.12, "xanchor": "left"}]
        if len(buttons) > 1
        else [],
        **{key.replace(".", "_"): text for key, text in _axis_titles(revision, pairs[0]).items()},
    )
    return figure


def _tree_figure(go: Any, picture: TreePicture) -> Any:
    drawn = {cube.cube for cube in picture.cubes}
    figure = go.Figure(
        go.Icicle(
            ids=[str(cube.cube.text) or "root" for cube in picture.cubes],
            labels=[cube.cube.text or "root" for cube in picture.cubes],
            parents=[
                (cube.cube.parent.text or "root")
                if cube.cube.depth and cube.cube.parent in drawn
                else ""
                for cube in picture.cubes
            ],
            values=[cube.rows_below for cube in picture.cubes],
            branchvalues="total",
            text=[_description(cube) for cube in picture.cubes],
            textinfo="label",
            hovertemplate="%{text}<extra></extra>",
            marker={
                "colors": [
                    _DEPTH_COLORS[cube.cube.depth % len(_DEPTH_COLORS)] for cube in picture.cubes
                ]
            },
            tiling={"orientation": "v"},
        )
    )
    figure.update_layout(height=480, margin={"t": 20, "l": 20, "r": 20, "b": 20})
    return figure


def _files_figure(go: Any, metrics: IndexMetrics) -> Any:
    """What samples read, next to all that there is."""
    names = [f"{cost.fraction * 100:g} % sample" for cost in metrics.sample_costs]
    figure = go.Figure()
    figure.add_bar(
        name="of the revision",
        x=[*names, "all rows"],
        y=[*(cost.size_bytes for cost in metrics.sample_costs), metrics.size_bytes],
        text=[
            *(f"{cost.files:,} files" for cost in metrics.sample_costs),
            f"{metrics.files:,} files",
        ],
        marker={"color": _DEPTH_COLORS[1]},
    )
    figure.add_bar(
        name="not indexed",
        x=[*names, "all rows"],
        y=[metrics.unindexed_bytes] * (len(names) + 1),
        marker={"color": _DEPTH_COLORS[5]},
    )
    figure.update_layout(
        barmode="stack",
        height=360,
        margin={"t": 20, "l": 70, "r": 20, "b": 40},
        template="plotly_white",
        yaxis_title="bytes",
    )
    return figure


def _page(title: str, metrics: IndexMetrics, picture: TreePicture, figures: list[str]) -> str:
    space, tree, files = figures
    left_out = (
        f"<p>The {picture.left_out:,} smallest cubes are not drawn.</p>" if picture.left_out else ""
    )
    title = escape(title)
    return f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style></head>
<body>
<h1>{title}</h1>
<p>Not indexed: {metrics.unindexed_share:.1%} of the table's bytes.</p>
<pre>{escape(str(metrics))}</pre>
<h2>Cubes in space</h2>
<p>Coordinates run from 0 to 1 along each indexed column. The root covers everything and keeps the
rows of the lowest weights; each level below has the next ones. Click on a depth to hide it.</p>
{left_out}
{space}
<h2>Cubes as a tree</h2>
<p>The wider a cube, the more rows it has in it and below. Click on one to look closer.</p>
{tree}
<h2>What samples read</h2>
{files}
</body>
</html>
"""


def _rectangles(
    cubes: list[CubePicture], pair: tuple[int, ...]
) -> tuple[list[float | None], list[float | None]]:
    x: list[float | None] = []
    y: list[float | None] = []
    for cube in cubes:
        left, right, low, high = _rectangle(cube, pair)
        x += [left, right, right, left, left, None]
        y += [low, low, high, high, low, None]
    return x, y


def _rectangle(cube: CubePicture, pair: tuple[int, ...]) -> tuple[float, float, float, float]:
    """Left, right, low and high; the weights make up for a second dimension."""
    lower, upper = cube.cube.lower, cube.cube.upper
    if pair[0] == pair[1]:
        return lower[0], upper[0], cube.lowest, cube.weight
    return lower[pair[0]], upper[pair[0]], lower[pair[1]], upper[pair[1]]


def _axis_titles(revision: Revision, pair: tuple[int, ...]) -> dict[str, str]:
    above = "weight" if pair[0] == pair[1] else _axis(revision, pair[1])
    return {"xaxis.title.text": _axis(revision, pair[0]), "yaxis.title.text": above}


def _axis(revision: Revision, dimension: int) -> str:
    name = escape(revision.columns[dimension])
    of = revision.transformations[dimension] if revision.transformations else None
    if isinstance(of, LinearTransformation):
        return f"{name} ({of.minimum} to {of.maximum})"
    return name


def _description(cube: CubePicture) -> str:
    return (
        f"cube {cube.cube.text or 'root'}, depth {cube.cube.depth}<br>"
        f"{cube.rows:,} rows, {cube.rows_below:,} with those below<br>"
        f"weights {cube.lowest:.2%} to {cube.weight:.2%}<br>"
        f"{cube.blocks:,} blocks in {cube.files:,} files"
    )
