"""Draw the index of one revision as one HTML page that loads nothing.

What the page shows is computed here and in `tree`; `page/` has its text, style and script.
"""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql.types import DecimalType

from qbeast_core.delta.stored_statistics import file_extremes, stored_columns
from qbeast_core.errors import InvalidOptions
from qbeast_core.locate.open_table import OpenTable
from qbeast_core.model.revision import Revision
from qbeast_core.read.metrics import revision_files, table_metrics
from qbeast_core.tree.density import density_grids
from qbeast_core.tree.extremes import Extremes
from qbeast_core.tree.metrics import FileBlocks, IndexMetrics
from qbeast_core.tree.otree import OTree
from qbeast_core.tree.picture import TreePicture, tree_picture
from qbeast_core.tree.reading import (
    ReadableFile,
    Readings,
    cube_readings,
    readings,
)
from qbeast_core.tree.steps import ColumnSteps, column_steps

FRACTIONS = (
    *(digit / 10**power for power in (4, 3, 2) for digit in (1, 1.5, 2, 3, 4, 5, 6, 8)),
    *(0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
)
"""The samples that the page's slider offers."""

_GRID_DEPTH = 6
_MAX_ENTRIES = 150_000
"""Above that the page has wider steps: 64 to a column become 32, and so on."""
_MAX_PAIRS = 45


@dataclass(frozen=True)
class PageContents:
    """All that a page shows."""

    title: str
    """The table."""
    subtitle: str
    revision: Revision
    files: Sequence[FileBlocks]
    """The files of the revision that is drawn."""
    readable: Sequence[ReadableFile]
    """The files of the whole table; samples and queries read those of all revisions."""
    metrics: IndexMetrics
    decimal_scales: Mapping[str, int]


def visualize_table(
    table: OpenTable,
    path: str,
    revision_id: int | None,
    columns: Sequence[str] | None,
) -> Path:
    """Write the page; the arguments are those of `QbeastTable.visualize_index`."""
    metrics = table_metrics(table, revision_id)
    revision = table.index.configuration.revisions[metrics.revision_id]
    schema = table.snapshot.schema
    contents = PageContents(
        title=table.label,
        subtitle=f"revision {revision.revision_id}, table version {table.snapshot.version}",
        revision=revision,
        files=revision_files(table, revision.revision_id),
        readable=_readable_files(table, revision),
        metrics=metrics,
        decimal_scales={
            field.name: field.dataType.scale
            for field in schema
            if isinstance(field.dataType, DecimalType)
        },
    )
    return write_page(path, contents, columns)


def write_page(path: str, contents: PageContents, columns: Sequence[str] | None = None) -> Path:
    """Draw a revision from its files. Raises InvalidOptions."""
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        raise InvalidOptions(
            f"{path!r} cannot be written; give the name of an HTML file in a directory that exists"
        )
    first = _chosen_dimensions(contents.revision, columns)
    target.write_text(_page(contents, first), encoding="utf-8")
    return target


def _chosen_dimensions(revision: Revision, columns: Sequence[str] | None) -> tuple[int, ...]:
    """The dimensions to draw: those named, else the first two, or the only one."""
    if columns is None:
        return tuple(range(min(2, revision.dimensions)))
    known = ", ".join(revision.columns)
    if isinstance(columns, str) or len(columns) != 2 or len(set(columns)) != 2:
        raise InvalidOptions(f"columns must name two columns of {known}; got {columns!r}")
    for name in columns:
        if name not in revision.columns:
            raise InvalidOptions(f"column {name!r} is not indexed; the indexed columns are {known}")
    return tuple(revision.columns.index(name) for name in columns)


def _readable_files(table: OpenTable, revision: Revision) -> list[ReadableFile]:
    """All files of the table but those with copies only, which nothing reads."""
    index = table.index
    stored = stored_columns(table.snapshot.schema, revision.columns)
    found = []
    for i in index.with_rows.tolist():
        data_file, indexed = table.snapshot.files[i], index.files[i]
        known = file_extremes(data_file.stats, stored)
        found.append(
            ReadableFile(
                size_bytes=data_file.size_bytes,
                rows=data_file.rows,
                revision=index.configuration.revisions[indexed.revision_id]
                if indexed.is_indexed
                else None,
                blocks=indexed.blocks,
                extremes=tuple(known.get(name, Extremes()) for name in revision.columns),
            )
        )
    return found


def _page(contents: PageContents, first: tuple[int, ...]) -> str:
    parts = {
        "title": escape(f"Index of {contents.title}"),
        "style": _part("page.css"),
        "script": _part("page.js"),
        "metrics": escape(str(contents.metrics)),
        "data": _script_text(_data(contents, first)),
    }
    page = _part("page.html")
    head, *rest = page.split("{{")
    filled = [head]
    for piece in rest:
        name, _, text = piece.partition("}}")
        filled += [parts[name], text]
    return "".join(filled)


def _part(name: str) -> str:
    return (resources.files("qbeast_core.read") / "page" / name).read_text(encoding="utf-8")


def _script_text(data: Mapping[str, Any]) -> str:
    """JSON that cannot end the element that it stands in."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _data(contents: PageContents, first: tuple[int, ...]) -> dict[str, Any]:
    revision, metrics = contents.revision, contents.metrics
    tree = OTree.of([b for file in contents.files for b in file.blocks], revision.dimensions)
    sizes = metrics.file_bytes
    steps, choices, entry_depth = _choices(contents)
    grids = density_grids(tree, _GRID_DEPTH)
    shown = dict(itertools.islice(grids.items(), _MAX_PAIRS))
    if len(first) == 2:
        pair = (min(first), max(first))
        shown[pair] = grids[pair]
    others = [file for file in contents.readable if file.revision not in (None, revision)]
    return {
        "table": contents.title,
        "subtitle": contents.subtitle,
        "first": first,
        "desired": revision.desired_cube_size,
        "sampleKey": list(revision.sample_key),
        "rows": metrics.rows,
        "cubes": metrics.cubes,
        "fileBytes": [sizes.smallest, sizes.median, sizes.largest],
        "fractions": FRACTIONS,
        "columns": [_column_data(column) for column in steps],
        "gridDepth": _GRID_DEPTH,
        "entryDepth": entry_depth,
        "grids": [{"pair": pair, "rows": _packed(grid)} for pair, grid in shown.items()],
        "otherFiles": len(others),
        "readings": {name: _packed(array) for name, array in vars(choices).items()},
        "tree": _tree_data(tree_picture(contents.files, tree), revision, steps),
    }


def _choices(contents: PageContents) -> tuple[list[ColumnSteps], Readings, int]:
    """Steps as narrow as the page's size allows, what they read, and how deep its cells are."""
    revision = contents.revision
    transformations = revision.transformations or (None,) * revision.dimensions
    for grid_depth in range(_GRID_DEPTH, -1, -1):
        steps = [
            column_steps(name, of, 1 << grid_depth, decimal_scale=contents.decimal_scales.get(name))
            for name, of in zip(revision.columns, transformations, strict=True)
        ]
        found = readings(contents.readable, revision, steps, grid_depth)
        if len(found.weight) <= _MAX_ENTRIES:
            break
    return steps, found, grid_depth


def _column_data(steps: ColumnSteps) -> dict[str, Any]:
    return {
        "name": steps.column,
        "kind": steps.kind,
        "edges": steps.edges,
        "lower": [[bound.label, bound.sql] for bound in steps.lower],
        "upper": [[bound.label, bound.sql] for bound in steps.upper],
        "upperOp": steps.upper_op,
        "marks": steps.marks,
    }


def _tree_data(
    picture: TreePicture, revision: Revision, steps: Sequence[ColumnSteps]
) -> dict[str, Any]:
    last_from, first_to = cube_readings([of.cube for of in picture.cubes], revision, steps)
    return {
        "cubes": [
            [
                *(of.cube.text, of.cube.depth, round(of.begins, 6), round(of.share, 6)),
                *(of.rows, of.rows_below, of.lowest, of.weight, of.blocks, of.files),
            ]
            for of in picture.cubes
        ],
        "lastFrom": _packed(last_from),
        "firstTo": _packed(first_to),
        "leftOut": picture.left_out,
        "levels": [list(vars(level).values()) for level in picture.levels],
    }


def _packed(array: NDArray[Any]) -> list[str]:
    """An array as JavaScript makes a typed array of it: type and little-endian bytes."""
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
    return [array.dtype.str[1:], base64.b64encode(little.tobytes()).decode("ascii")]
