"""Rows into files: place every row, write, and tag the files with what they really hold.

Both a write of new rows and an optimize of old ones end here.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame

from qbeast_core import phases
from qbeast_core.delta.jvm import Jvm
from qbeast_core.delta.transaction import StagedFile, Transaction
from qbeast_core.errors import SourceChanged
from qbeast_core.model.block import Block, file_tags
from qbeast_core.model.revision import Revision
from qbeast_core.operations.contents import Counting, FileContents, contents_of
from qbeast_core.operations.placing import Placing, TreePlan, placed
from qbeast_core.spark.catalyst import Catalyst
from qbeast_core.tree.anchors import missing_anchors


@dataclass(frozen=True)
class IndexedFiles:
    """Files written by one transaction, tagged and not committed yet."""

    staged: tuple[StagedFile, ...] = ()
    contents: tuple[FileContents, ...] = ()
    """What each file holds."""

    @property
    def cubes(self) -> int:
        """How many cubes their rows belong to."""
        blocks = (block for held in self.contents for block in held.blocks)
        return len({block.cube for block in blocks if block.element_count})

    @property
    def bytes(self) -> int:
        return sum(staged.file.size_bytes for staged in self.staged)


NO_FILES = IndexedFiles()


def write_indexed(
    transaction: Transaction,
    rows: DataFrame,
    plan: TreePlan,
    *,
    expected_rows: int,
    kept_blocks: Sequence[Block] = (),
) -> IndexedFiles:
    """Write the rows as files of the plan's revision, tagged with what they really hold.

    Args:
        rows: in the table's schema; evaluated once more by this call.
        expected_rows: how many rows the plan was made for.
        kept_blocks: live blocks of the revision that the commit leaves alone.

    Raises:
        SourceChanged: other rows were written than the plan was made for. Nothing is committed.
    """
    phases.enter(phases.WRITING)
    catalyst = Catalyst(Jvm(rows.sparkSession))
    placing = Placing.of(catalyst, plan)
    late = transaction.late_statistics(expected_rows)
    in_files = placed(rows, plan, placing, transaction.stores_slices)
    with ThreadPoolExecutor(1) as pool:
        # While Spark writes: of a small append it would be a twentieth of the time.
        in_session = inheritable_thread_target(rows.sparkSession)(Counting.of)
        counting = pool.submit(in_session, catalyst, plan, placing, rows.schema, late.measured)
        staged = transaction.write_files(in_files, late, plan.without_dictionary)
    held: dict[str, FileContents] = {}
    with transaction.completed(staged, late) as completed:
        if staged:
            file_bytes = {each.name: each.file.size_bytes for each in staged}
            held = contents_of(counting.result(), transaction.read_staged(staged), file_bytes)
    blocks = [block for contents in held.values() for block in contents.blocks]
    written = sum(block.element_count for block in blocks)
    if written != expected_rows:
        raise SourceChanged(
            f"{written} rows were written where {expected_rows} were counted before; the source "
            "changed in between or a task failed. Nothing was committed; run the write again"
        )
    if anchors := missing_anchors([*kept_blocks, *blocks], plan.weights):
        held[staged[0].name].blocks.extend(anchors)
    files = completed.result()
    return IndexedFiles(
        tuple(_told(file, held[file.name], plan.revision) for file in files),
        tuple(held[file.name] for file in files),
    )


def _told(file: StagedFile, held: FileContents, revision: Revision) -> StagedFile:
    """The file with what the log says of its contents."""
    tags = file_tags(revision.revision_id, held.blocks, revision.weight_key, held.highest_weight)
    return file.tagged(tags).with_extremes(held.extremes)
