"""Write rows to files: place every row, write it, and tag each file with its actual contents.

All ways of writing end here, in `tagged`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import DataFrame

from qbeast_core import phases
from qbeast_core.delta.snapshot import known_rows
from qbeast_core.delta.staged import StagedFile, StagedFiles
from qbeast_core.delta.transaction import Transaction
from qbeast_core.errors import SourceChanged
from qbeast_core.jvm.background import in_background
from qbeast_core.jvm.catalyst import Catalyst
from qbeast_core.jvm.gateway import Jvm
from qbeast_core.model.block import Block, file_tags, rows_by_cube
from qbeast_core.model.cube import CubeId
from qbeast_core.model.revision import Revision
from qbeast_core.tree.anchors import missing_anchors
from qbeast_core.write.layout import RowLayout, placed
from qbeast_core.write.plan import TreePlan
from qbeast_core.write.read_back import Counting, FileContents, RowsOutside, contents_of


@dataclass(frozen=True)
class DoesNotFit:
    """A way of writing does not suit these rows. Nothing is committed."""

    rows: DataFrame | None = None
    """The rows, read from files that were written to find out; None if none were written."""


@dataclass(frozen=True)
class WrittenFiles:
    """Files written by one transaction, tagged but not committed yet."""

    revision: Revision
    """The revision that their rows belong to."""
    staged: tuple[StagedFile, ...] = ()
    contents: tuple[FileContents, ...] = ()
    """The contents of each file, in the same order."""
    warnings: tuple[str, ...] = ()
    """Warnings for the user about samples of these rows."""

    @cached_property
    def in_cubes(self) -> Mapping[CubeId, int]:
        """The number of rows in each cube that has rows."""
        return _in_cubes(self.contents)

    @property
    def cubes(self) -> int:
        """The number of cubes that have rows."""
        return len(self.in_cubes)

    @property
    def rows(self) -> int:
        return sum(self.in_cubes.values())

    @property
    def bytes(self) -> int:
        return sum(staged.file.size_bytes for staged in self.staged)


@dataclass(frozen=True)
class WritePlan:
    """Where rows go, and the blocks that stay."""

    tree: TreePlan
    kept_blocks: Sequence[Block]
    """Live blocks of the revision that the commit does not touch."""
    counted_rows: int
    """The number of rows that the plan was made for."""


def write_planned(transaction: Transaction, rows: DataFrame, plan: WritePlan) -> WrittenFiles:
    """Write the rows that a plan was made for, and tag the files with their actual contents.

    Args:
        rows: in the table's schema; this call evaluates them once.

    Raises:
        SourceChanged: the written rows differ from those that the plan was made for. Nothing is
            committed.
    """
    files = _UntaggedFiles.write(transaction, rows, plan.tree)
    contents = files.contents()
    written = sum(_in_cubes(contents.values()).values())
    if written != plan.counted_rows:
        raise SourceChanged(
            f"{written} rows were written, but {plan.counted_rows} were counted before; the source "
            "changed between counting and writing, or a task failed. Nothing was committed; run "
            "the write again"
        )
    return files.tagged(contents, plan.kept_blocks)


def write_with_other_plan(
    transaction: Transaction, rows: DataFrame, plan: TreePlan
) -> WrittenFiles | DoesNotFit:
    """Write rows with a plan that was made for other, similar rows, as the only rows of its tree.

    Returns DoesNotFit if the plan does not suit them. The arguments are those of `write_planned`.
    """
    files = _UntaggedFiles.write(transaction, rows, plan)
    try:
        contents = files.contents()
    except RowsOutside:
        return DoesNotFit(files.rows)
    if not plan.fits(_in_cubes(contents.values())):
        return DoesNotFit(files.rows)
    return files.tagged(contents, kept_blocks=())


@dataclass(frozen=True)
class _UntaggedFiles:
    """Files that Spark has written by a plan, whose contents are not read back yet."""

    transaction: Transaction
    plan: TreePlan
    staged: StagedFiles
    rows: DataFrame
    """The rows, read from the files."""
    counting: Future[Counting]

    @staticmethod
    def write(transaction: Transaction, rows: DataFrame, plan: TreePlan) -> _UntaggedFiles:
        phases.enter(phases.WRITING)
        catalyst = Catalyst(Jvm(rows.sparkSession))
        row_layout = RowLayout.of(catalyst, plan)
        in_files = placed(rows, plan, row_layout, transaction.metadata.stores_slices)
        # Concurrently with Spark's write, because this is 5 % of the time of a small append.
        counting = in_background(
            rows.sparkSession, Counting.of, plan, row_layout, rows.columns, plan.expected_rows
        )
        staged = transaction.write_files(in_files, plan.expected_rows, plan.without_dictionary)
        written_rows = transaction.read_staged(staged.files)
        return _UntaggedFiles(transaction, plan, staged, written_rows, counting)

    def contents(self) -> dict[str, FileContents]:
        """The contents of each file, by its name.

        Raises:
            RowsOutside: a row lies outside the revision's space.
        """
        files = [each.file for each in self.staged.files]
        if not files:
            return {}
        file_bytes = {file.name: file.size_bytes for file in files}
        return contents_of(self.counting.result(), self.rows, file_bytes, known_rows(files))

    def tagged(
        self, contents: Mapping[str, FileContents], kept_blocks: Sequence[Block]
    ) -> WrittenFiles:
        # Spark writes a file even for a partition without rows. Delta drops it if it counts the
        # rows.
        files = [each for each in self.staged.with_statistics() if contents[each.file.name].blocks]
        of_files = [contents[each.file.name] for each in files]
        return tagged(self.transaction, files, of_files, self.plan, kept_blocks)


def check_none_lost(rows: int, kept: int) -> None:
    """Raise SourceChanged if fewer rows were read than the files that are replaced have."""
    if rows < kept:
        raise SourceChanged(
            f"{rows:,} rows were read from files that have {kept:,} rows to keep. Nothing was "
            "committed; turn off spark.sql.files.ignoreCorruptFiles and ignoreMissingFiles, so "
            "that Spark names the damaged file"
        )


def tagged(
    transaction: Transaction,
    files: Sequence[StagedFile],
    contents: Sequence[FileContents],
    plan: TreePlan,
    kept_blocks: Sequence[Block],
) -> WrittenFiles:
    """Tag files with their contents and with the anchors that keep the tree walkable.

    Args:
        contents: of each file, in the same order.
        kept_blocks: live blocks of the plan's revision that the commit does not touch.
    """
    blocks = [block for each in contents for block in each.blocks]
    if anchors := missing_anchors([*kept_blocks, *blocks], plan.weights):
        first, *others = contents
        contents = [replace(first, blocks=[*first.blocks, *anchors]), *others]
    revision = plan.revision
    # Delta only decides within the transaction how a new table's columns are named in its files.
    identity = transaction.metadata.identity_of(revision.layout_columns)
    tagged_files = (
        file.tagged(
            file_tags(
                revision.revision_id,
                each.blocks,
                revision.weight_key,
                each.highest_weight,
                identity.recorded,
            )
        )
        for file, each in zip(files, contents, strict=True)
    )
    return WrittenFiles(revision, tuple(tagged_files), tuple(contents))


def _in_cubes(contents: Iterable[FileContents]) -> Mapping[CubeId, int]:
    """The number of rows in each cube that has rows."""
    return rows_by_cube(block for each in contents for block in each.blocks)
