"""Describe a table's index from the log, as metrics and as a DataFrame of blocks."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from qbeast_core.delta.snapshot import known_rows
from qbeast_core.errors import InvalidOptions
from qbeast_core.locate.open_table import OpenTable
from qbeast_core.tree.metrics import FileBlocks, IndexMetrics, TableSize, index_metrics

_BLOCK_SCHEMA = (
    "path string, revision bigint, cubeId string, depth int, "
    "minWeight int, maxWeight int, elementCount bigint"
)


def block_rows(table: OpenTable) -> DataFrame:
    """One row per block; unindexed files have no blocks."""
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
        for data_file, indexed in zip(table.snapshot.files, table.index.files, strict=True)
        for block in indexed.blocks
    ]
    return table.snapshot.spark.createDataFrame(rows, _BLOCK_SCHEMA)


def table_metrics(table: OpenTable, revision_id: int | None) -> IndexMetrics:
    """The metrics of a revision, by default the latest. Raises InvalidOptions."""
    revisions = table.index.configuration.revisions
    wanted = table.index.configuration.latest.revision_id if revision_id is None else revision_id
    if wanted not in revisions:
        raise InvalidOptions(
            f"there is no revision {wanted!r}; the table has {', '.join(map(str, revisions))}"
        )
    files = revision_files(table, wanted)
    unindexed = [table.snapshot.files[i].size_bytes for i in table.index.unindexed.tolist()]
    metrics = index_metrics(
        revisions[wanted],
        files,
        _size(table),
        unindexed_files=len(unindexed),
        unindexed_bytes=sum(unindexed),
    )
    return replace(metrics, problem=table.index.lost_column(table.label))


def _size(table: OpenTable) -> TableSize:
    files = [table.snapshot.files[i] for i in table.index.with_rows.tolist()]
    return TableSize(
        files=len(files),
        rows=known_rows(files),
        size_bytes=sum(file.size_bytes for file in files),
    )


def revision_files(table: OpenTable, revision_id: int) -> list[FileBlocks]:
    """The live files of a revision; empty for revision 0, whose files have no blocks."""
    return [
        FileBlocks(
            file.size_bytes, indexed.blocks, indexed.highest_weight, deleted_rows=file.deleted_rows
        )
        for file, indexed in (
            (table.snapshot.files[i], table.index.files[i])
            for i in table.index.files_of(revision_id).tolist()
        )
        if indexed.is_indexed
    ]
