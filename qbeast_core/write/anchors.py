"""Anchors: keep a tree walkable when it loses files (docs/format.md 8.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from qbeast_core.delta.index import TableIndex
from qbeast_core.delta.snapshot import DataFile
from qbeast_core.model.block import file_tags
from qbeast_core.tree.anchors import missing_anchors


def anchor_tags(
    index: TableIndex, files: Sequence[DataFile], removed: NDArray[np.int64], skipped: int | None
) -> dict[int, dict[str, str]]:
    """New tags for remaining files, which take over the cube weights of removed blocks.

    Args:
        files: the table's files.
        removed: indices of the files that the commit removes.
        skipped: the ID of a revision that needs no anchors, because new files carry its weights.

    Returns:
        The tags of each file that changes, by its index.
    """
    all_removed = set(removed.tolist())
    mended = {index.files[i].revision_id for i in all_removed if index.files[i].is_indexed}
    tags = {}
    for revision_id in sorted(mended - {skipped}):
        remaining = [i for i in index.files_of(revision_id).tolist() if i not in all_removed]
        revision = index.configuration.revisions[revision_id]
        kept = [block for i in remaining for block in index.files[i].blocks]
        if anchors := missing_anchors(kept, index.tree(revision).weights):
            # Delta may refuse to add a file with a deletion vector again.
            chosen = min(remaining, key=lambda i: files[i].deleted_rows > 0)
            first = index.files[chosen]
            tags[chosen] = file_tags(
                revision_id,
                [*first.blocks, *anchors],
                revision.weight_key,
                first.highest_weight,
                index.identity.recorded,
            )
    return tags
