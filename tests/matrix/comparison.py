"""The oracle: what both tables must have in common, and what an index must be.

What is expected comes from a plain read of all rows and from `tests.support.oracles`, never from
the code that is tested.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import reduce
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from qbeast_core import IncompatibleTable, QbeastError, QbeastTable, quoted
from qbeast_core.model.block import Block
from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import weight_of_fraction
from tests.matrix.twin import INDEXED, PLAIN, Twin
from tests.support.checksums import assert_checksum
from tests.support.invariants import as_number, assert_rows_of_blocks

FILTERS = {
    "a between 20 and 60": "a",
    "ts < timestamp'2023-11-16 02:00:00'": "ts",
    "old < date'1000-01-04'": "old",
    "b = 'v003'": "b",
    "b in ('v001', 'v02', 'v022') and id < 100": "b",
    "v >= 20 and id % 3 = 0": "v",
    "a = 10005 or b is null": "a b",
    "a > 5000000010": "a",
}
"""Conditions, and the columns that they need."""
_TYPES = {
    "a": ("int", "bigint"),
    "ts": ("timestamp",),
    "old": ("date",),
    "b": ("string",),
    "v": ("double",),
}
FRACTIONS = (0.1, 0.6)
_FILTERS_OF_A_STEP = 3
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")
_OPPOSITE = {"insert": "delete", "delete": "insert"}
_WRAPPERS = frozenset(["TASK_WRITE_FAILED", "FAILED_READ_FILE"])
_ALIKE = {
    "DELTA_FAILED_TO_MERGE_FIELDS": "CAST_INVALID_INPUT",
    "DELTA_MISSING_NOT_NULL_COLUMN_VALUE": "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
}
"""What Delta finds wrong with a column, by what the index finds wrong with its values."""


def same_tables(twin: Twin, *, keeps_rows: bool = False) -> None:
    """Assert that the tables have the same columns and rows, and that the index is right.

    A table whose index has lost a column has no samples: it must say so.

    Args:
        keeps_rows: whether rows that are still there have the identity values of the last call.
    """
    assert twin.plain(INDEXED).dtypes == twin.plain().dtypes
    table = twin.indexed()
    sizes = [file.size_bytes for file in table.files()]
    assert_checksum(twin.location(INDEXED), table.version, sizes)
    rows = _Rows(twin, table)
    expected = twin.contents(twin.plain())
    assert rows.contents == expected, (
        f"missing {expected - rows.contents}, too many {rows.contents - expected}"
    )
    rows.identities_are_right(twin, keeps_rows=keeps_rows)
    rows.selections_are_right()
    if not rows.lost:
        rows.blocks_are_right()


def check_finds_nothing(twin: Twin) -> None:
    """Assert that `check` has no problem other than columns that were changed."""
    table = twin.indexed()
    report = table.check()
    wrong = [problem for problem in report.problems if "counts as not indexed" not in problem]
    if not set(table.columns_to_index) <= set(twin.plain().columns):
        told = "needs a column that was dropped, renamed or retyped"
        assert wrong and told in wrong.pop(0), str(report)
    assert not wrong, str(report)


def same_changes(twin: Twin, before: int, plain_before: int, *, of_files: bool) -> None:
    """Assert that the change data feeds of both tables have the same rows after these versions.

    Args:
        of_files: whether Delta's feed has all rows of files that come and go, also those that are
            in both. Then what they add up to must be the same.
    """
    if twin.version(PLAIN) > plain_before:
        ours, plain = twin.changes(INDEXED, before), twin.changes(PLAIN, plain_before)
        if of_files:
            ours, plain = _net(ours), _net(plain)
        assert ours == plain, f"missing {plain - ours}, too many {ours - plain}"


def _net(changes: Counter[tuple[str, str]]) -> Counter[tuple[str, str]]:
    """The changes without rows that are deleted and inserted."""
    return Counter(
        {
            (kind, row): left
            for (kind, row), count in changes.items()
            if (left := count - changes[_OPPOSITE.get(kind, ""), row]) > 0
        }
    )


def outcome(action: Callable[[], object]) -> Exception | None:
    """The error of an action; None if it succeeds."""
    try:
        action()
    except (QbeastError, PySparkException, Py4JError) as error:
        return error
    return None


def same_kind(ours: Exception, plain: Exception) -> bool:
    """Whether our error is one of ours, or has a condition of Spark or Delta that the other has."""
    return isinstance(ours, QbeastError) or bool(_conditions(ours) & _conditions(plain))


def _conditions(error: Exception) -> set[str]:
    """The names of the conditions in an error and its causes, without those that only wrap one."""
    found = {name.partition(".")[0] for name in _CONDITION.findall(str(error))}
    return {_ALIKE.get(name, name) for name in found - _WRAPPERS}


class _Rows:
    """All rows of the indexed table, and for each row what a filter, sample and block must know."""

    def __init__(self, twin: Twin, table: QbeastTable) -> None:
        rows = twin.plain(INDEXED)
        self.twin = twin
        self.table = table
        self.deletes_within_files = twin.has_property("delta.enableDeletionVectors")
        self.own_columns = sorted(twin.feature.own_values & set(rows.columns))
        key = table.sample_key or table.columns_to_index
        present = {name.lower() for name in rows.columns}
        self.lost = not {name.lower() for name in [*key, *table.columns_to_index]} <= present
        kinds = dict(rows.dtypes)
        fitting = [
            text
            for text, needed in FILTERS.items()
            if all(kinds.get(name) in _TYPES[name] for name in needed.split())
        ]
        # Each takes a job of Spark to plan, so that a step tries the next few of them in turn.
        first = twin.comparisons * _FILTERS_OF_A_STEP
        twin.comparisons += 1
        self.filters = [fitting[i % len(fitting)] for i in range(first, first + _FILTERS_OF_A_STEP)]
        nothing = F.lit(None)
        weight = nothing if self.lost else F.hash(*(F.col(quoted(name)) for name in key))
        indexed = [] if self.lost else table.columns_to_index
        point = [as_number(rows, name).alias(f"v{i}") for i, name in enumerate(indexed)]
        # With the column of slices: a selection that drops columns has no metadata.
        everything = twin.spark.table(INDEXED)
        self._read = everything.select(
            F.col("id"),
            F.struct(*twin.shown(rows)).alias("shown"),
            F.array(*map(quoted, self.own_columns)).alias("own"),
            F.array(*(F.expr(text) for text in self.filters)).alias("holds"),
            weight.alias("weight"),
            (F.struct(*point) if point else nothing).alias("point"),
            everything.metadataColumn("_metadata").file_name.alias("file"),
        ).collect()

    @property
    def contents(self) -> Counter[str]:
        """As `Twin.contents`."""
        return Counter(str(row.shown) for row in self._read)

    def identities_are_right(self, twin: Twin, *, keeps_rows: bool) -> None:
        """Assert that Delta's own values are unique, and that rows keep them."""
        own = {row.id: tuple(row.own) for row in self._read}
        for i in range(len(self.own_columns)):
            values = [row.own[i] for row in self._read]
            assert len(set(values)) == len(values) and None not in values, "an identity twice"
        if keeps_rows:
            kept = own.keys() & twin.identities.keys()
            assert {each: own[each] for each in kept} == {
                each: twin.identities[each] for each in kept
            }, "other identities"
        twin.identities = own

    def selections_are_right(self) -> None:
        """Assert that filters, samples and both together have exactly the rows that they must."""
        everything = [(1.0, i) for i in (None, *range(len(self.filters)))]
        samples = [(fraction, i) for fraction in FRACTIONS for i in (None, 0)]
        if self.lost:
            for fraction, i in samples:
                error = outcome(lambda f=fraction, i=i: self._selected(f, i))
                assert isinstance(error, IncompatibleTable), f"a sample gave {error}"
            samples = []
        asked = everything + samples
        found = defaultdict(Counter)
        with self.twin.second_is_used():
            parts = [
                self._selected(*selection).select(F.lit(number).alias("number"), "id")
                for number, selection in enumerate(asked)
            ]
            self.twin.switch()
            for number, id_ in reduce(DataFrame.unionAll, parts).collect():
                found[number][id_] += 1
        for number, (fraction, i) in enumerate(asked):
            expected = Counter(row.id for row in self._read if self._is_selected(row, fraction, i))
            assert found[number] == expected, (
                f"sample {fraction} where {None if i is None else self.filters[i]}: "
                f"missing {expected - found[number]}, too many {found[number] - expected}"
            )

    def blocks_are_right(self) -> None:
        """Assert that each row of an indexed file is in the one block that counts it."""
        rows_of = defaultdict(list)
        for row in self._read:
            rows_of[row.file].append((tuple(row.point), row.weight))
        revisions = {revision.revision_id: revision for revision in self.table.revisions}
        blocks_of = defaultdict(list)
        for block in self.table.blocks().collect():
            name = unquote(block.path).rpartition("/")[2]
            cube = CubeId.parse(block.cubeId, revisions[block.revision].dimensions)
            blocks_of[block.revision, name].append(
                Block(cube, block.minWeight, block.maxWeight, block.elementCount)
            )
        for (number, name), blocks in blocks_of.items():
            assert_rows_of_blocks(
                revisions[number],
                rows_of.get(name, []),
                blocks,
                some_deleted=self.deletes_within_files,
            )

    def _selected(self, fraction: float, i: int | None) -> DataFrame:
        self.twin.switch()
        return self.table.sample(fraction, None if i is None else self.filters[i])

    def _is_selected(self, row: Row, fraction: float, i: int | None) -> bool:
        if fraction < 1.0 and row.weight >= weight_of_fraction(fraction):
            return False
        return i is None or bool(row.holds[i])
