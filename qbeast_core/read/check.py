"""Verify the index of a table against the Delta log and the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from qbeast_core import phases
from qbeast_core.counts import counted
from qbeast_core.errors import CorruptMetadata, QbeastError
from qbeast_core.jvm.catalyst import Catalyst
from qbeast_core.jvm.gateway import Jvm
from qbeast_core.locate.open_table import OpenTable
from qbeast_core.model.block import Block
from qbeast_core.model.revision import LAST_REVISION_KEY, Revision
from qbeast_core.model.slices import SLICE_COLUMN
from qbeast_core.spark.columns import column, file_metadata
from qbeast_core.spark.grouping import grouped
from qbeast_core.spark.paths import located
from qbeast_core.spark.slices import row_slice
from qbeast_core.spark.working_columns import WorkingColumns
from qbeast_core.tree.anchors import violations
from qbeast_core.tree.path import PathLayout

_SHOWN = 20


@dataclass(frozen=True)
class CheckReport:
    """The result of a check. `str()` returns it as a report."""

    problems: tuple[str, ...]
    """One sentence per problem. Reads of the whole table are still correct, and a file that counts
    as not indexed is only slower to read. If rows do not match their blocks or have a wrong slice,
    samples and filters may miss them: rewrite the table."""
    files: int
    unindexed_files: int
    rows: int
    """The number of rows whose position in the index was checked."""

    @property
    def ok(self) -> bool:
        """Whether there are no problems."""
        return not self.problems

    def __str__(self) -> str:
        checked = f"{counted(self.rows, 'row')} in {counted(self.files, 'file')} checked"
        if self.unindexed_files:
            checked += f", {counted(self.unindexed_files, 'file')} not indexed"
        if self.ok:
            return f"ok: {checked}"
        shown = [f"- {problem}" for problem in self.problems[:_SHOWN]]
        if len(self.problems) > _SHOWN:
            shown.append(f"- and {len(self.problems) - _SHOWN} more")
        return "\n".join([f"{counted(len(self.problems), 'problem')}; {checked}", *shown])


def check_table(table: OpenTable) -> CheckReport:
    """Check one version of a table; reads every indexed file once."""
    problems = list(_log_problems(table))
    rows = 0
    for revision in table.index.configuration.revisions.values():
        if revision.is_staging or not len(table.index.files_of(revision.revision_id)):
            continue
        problems += _hidden_blocks(table, revision)
        checked, found = _check_rows(table, revision)
        rows += checked
        problems += found
    if table.snapshot.stores_slices:
        problems += _wrong_slices(table)
    return CheckReport(
        problems=tuple(problems),
        files=len(table.snapshot.files),
        unindexed_files=len(table.index.unindexed),
        rows=rows,
    )


def _log_problems(table: OpenTable) -> Iterator[str]:
    configuration = table.index.configuration
    for revision_id, why in configuration.broken.items():
        yield f"revision {revision_id} cannot be read: {why}"
    try:
        _ = configuration.latest
    except (CorruptMetadata, QbeastError) as problem:
        yield str(problem)
    if lost := table.index.lost_column(table.label):
        yield lost
    last = configuration.last_revision_id
    said = table.snapshot.configuration.get(LAST_REVISION_KEY)
    if last is not None and said != str(last):
        yield f"{LAST_REVISION_KEY} is {said!r}, but revision {last} counts as the last one"
    stored = max([*configuration.revisions, *configuration.broken], default=None)
    if stored is not None and (last or 0) < stored:
        yield (f"the table names {last} as its last revision, but it has a revision {stored}")
    for data_file, indexed in zip(table.snapshot.files, table.index.files, strict=True):
        cubes = Counter(block.cube for block in indexed.blocks if block.element_count)
        for cube, count in sorted(cubes.items()):
            if count > 1:
                yield f"file {data_file.path} has {count} blocks of cube '{cube}'"
        if indexed.problem:
            yield f"file {data_file.path} counts as not indexed: {indexed.problem}"


def _hidden_blocks(table: OpenTable, revision: Revision) -> list[str]:
    """Problems with blocks that a walk from the root may miss (docs/format.md 8.3)."""
    path_of = {
        id(block): table.snapshot.files[i].path
        for i in table.index.files_of(revision.revision_id).tolist()
        for block in table.index.files[i].blocks
    }
    return [
        f"file {path_of[id(violation.block)]}: {violation}"
        for violation in violations(table.index.blocks_of(revision))
    ]


def _check_rows(table: OpenTable, revision: Revision) -> tuple[int, list[str]]:
    """Count the rows of each block, by cube and weight, and compare them with the tags.

    Returns:
        The number of checked rows, and the problems.
    """
    phases.enter(phases.CHECKING)
    files = table.index.files_of(revision.revision_id)
    blocks = [(i, block) for i in files.tolist() for block in table.index.files[i].blocks]
    try:
        matched = _rows_by_block(table, revision, blocks).toArrow().to_pylist()
    except QbeastError as problem:
        return 0, [f"revision {revision.revision_id} cannot be checked: {problem}"]
    problems = []
    found = {row["block"]: row for row in matched}
    for number, (i, block) in enumerate(blocks):
        row = found.get(number, {"rows": 0, "min_weight": None})
        file = table.snapshot.files[i]
        # The tags still count rows behind deletion vectors, and do not show their blocks.
        exact = file.deleted_rows == 0
        if row["rows"] > block.element_count or (exact and row["rows"] < block.element_count):
            problems.append(
                f"file {file.path} has {row['rows']} rows of cube '{block.cube}', but its block "
                f"counts {block.element_count}"
            )
        elif exact and block.element_count and row["min_weight"] != block.min_weight:
            problems.append(
                f"file {file.path}: the smallest weight in cube '{block.cube}' is "
                f"{row['min_weight']}, but its block has {block.min_weight}"
            )
    if None in found:
        problems.append(
            f"revision {revision.revision_id} has {counted(found[None]['rows'], 'row')} that the "
            "blocks do not describe"
        )
    return sum(row["rows"] for row in matched), problems


def _rows_by_block(
    table: OpenTable,
    revision: Revision,
    blocks: list[tuple[int, Block]],
) -> DataFrame:
    """Count rows by block.

    Returns:
        The columns `block` (its number, null for rows in no block), `rows` and `min_weight`.
    """
    files = table.index.files_of(revision.revision_id)
    layout, indexed = PathLayout(revision.dimensions), table.snapshot.dataframe(files)
    names = WorkingColumns(indexed.columns, revision.dimensions)
    file_names = {i: table.snapshot.files[i].name for i in files.tolist()}
    entries = []
    for number, (i, block) in enumerate(blocks):
        if not block.element_count:
            continue  # an anchor, which describes no rows
        first, last = layout.cube_interval(block.cube)
        highest = table.index.files[i].highest_in(block)
        entries.append((number, file_names[i], *first, *last, block.min_weight, highest))
    bounds = [f"{end}{i} bigint" for end in ("first", "last") for i in range(layout.words)]
    schema = f"block int, in_file string, {', '.join(bounds)}, low int, high int"
    listed = table.snapshot.spark.createDataFrame(entries, schema)
    with_file = indexed.select(
        *(column(name) for name in revision.layout_columns),
        file_metadata(indexed).getField("file_name").alias(names.file),
    )
    rows = located(Catalyst(Jvm(table.snapshot.spark)), with_file, revision, names).select(
        names.file, names.weight, *names.words
    )
    path = [F.col(word) for word in names.words]
    firsts = [F.col(f"first{i}") for i in range(layout.words)]
    lasts = [F.col(f"last{i}") for i in range(layout.words)]
    inside = (
        (F.col(names.file) == F.col("in_file"))
        & _not_after(firsts, path)
        & _not_after(path, lasts)
        & F.col(names.weight).between(F.col("low"), F.col("high"))
    )
    return grouped(
        rows.join(F.broadcast(listed), inside, "left"),
        [F.col("block")],
        F.count(F.lit(1)).alias("rows"),
        F.min(names.weight).alias("min_weight"),
    )


def _wrong_slices(table: OpenTable) -> list[str]:
    """Problems with stored slices; rows without a slice are not a problem, they are always read."""
    try:
        computed = row_slice(table.index.weight_columns(table.label))
        stored = table.snapshot.rows_with_slices(table.index.with_rows)
        wrong = stored.where(column(SLICE_COLUMN) != computed).count()
    except QbeastError as problem:
        return [f"the slices cannot be checked: {problem}"]
    return [f"{counted(wrong, 'row')} with a slice that does not match the weight"] if wrong else []


def _not_after(left: list[Column], right: list[Column]) -> Column:
    """Whether the path `left` is before or equal to `right`, compared word by word."""
    result = F.lit(True)
    for one, other in zip(reversed(left), reversed(right), strict=True):
        result = (one < other) | ((one == other) & result)
    return result
