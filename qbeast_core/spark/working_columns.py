"""Names for temporary columns."""

from __future__ import annotations

from collections.abc import Sequence

from qbeast_core.tree.path import PathLayout


class WorkingColumns:
    """Names for temporary columns that differ from all column names of the data."""

    def __init__(self, taken: Sequence[str], dimensions: int) -> None:
        prefix = "_qbeast_"
        while any(name.lower().startswith(prefix) for name in taken):
            prefix = "_" + prefix
        self.weight = prefix + "weight"
        self.depth = prefix + "depth"
        self.file = prefix + "file"
        self.row = prefix + "row"
        self.outside = prefix + "outside"
        self.matched = prefix + "matched"
        self.words = [f"{prefix}path{i}" for i in range(PathLayout(dimensions).words)]
