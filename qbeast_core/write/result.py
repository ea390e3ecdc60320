"""The result of a write."""

from __future__ import annotations

import time
from dataclasses import dataclass

from qbeast_core.counts import counted
from qbeast_core.locate.open_table import OpenTable
from qbeast_core.options import WriteMode
from qbeast_core.tree.column_choice import ColumnChoice
from qbeast_core.write.files import WrittenFiles


@dataclass(frozen=True)
class WriteResult:
    """The result of a write: what it added, its duration and the table's new version."""

    version: int
    """The table's version after the write."""
    revision_id: int
    """The revision that the rows were written under."""
    rows: int
    """The number of written rows."""
    cubes: int
    """The number of cubes that received rows."""
    files: int
    """The number of written files."""
    bytes: int
    """The size of these files."""
    seconds: float
    """The duration of the write."""
    mode: WriteMode
    """APPEND if the write kept the table's earlier rows, else OVERWRITE."""
    new_revision: bool
    """Whether the write added a revision to the index."""
    column_choice: ColumnChoice | None = None
    """The columns that `auto` chose in this write, and why; None if it chose none."""
    warnings: tuple[str, ...] = ()
    """Warnings about the precision of the table's samples."""
    repeated: bool = False
    """Whether nothing was written because the table already has this transaction, or a later one,
    of the application in `txn_app_id`."""

    def __str__(self) -> str:
        if self.repeated:
            return "nothing written: the table already has this transaction"
        chosen = f"; {self.column_choice}" if self.column_choice else ""
        return (
            f"{counted(self.rows, 'row')} in {counted(self.cubes, 'cube')}, "
            f"{counted(self.files, 'file')}, "
            f"revision {self.revision_id}{chosen}"
        )


def result_of(
    written: WrittenFiles, version: int, mode: WriteMode, started: float, *, new_revision: bool
) -> WriteResult:
    """The result of a write that committed these files."""
    return WriteResult(
        version=version,
        revision_id=written.revision.revision_id,
        rows=written.rows,
        cubes=written.cubes,
        files=len(written.staged),
        bytes=written.bytes,
        seconds=time.monotonic() - started,
        mode=mode,
        new_revision=new_revision,
    )


def unchanged_result(table: OpenTable, started: float, *, repeated: bool = False) -> WriteResult:
    """The result of a write that had nothing to do."""
    return WriteResult(
        version=table.snapshot.version,
        revision_id=table.configuration.last_revision_id or 0,
        rows=0,
        cubes=0,
        files=0,
        bytes=0,
        seconds=time.monotonic() - started,
        mode=WriteMode.APPEND,
        new_revision=False,
        repeated=repeated,
    )
