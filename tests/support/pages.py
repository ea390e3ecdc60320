"""The contents of index pages, from blocks alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qbeast_core.model.block import Block
from qbeast_core.model.cube import CubeId
from qbeast_core.model.datatypes import DataType
from qbeast_core.model.revision import Revision
from qbeast_core.model.transformation import LinearTransformation
from qbeast_core.model.transformer import LinearTransformer
from qbeast_core.model.weight import MAX_WEIGHT, weight_of_fraction
from qbeast_core.read.visualize import PageContents
from qbeast_core.tree.extremes import Extremes
from qbeast_core.tree.metrics import FileBlocks, TableSize, index_metrics
from qbeast_core.tree.reading import ReadableFile

EVIL = "</script><script>document.title='broken'</script><!-- {{data}} `'\""
"""A name of a table or column that would break a page if it was not escaped."""


def revision_over(*columns: str, cube_size: int = 100) -> Revision:
    """Whole numbers from 0 to 999 in each column."""
    return Revision(
        1,
        0,
        "t",
        cube_size,
        tuple(LinearTransformer(name, DataType.INTEGER) for name in columns),
        (LinearTransformation(0, 999, 0, DataType.INTEGER),) * len(columns),
    )


def small_files(dimensions: int) -> list[FileBlocks]:
    """A root in one file, and its children in another."""
    root = CubeId.root(dimensions)
    middle = weight_of_fraction(0.2)
    first = [Block(child, middle + 1, MAX_WEIGHT, 50) for child in root.children()]
    return [
        FileBlocks(1000, (Block(root, weight_of_fraction(0.0), middle, 100),)),
        FileBlocks(3000, tuple(first)),
    ]


def readable(
    file: FileBlocks, of: Revision | None, extremes: Sequence[Extremes] | None = None
) -> ReadableFile:
    """The same file for the page's counts; without a revision, one that is not indexed."""
    rows = sum(block.element_count for block in file.blocks)
    known = tuple(extremes) if extremes else (Extremes(),) * (of.dimensions if of else 2)
    return ReadableFile(file.size_bytes, rows, of, file.blocks if of else (), known)


def page_contents(
    files: Sequence[FileBlocks],
    *columns: str,
    title: str = "events",
    cube_size: int = 100,
    more: Sequence[ReadableFile] = (),
    **options: Any,
) -> PageContents:
    """A table of these files. `more` are those of other revisions, or without an index."""
    drawn = revision_over(*columns, cube_size=cube_size)
    size = TableSize(len(files), None, sum(file.size_bytes for file in files))
    return PageContents(
        title=title,
        subtitle="revision 1, table version 0",
        revision=drawn,
        files=files,
        readable=[*(readable(file, drawn) for file in files), *more],
        metrics=index_metrics(drawn, files, size),
        decimal_scales={},
        **options,
    )
