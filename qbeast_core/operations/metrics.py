"""What the log tells of a table's index, for people and for queries."""

from __future__ import annotations

from pyspark.sql import DataFrame

from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.errors import InvalidOptions
from qbeast_core.index import TableIndex
from qbeast_core.tree.metrics import IndexedFile, IndexMetrics, TableSize, index_metrics

_BLOCK_SCHEMA = (
    "path string, revision bigint, cubeId string, depth int, "
    "minWeight int, maxWeight int, elementCount bigint"
)


def block_rows(snapshot: TableSnapshot, index: TableIndex) -> DataFrame:
    """One row for each block; unindexed files have none."""
    rows = [
        (
            data_file.path,
            indexed.revision_id,
            block.cube.text,
            block.cube.depth,
            block.min_weight,
            block.max_weight,
            block.element_count,
        )
        for data_file, indexed in zip(snapshot.files, index.files, strict=True)
        for block in indexed.blocks
    ]
    return snapshot.spark.createDataFrame(rows, _BLOCK_SCHEMA)


def table_metrics(
    snapshot: TableSnapshot, index: TableIndex, revision_id: int | None
) -> IndexMetrics:
    """The metrics of a revision, the latest by default. Raises InvalidOptions if unknown."""
    revisions = index.configuration.revisions
    wanted = index.configuration.latest.revision_id if revision_id is None else revision_id
    if wanted not in revisions:
        raise InvalidOptions(
            f"there is no revision {wanted!r}; the table has {', '.join(map(str, revisions))}"
        )
    files = revision_files(snapshot, index, wanted)
    unindexed = [snapshot.files[i].size_bytes for i in index.unindexed.tolist()]
    return index_metrics(
        revisions[wanted],
        files,
        _size(snapshot, index),
        unindexed_files=len(unindexed),
        unindexed_bytes=sum(unindexed),
    )


def _size(snapshot: TableSnapshot, index: TableIndex) -> TableSize:
    files = [snapshot.files[i] for i in index.with_rows.tolist()]
    known = [file.rows for file in files if file.rows is not None]
    return TableSize(
        files=len(files),
        rows=sum(known) if len(known) == len(files) else None,
        size_bytes=sum(file.size_bytes for file in files),
    )


def revision_files(
    snapshot: TableSnapshot, index: TableIndex, revision_id: int
) -> list[IndexedFile]:
    """The live files of a revision; none for revision 0, whose files have no blocks."""
    return [
        IndexedFile(
            snapshot.files[i].size_bytes, index.files[i].blocks, index.files[i].highest_weight
        )
        for i in index.files_of(revision_id).tolist()
        if index.files[i].is_indexed
    ]
