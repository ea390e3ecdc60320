"""Which files an optimize may rewrite: those of some revisions, of a list, or of a sample."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.errors import InvalidOptions
from qbeast_core.locate.open_table import OpenTable
from qbeast_core.model.revision import STAGING_REVISION_ID
from qbeast_core.options import parse_fraction, parse_texts
from qbeast_core.read.sample import choose_files

ALL, UNINDEXED = "all", "unindexed"


@dataclass(frozen=True)
class Scope:
    """The files that an optimize may rewrite."""

    revision_id: int | str | None = None
    """None for the latest revision and the rows that join it, `"all"` for all revisions."""
    files: tuple[str, ...] | None = None
    """Paths from `QbeastTable.files`; None for all files."""
    fraction: float = 1.0

    @staticmethod
    def parse(
        revision_id: int | str | Iterable[str] | None,
        files: str | Iterable[str] | None,
        fraction: float,
    ) -> Scope:
        """Parse the arguments of `QbeastTable.optimize`. Raises InvalidOptions."""
        named = files
        if isinstance(revision_id, Iterable) and not isinstance(revision_id, str):
            if files is not None:
                raise InvalidOptions(
                    "pass the list of files as the first argument or as files=, not as both"
                )
            named, revision_id = revision_id, None
        paths = None if named is None else parse_texts("files", named, "a path from files()")
        return Scope(revision_id, paths, parse_fraction(fraction))

    @property
    def is_whole(self) -> bool:
        """Whether it has all files of its revisions."""
        return self.files is None and self.fraction == 1.0

    def revisions(self, table: OpenTable) -> list[int]:
        """The numbers of the revisions to optimize, in order; 0 for the rows that join the latest.

        Raises InvalidOptions if the table has no such revision or file.
        """
        known = [id_ for id_ in table.configuration.revisions if id_ != STAGING_REVISION_ID]
        revision_id = self.revision_id
        if self.files is not None:
            live = {file.path for file in table.snapshot.files}
            for path in self.files:
                if path not in live:
                    raise InvalidOptions(
                        f"{path!r} is not a file of version {table.snapshot.version} of the table; "
                        "use paths from files()"
                    )
            if revision_id is None:
                revision_id = ALL
        if revision_id is None:
            return [STAGING_REVISION_ID, *known[-1:]]
        if revision_id == ALL:
            # Hourly appends leave thousands of revisions, most of which have no files any more.
            used = {entry.revision_id for entry in table.index.files} | {*known[-1:]}
            return [STAGING_REVISION_ID, *(id_ for id_ in known if id_ in used)]
        if revision_id == UNINDEXED:
            return [STAGING_REVISION_ID]
        is_number = isinstance(revision_id, Integral) and not isinstance(revision_id, bool)
        if not is_number or revision_id not in known:
            allowed = ", ".join([*map(str, known), repr(ALL), repr(UNINDEXED)])
            raise InvalidOptions(
                f"there is no revision {revision_id!r} to optimize; use one of {allowed}"
            )
        return [int(revision_id)]

    def files_of(self, table: OpenTable, revision_id: int) -> list[int]:
        """The indices of the files of a revision within this scope.

        For number 0, these are the files whose rows join the latest revision: the unindexed ones,
        and those of small older revisions.
        """
        joining = self._joining_revisions(table)
        if revision_id == STAGING_REVISION_ID:
            ids = [revision_id, *joining]
            files: list[int] = sorted(i for id_ in ids for i in table.index.files_of(id_).tolist())
        elif revision_id in joining:
            return []
        else:
            files = table.index.files_of(revision_id).tolist()
        if self.files is not None:
            named = set(self.files)
            files = [i for i in files if table.snapshot.files[i].path in named]
        if self.fraction == 1.0:
            return files
        if revision_id == STAGING_REVISION_ID:
            return _oldest(table.snapshot, files, self.fraction)
        sampled = set(choose_files(table, self.fraction, None).tolist())
        return [i for i in files if i in sampled]

    def _joining_revisions(self, table: OpenTable) -> list[int]:
        """The older revisions whose rows join the latest one; none if the scope names files."""
        if not self.is_whole or self.revision_id not in (None, ALL):
            return []
        latest = table.index.writable_revision
        if not latest.transformations:
            return []
        rows = dict.fromkeys([STAGING_REVISION_ID, latest.revision_id], 0)
        for entry, file in zip(table.index.files, table.snapshot.files, strict=True):
            # Without a number in the log, a file may have any number of rows.
            stored = np.iinfo(np.int64).max if file.rows is None else file.rows
            rows[entry.revision_id] = rows.get(entry.revision_id, 0) + stored
        return small_revisions(rows, latest.revision_id, latest.desired_cube_size)


def small_revisions(rows: Mapping[int, int], latest: int, cube_size: int) -> list[int]:
    """The older revisions whose rows an optimize adds to the latest one.

    Appends beyond the range of the index leave a revision with a few rows each time. An optimize
    adds the rows of a revision to the latest one if they are fewer than a cube has, and no more
    than the rows that it has collected so far. So the rows of a revision at least double whenever
    it is rewritten, and a second optimize finds none to add.

    Args:
        rows: the number of rows of each revision, 0 for the unindexed ones, which are added too.
    """
    joined = rows.get(latest, 0) + rows.get(STAGING_REVISION_ID, 0)
    older = rows.keys() - {latest, STAGING_REVISION_ID}
    found: list[int] = []
    for revision_id in sorted(older, key=lambda id_: (rows[id_], id_)):
        if rows[revision_id] >= cube_size or rows[revision_id] > joined:
            break
        found.append(revision_id)
        joined += rows[revision_id]
    return sorted(found)


def _oldest(snapshot: TableSnapshot, files: list[int], fraction: float) -> list[int]:
    """The oldest files, up to this fraction of the bytes of all given files."""
    by_age = sorted(files, key=lambda i: snapshot.files[i].modification_millis)
    bytes_left = fraction * snapshot.size_bytes(np.array(files, dtype=np.int64))
    chosen: list[int] = []
    for i in by_age:
        if bytes_left <= 0:
            break
        chosen.append(i)
        bytes_left -= snapshot.files[i].size_bytes
    return sorted(chosen)
