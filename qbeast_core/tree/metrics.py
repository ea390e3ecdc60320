"""Metrics of a revision's tree, computed from its blocks alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from qbeast_core.counts import counted
from qbeast_core.model.block import Block
from qbeast_core.model.revision import Revision
from qbeast_core.model.weight import MAX_WEIGHT, weight_of_fraction
from qbeast_core.tree.fragments import compaction_candidates
from qbeast_core.tree.otree import OTree

FRACTIONS = (0.001, 0.01, 0.1)
"""The samples whose cost the metrics predict."""


@dataclass(frozen=True)
class FileBlocks:
    """A file of the revision: its size and its blocks."""

    size_bytes: int
    blocks: tuple[Block, ...]
    highest_weight: int | None = None
    """The highest weight of the rows; None in a file whose rows are not divided by weight."""
    deleted_rows: int = 0
    """Rows that a deletion vector hides; the blocks count them."""


@dataclass(frozen=True)
class TableSize:
    """The size of a table over all its revisions, including files that are not indexed."""

    files: int
    rows: int | None
    """None if the log does not have the row count of every file."""
    size_bytes: int


@dataclass(frozen=True)
class Spread:
    """Minimum, quartiles and maximum of some counts; all 0 if there are none."""

    smallest: int
    lower_quartile: int
    median: int
    upper_quartile: int
    largest: int

    @staticmethod
    def of(counts: Sequence[int]) -> Spread:
        """The spread of counts in any order; each quartile is one of the counts."""
        if not counts:
            return Spread(0, 0, 0, 0, 0)
        quartiles = np.quantile(counts, [0, 0.25, 0.5, 0.75, 1], method="inverted_cdf")
        return Spread(*(int(q) for q in quartiles))

    def __str__(self) -> str:
        quartiles = (self.lower_quartile, self.median, self.upper_quartile)
        return " / ".join(f"{n:,}" for n in (self.smallest, *quartiles, self.largest))


@dataclass(frozen=True)
class SampleCost:
    """What a sample of a fraction reads of the revision: the whole files that the index selects."""

    fraction: float
    files: int
    rows: int
    size_bytes: int


@dataclass(frozen=True)
class OptimizableFiles:
    """The files that an optimize would rewrite, and about how many files would replace them."""

    files: int
    rows: int
    size_bytes: int
    files_after: int

    def __str__(self) -> str:
        if not self.files:
            return "nothing"
        return (
            f"{counted(self.files, 'file')} as about {self.files_after:,}, "
            f"{counted(self.rows, 'row')}, "
            f"{_megabytes(self.size_bytes)}"
        )


_NONE = OptimizableFiles(0, 0, 0, 0)


@dataclass(frozen=True)
class IndexMetrics:
    """The metrics of one revision. Sizes are in rows unless the name says otherwise."""

    revision_id: int
    columns: tuple[str, ...]
    sample_key: tuple[str, ...]
    """The columns that decide which samples a row is in; empty if these are the indexed columns."""
    desired_cube_size: int
    rows: int
    """Without those that deletion vectors hide, as in `table`. The spreads count stored rows."""
    size_bytes: int
    files: int
    blocks: int
    cubes: int
    inner_cubes: int
    """Cubes that pass rows on to cubes below them."""
    height: int
    """Levels of the tree: 1 for a root alone, 0 without data."""
    average_fan_out: float
    """Children per cube with children; at most 2 to the power of the number of columns."""
    balance: float
    """The height divided by that of a full tree with as many cubes. 1.0 is balanced; a larger value
    means a lopsided tree."""
    inner_cube_rows: Spread
    leaf_cube_rows: Spread
    block_rows: Spread
    file_rows: Spread
    file_bytes: Spread
    blocks_per_file: Spread
    sample_costs: tuple[SampleCost, ...]
    table: TableSize
    unindexed_files: int = 0
    unindexed_bytes: int = 0
    optimizable: OptimizableFiles = _NONE
    """What an optimize of this revision would rewrite, not counting unindexed files."""
    problem: str | None = None
    """Why the index cannot be used, and what to do; None if it can."""

    @property
    def blocks_per_cube(self) -> float:
        """The mean number of files that hold rows of a cube. Appends increase it."""
        return self.blocks / self.cubes if self.cubes else 0.0

    @property
    def unindexed_share(self) -> float:
        """The share of the table's bytes that are not indexed, from 0 to 1."""
        return self.unindexed_bytes / self.table.size_bytes if self.table.size_bytes else 0.0

    def to_dict(self) -> dict[str, Any]:
        """All metrics, as values that JSON can represent."""
        numbers = asdict(self)
        numbers["columns"], numbers["sample_key"] = list(self.columns), list(self.sample_key)
        numbers["sample_costs"] = list(numbers["sample_costs"])
        return {**numbers, "blocks_per_cube": self.blocks_per_cube}

    def __str__(self) -> str:
        files = counted(self.files, "file")
        lines = [
            ("revision", f"{self.revision_id}, indexed by {', '.join(self.columns)}"),
            ("sample key", ", ".join(self.sample_key) or "the indexed columns"),
            ("rows", f"{self.rows:,} in {files}, {_megabytes(self.size_bytes)}"),
            (
                "cubes",
                f"{self.cubes:,} ({self.inner_cubes:,} inner), {counted(self.blocks, 'block')}",
            ),
            ("tree", self._shape()),
            ("desired cube size", counted(self.desired_cube_size, "row")),
            ("rows per inner cube", f"{self.inner_cube_rows}  (min / quartiles / max)"),
            ("rows per leaf cube", str(self.leaf_cube_rows)),
            ("rows per block", str(self.block_rows)),
            ("rows per file", str(self.file_rows)),
            ("bytes per file", str(self.file_bytes)),
            ("blocks per file", str(self.blocks_per_file)),
        ]
        for cost in self.sample_costs:
            lines.append((f"{cost.fraction * 100:g} % sample reads", self._share(cost)))
        if self.unindexed_files:
            size = _megabytes(self.unindexed_bytes)
            unindexed = counted(self.unindexed_files, "file")
            lines.append(("not indexed", f"{unindexed}, {size}, {self.unindexed_share:.1%} of all"))
        lines.append(("optimize rewrites", str(self.optimizable)))
        if self.problem:
            lines.insert(0, ("problem", self.problem))
        width = max(len(name) for name, _ in lines)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in lines)

    def _shape(self) -> str:
        return (
            f"{counted(self.height, 'level')}, {self.average_fan_out:.1f} children on average, "
            f"balance {self.balance:.2f}"
        )

    def _share(self, cost: SampleCost) -> str:
        share = cost.size_bytes / self.size_bytes if self.size_bytes else 0.0
        return (
            f"{cost.files:,} of {counted(self.files, 'file')}, {share:.1%} of the bytes, "
            f"{counted(cost.rows, 'row')}"
        )


def index_metrics(
    revision: Revision,
    files: Iterable[FileBlocks],
    table: TableSize,
    *,
    unindexed_files: int = 0,
    unindexed_bytes: int = 0,
) -> IndexMetrics:
    """The metrics of a revision, from its live files.

    `table` covers the files of all revisions. `unindexed_files` and `unindexed_bytes` are the
    number and size of the table's files that are not indexed; every sample reads these too.
    """
    listed = list(files)
    blocks = [block for file in listed for block in file.blocks]
    tree = OTree.of(blocks, revision.dimensions)
    counts = tree.element_count
    inner = [cube for cube in counts if tree.max_weight[cube] < MAX_WEIGHT]
    leaves = [cube for cube in counts if tree.max_weight[cube] == MAX_WEIGHT]
    file_rows = [sum(block.element_count for block in file.blocks) for file in listed]
    height = tree.cubes[-1].depth + 1 if tree.cubes else 0
    fan_out = (len(tree.cubes) - 1) / len(tree.inner_cubes) if tree.inner_cubes else 0.0
    return IndexMetrics(
        revision_id=revision.revision_id,
        columns=revision.columns,
        sample_key=revision.sample_key,
        desired_cube_size=revision.desired_cube_size,
        rows=sum(file_rows) - sum(file.deleted_rows for file in listed),
        size_bytes=sum(file.size_bytes for file in listed),
        files=len(listed),
        blocks=len(blocks),
        cubes=len(counts),
        inner_cubes=len(inner),
        height=height,
        average_fan_out=fan_out,
        balance=_balance(height, len(tree.cubes), revision.dimensions),
        inner_cube_rows=Spread.of([counts[cube] for cube in inner]),
        leaf_cube_rows=Spread.of([counts[cube] for cube in leaves]),
        block_rows=Spread.of([block.element_count for block in blocks]),
        file_rows=Spread.of(file_rows),
        file_bytes=Spread.of([file.size_bytes for file in listed]),
        blocks_per_file=Spread.of([len(file.blocks) for file in listed]),
        sample_costs=tuple(_cost(fraction, listed, file_rows) for fraction in FRACTIONS),
        table=table,
        unindexed_files=unindexed_files,
        unindexed_bytes=unindexed_bytes,
        optimizable=_optimizable(listed, file_rows, revision.desired_cube_size),
    )


def _optimizable(
    files: list[FileBlocks], file_rows: list[int], desired_rows: int
) -> OptimizableFiles:
    found = compaction_candidates(dict(enumerate(files)), desired_rows)
    rows = sum(file_rows[i] for i in found)
    return OptimizableFiles(
        files=len(found),
        rows=rows,
        size_bytes=sum(files[i].size_bytes for i in found),
        files_after=-(-rows // desired_rows) if found else 0,
    )


def _cost(fraction: float, files: list[FileBlocks], file_rows: list[int]) -> SampleCost:
    below = weight_of_fraction(fraction)
    read = [
        (rows, file.size_bytes)
        for file, rows in zip(files, file_rows, strict=True)
        if any(block.element_count and block.min_weight < below for block in file.blocks)
    ]
    return SampleCost(
        fraction=fraction,
        files=len(read),
        rows=sum(rows for rows, _ in read),
        size_bytes=sum(size for _, size in read),
    )


def _balance(height: int, cubes: int, dimensions: int) -> float:
    """The height divided by that of a full tree; one of h levels has (2^(n h) - 1) / (2^n - 1)
    cubes."""
    if cubes == 0:
        return 0.0
    fan_out = 1 << dimensions
    full_height = math.log(cubes * (fan_out - 1) + 1, fan_out)
    return height / full_height


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.1f} MB"
