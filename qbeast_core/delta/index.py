"""A table's index, read from its log: the indexed files and their blocks.

A file counts as indexed only if all its tags are valid and agree with the rest of the log
(docs/format.md 7.5). All other files are *unindexed*, and every read includes them. Versions up to
0.5 also left files that are *copies* of rows in other files (docs/format.md 10.2); these are never
read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from pyspark.sql.types import StructType

from qbeast_core.delta.column_identity import ColumnIdentity, described
from qbeast_core.delta.snapshot import DataFile, TableSnapshot
from qbeast_core.delta.stored_statistics import StoredColumn, file_extremes, stored_columns
from qbeast_core.delta.version_cache import VersionCache
from qbeast_core.errors import (
    CorruptMetadata,
    IncompatibleTable,
    InvalidOptions,
    NotAQbeastTable,
)
from qbeast_core.model.block import (
    BLOCKS_TAG,
    COLUMNS_TAG,
    HIGHEST_WEIGHT_TAG,
    REVISION_TAG,
    WEIGHT_KEY_TAG,
    Block,
    parse_blocks,
)
from qbeast_core.model.cube import CubeId
from qbeast_core.model.json_text import parse_id
from qbeast_core.model.legacy import has_legacy_tags, is_copy
from qbeast_core.model.revision import (
    STAGING_REVISION_ID,
    IndexConfiguration,
    Revision,
)
from qbeast_core.model.transformation import LinearTransformation
from qbeast_core.model.weight import MIN_WEIGHT
from qbeast_core.options import IndexedColumn, resolve_columns, resolve_sample_key
from qbeast_core.tree.corners import corners
from qbeast_core.tree.otree import OTree


@dataclass(frozen=True)
class IndexedFile:
    """A file's entry in the index."""

    revision_id: int
    """0 for a file that is not indexed."""
    blocks: tuple[Block, ...]
    problem: str | None = None
    """Why a file with index tags counts as not indexed."""
    highest_weight: int | None = None
    """The highest weight of the rows; None if the log does not have it."""
    is_copy: bool = False
    """Whether the file has only copies of rows in other files, which do not belong to the table."""

    @property
    def is_indexed(self) -> bool:
        return self.revision_id != STAGING_REVISION_ID

    @property
    def lowest_weight(self) -> int:
        """The lowest weight of the rows of an indexed file."""
        return min((b.min_weight for b in self.blocks if b.element_count), default=MIN_WEIGHT)

    def highest_in(self, block: Block) -> int:
        """An upper bound for the row weights in one of the file's blocks, from the log."""
        known = self.highest_weight
        return block.max_weight if known is None else min(known, block.max_weight)

    def lies_below(self, limit: int) -> bool:
        """Whether the log guarantees that all rows of the file have a weight below the limit."""
        return self.highest_weight is not None and self.highest_weight < limit


@dataclass(frozen=True, eq=False)
class BlockArrays:
    """The blocks of one revision as arrays, to select files without a loop."""

    revision: Revision
    file: NDArray[np.int64]
    """int64[blocks]: the index of the block's file."""
    min_weight: NDArray[np.int64]
    """int64[blocks]: the smallest weight of the block's rows. Blocks without rows are left out."""
    max_weight: NDArray[np.int64]
    """int64[blocks]: an upper bound for the weights of the block's rows."""
    rows: NDArray[np.int64]
    """int64[blocks]: the number of the block's rows, including deleted ones."""
    cubes: Sequence[CubeId]
    """The block's cube."""

    @cached_property
    def corners(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The lower and upper corners of the cubes, float64[blocks, dimensions] each."""
        return corners(self.cubes, self.revision.dimensions)


class TableIndex:
    """The index of one version of a table."""

    def __init__(
        self, configuration: IndexConfiguration, schema: StructType, files: Sequence[DataFile]
    ) -> None:
        self.configuration = configuration
        self._data_files = files
        self._schema = schema
        last = configuration.revisions.get(configuration.last_revision_id or STAGING_REVISION_ID)
        self._distrusted = _distrusted_revisions(configuration, last, schema)
        self.identity = ColumnIdentity.of(schema, last.layout_columns if last else ())
        """The columns by which a file must have been indexed."""

    @staticmethod
    def of(snapshot: TableSnapshot, configuration: IndexConfiguration) -> TableIndex:
        """The index of a snapshot with this configuration, parsed once per state of the table."""

        def read() -> TableIndex:
            return TableIndex(configuration, snapshot.schema, snapshot.files)

        return _indexes.get(snapshot.key, read)

    @cached_property
    def writable_revision(self) -> Revision:
        """The latest revision, in the form that writes continue.

        If all its files were written for other columns, it has no transformations: the old ones do
        not apply to the present columns, so the next rows start a new revision.
        """
        latest = self.configuration.latest
        number = str(latest.revision_id)
        own = [file for file in self._data_files if file.tags.get(REVISION_TAG) == number]
        if own and not any(map(self._has_present_columns, own)):
            return replace(latest, transformations=())
        return latest

    def weight_columns(self, table: str) -> tuple[str, ...]:
        """The columns whose hash is a row's weight.

        Raises:
            IncompatibleTable: the table has lost one of them, or Spark can no longer hash it.
        """
        names = self.configuration.latest.weight_columns
        try:
            resolve_sample_key(names, self._schema, may_be_identity=True)
        except InvalidOptions:
            self.check_columns_exist(table)
            raise
        return names

    def check_columns_exist(self, table: str) -> None:
        """Raise IncompatibleTable unless the table has all columns needed to place new rows."""
        latest = self.configuration.latest
        columns = [IndexedColumn(name, None) for name in latest.columns]
        try:
            resolve_columns(columns, self._schema, case_sensitive=True, may_be_identity=True)
            resolve_sample_key(
                latest.weight_columns, self._schema, case_sensitive=True, may_be_identity=True
            )
        except InvalidOptions as problem:
            raise IncompatibleTable(
                f"the index of {table} needs a column that was dropped, renamed or retyped: "
                f"{problem}. Restore the column's name and type, or rewrite the table with "
                "write_table(..., mode='overwrite', overwrite_schema=False) and other "
                "columns_to_index or another sample_key"
            ) from None

    def lost_column(self, table: str) -> str | None:
        """The message of the error that `check_columns_exist` raises.

        None if it raises none, or if the index cannot be read.
        """
        try:
            self.check_columns_exist(table)
        except IncompatibleTable as problem:
            return str(problem)
        except (CorruptMetadata, NotAQbeastTable):
            return None
        return None

    @cached_property
    def files(self) -> tuple[IndexedFile, ...]:
        """One entry per file of the snapshot, in the same order."""
        return tuple(self._indexed(file) for file in self._data_files)

    @cached_property
    def unindexed(self) -> NDArray[np.int64]:
        """The indices of the files that are not indexed, without copies."""
        files = self.files_of(STAGING_REVISION_ID)
        return files[~self.copies[files]]

    @cached_property
    def copies(self) -> NDArray[np.bool_]:
        """bool[files]: whether the file has only copies, left by an old writer."""
        return np.array([file.is_copy for file in self.files], dtype=np.bool_)

    @property
    def with_rows(self) -> NDArray[np.int64]:
        """The indices of the files that make up the table: all except copies."""
        return np.flatnonzero(~self.copies)

    def files_of(self, revision_id: int) -> NDArray[np.int64]:
        """The indices of a revision's files."""
        return self._files_by_revision.get(revision_id, np.zeros(0, dtype=np.int64))

    @cached_property
    def _files_by_revision(self) -> dict[int, NDArray[np.int64]]:
        revisions = np.array([file.revision_id for file in self.files], dtype=np.int64)
        return {id_: np.flatnonzero(revisions == id_) for id_ in set(revisions.tolist())}

    @property
    def revisions_without_files(self) -> set[int]:
        """The revisions whose number no file of the table has, except for staging."""
        named = {parse_id(file.tags.get(REVISION_TAG, "")) for file in self._data_files}
        return self.configuration.revisions.keys() - named - {STAGING_REVISION_ID}

    @property
    def unused_revision_id(self) -> int:
        """The number for the next revision: above all stored ones, and above all that files name.

        Files keep their tags when the keys of an index are removed from the table. They must not
        count as files of another index that the table gets later.
        """
        named = (parse_id(file.tags.get(REVISION_TAG, "")) or 0 for file in self._data_files)
        return max(self.configuration.unused_id, max(named, default=0) + 1)

    def tree(self, revision: Revision) -> OTree:
        """The tree of a revision, from the blocks of its live files."""
        return OTree.of(self.blocks_of(revision), revision.dimensions)

    def blocks_of(self, revision: Revision) -> list[Block]:
        """The blocks of a revision's live files."""
        files = self.files_of(revision.revision_id).tolist()
        return [block for i in files for block in self.files[i].blocks]

    @cached_property
    def block_arrays(self) -> tuple[BlockArrays, ...]:
        """The blocks of each revision that has live files."""
        present = {file.revision_id for file in self.files if file.is_indexed}
        return tuple(self._arrays(self.configuration.revisions[id_]) for id_ in sorted(present))

    def _arrays(self, revision: Revision) -> BlockArrays:
        owners, blocks = [], []
        for i in self.files_of(revision.revision_id).tolist():
            # A block without rows only carries a weight for other readers; it has nothing to read.
            filled = [block for block in self.files[i].blocks if block.element_count]
            owners += [i] * len(filled)
            blocks += filled
        return BlockArrays(
            revision=revision,
            file=np.array(owners, dtype=np.int64),
            min_weight=np.array([block.min_weight for block in blocks], dtype=np.int64),
            max_weight=np.array(
                [self.files[i].highest_in(b) for i, b in zip(owners, blocks, strict=True)],
                dtype=np.int64,
            ),
            rows=np.array([block.element_count for block in blocks], dtype=np.int64),
            cubes=[block.cube for block in blocks],
        )

    def _has_present_columns(self, file: DataFile) -> bool:
        """Whether the file was written for the columns by which rows are placed now, as far as the
        table records it."""
        return self.identity.is_recorded_as(file.tags.get(COLUMNS_TAG))

    def _indexed(self, file: DataFile) -> IndexedFile:
        if has_legacy_tags(file.tags):
            return IndexedFile(STAGING_REVISION_ID, (), _LEGACY, is_copy=is_copy(file.tags))
        tag = file.tags.get(REVISION_TAG)
        if tag is None or tag == str(STAGING_REVISION_ID):
            return _UNINDEXED
        number = parse_id(tag)
        if number is None:
            return _untrusted(f"revision tag {tag!r:.200} is not a number")
        revision = self.configuration.revisions.get(number)
        if revision is None:
            return _untrusted(f"revision {tag} is not in the table's configuration")
        if reason := self._distrusted.get(revision.revision_id):
            return _untrusted(reason)
        if not self._has_present_columns(file):
            present = described(self.identity.text)
            if COLUMNS_TAG not in file.tags:
                return _untrusted(
                    "it does not record the columns by which it was indexed; the names in the "
                    f"index now refer to {present}"
                )
            return _untrusted(
                f"it was indexed by the columns {described(file.tags[COLUMNS_TAG])}; the same "
                f"names now refer to {present}"
            )
        if (key := file.tags.get(WEIGHT_KEY_TAG)) != revision.weight_key:
            made_of = key or "the indexed columns"
            wanted = revision.weight_key or "the indexed columns"
            return _untrusted(
                f"its weights are computed from {made_of}, the table's weights from {wanted}"
            )
        if BLOCKS_TAG not in file.tags:
            return _untrusted("it has a revision tag but no blocks")
        try:
            blocks = parse_blocks(file.tags[BLOCKS_TAG], revision.dimensions)
        except ValueError as problem:
            return _untrusted(str(problem))
        counted = sum(block.element_count for block in blocks)
        if file.stored_row_count is not None and counted != file.stored_row_count:
            return _untrusted(
                f"its blocks count {counted} rows, the file has {file.stored_row_count}"
            )
        if not blocks:
            return _untrusted("its list of blocks is empty")
        if not counted and file.stored_row_count is None:
            return _untrusted("its blocks count no rows, and the log does not have their number")
        if column := self._column_beyond(revision, file):
            return _untrusted(
                f"its values of {column!r} lie outside the range of revision {tag}; another writer "
                "has replaced the revision that it was written for"
            )
        return IndexedFile(revision.revision_id, blocks, highest_weight=_highest(file.tags))

    def _column_beyond(self, revision: Revision, file: DataFile) -> str | None:
        """A column with values outside the range of the file's revision, by its statistics.

        A write of qbeast-spark that loses against another writer can replace that writer's
        revision in the configuration, but not in the files (docs/format.md 7.5).
        """
        ranges, stored = self._ranges[revision.revision_id]
        if not ranges:
            return None
        for column, known in file_extremes(file.stats, stored).items():
            if not ranges[column].may_have(known.minimum, known.maximum):
                return column
        return None

    @cached_property
    def _ranges(self) -> dict[int, tuple[_Ranges, dict[str, StoredColumn]]]:
        """The columns of each revision that have a range, and where statistics have them.

        Empty for a revision that still matches revision 0: no other writer has replaced it.
        """
        found = {}
        for revision in self.configuration.revisions.values():
            ranges = {
                transformer.column: transformation
                for transformer, transformation in zip(
                    revision.transformers, revision.transformations, strict=False
                )
                if isinstance(transformation, LinearTransformation)
                and not self.configuration.is_from_first_write(revision)
            }
            found[revision.revision_id] = (ranges, stored_columns(self._schema, ranges))
        return found


def _distrusted_revisions(
    configuration: IndexConfiguration, last: Revision | None, schema: StructType
) -> dict[int, str]:
    """The revisions whose blocks cannot be used, with the reason.

    A row's weight is the hash of the latest revision's columns (or of the table's sample key) with
    their present types. Blocks written for other columns or types refer to other weights.
    """
    reasons = {}
    for revision in configuration.revisions.values():
        if last is None or revision.columns != last.columns:
            reasons[revision.revision_id] = (
                "its revision and the latest one index different columns"
            )
        elif not revision.transformations:
            reasons[revision.revision_id] = "its revision has no transformations"
        elif reason := _changed_column(revision, schema):
            reasons[revision.revision_id] = reason
    return reasons


def _changed_column(revision: Revision, schema: StructType) -> str | None:
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    for name in revision.sample_key:
        if name not in types:
            return f"column {name!r} of the sample key is not in the table"
    for transformer in revision.transformers:
        name = transformer.column
        if name not in types:
            return f"indexed column {name!r} is not in the table"
        if not transformer.is_for(types[name]):
            return f"indexed column {name!r} now has another type"
    return None


def _highest(tags: Mapping[str, str]) -> int | None:
    """The `highestWeight` tag, if valid; else None."""
    try:
        return int(tags[HIGHEST_WEIGHT_TAG])
    except (KeyError, ValueError):
        return None


def _untrusted(problem: str) -> IndexedFile:
    return IndexedFile(STAGING_REVISION_ID, (), problem)


_UNINDEXED = IndexedFile(STAGING_REVISION_ID, ())
_Ranges = dict[str, LinearTransformation]
_LEGACY = "it has the tags of qbeast-spark 0.2 to 0.5; migrate_format converts them to blocks"
_indexes: VersionCache[TableIndex] = VersionCache()
