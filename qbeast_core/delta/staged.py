"""Files that a transaction has written and not committed yet."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from qbeast_core.delta.snapshot import DataFile


@dataclass(frozen=True)
class StagedFile:
    """A file that is written but not committed yet."""

    action: Mapping[str, Any]
    """The `add` action from Delta, in the log's JSON form."""

    @cached_property
    def file(self) -> DataFile:
        return DataFile.from_log(self.action)

    def tagged(self, tags: Mapping[str, str]) -> StagedFile:
        return StagedFile({**self.action, "tags": dict(tags)})

    def described(self, statistics: str | None) -> StagedFile:
        return StagedFile({**self.action, "stats": statistics})


@dataclass(frozen=True)
class StagedFiles:
    """The files of one write."""

    files: tuple[StagedFile, ...]
    """The files with the statistics that Delta collected during the write."""
    _described: Future[list[StagedFile]] | None = None
    """The files with further statistics, from footers; None if there are none."""

    def with_statistics(self) -> list[StagedFile]:
        """The files with all statistics; waits for the thread that completes them."""
        return list(self.files) if self._described is None else self._described.result()
