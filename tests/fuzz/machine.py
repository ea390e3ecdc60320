"""A table under any sequence of operations, ours and plain Delta's, beside a plain Python model.

After each change the table must have exactly the model's rows, each in the block that its values
say, and no block hidden from readers that walk the tree. Then it is read in several ways, by
samples and filters, which must give exactly what the model does. Tables are tiny: a change takes a
second or two, most of it Spark's and Delta's planning, and the reads of a version are one query.
"""

from __future__ import annotations

import itertools
import math
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from delta.tables import DeltaTable
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qbeast_core import QbeastTable, convert_to_qbeast, write_table
from qbeast_core.locate.address import TableAddress
from qbeast_core.locate.open_table import OpenTable
from qbeast_core.model.weight import weight_of_fraction
from qbeast_core.tree.anchors import violations
from tests.fuzz.rows import Batch, Condition, Row, as_frame, conditions, far, near
from tests.support.checksums import assert_checksum
from tests.support.delta_log import last_version, plain
from tests.support.invariants import assert_rows_of_blocks
from tests.support.spark_session import SMALL_DATA
from tests.support.views import viewed

FRACTIONS = (0.01, 0.1, 0.35, 0.8)
VERSIONS_FOR_A_CHECK = 4
"""Each version is checked here; the table's own check, which costs much more, sees one in four."""

# What makes Spark fast on large data only costs on a handful of rows.
QUICK = {
    **SMALL_DATA,
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
}


class State(NamedTuple):
    """What one version of the table must be."""

    rows: Mapping[int, Row]
    columns: tuple[str, ...]
    """The indexed columns; none for a plain Delta table."""
    lost_blocks: bool = False
    """Whether another writer replaced files, blocks of the upper cubes among them perhaps."""


layouts = st.sampled_from(["a,b", "b", "a,s:hash", "s:hash,b,a", "a:hash,b:hash", "id:hash,a"])
cube_sizes = st.sampled_from([4, 10, 40])
properties = st.sampled_from(
    [{}, {"delta.enableDeletionVectors": "true"}, {"delta.enableChangeDataFeed": "true"}]
)
fractions = st.sampled_from([0.0, 0.001, 0.02, 0.1, 0.5, 0.95, 1.0]) | st.floats(0.0, 1.0)


class TimeIsUp(BaseException):
    """The run is over. Not an `Exception`, because Hypothesis reports those as faults."""


class Look(NamedTuple):
    """Rows that are read by the index, and the ids that they must have."""

    rows: DataFrame
    expected: list[int]


class Operation(NamedTuple):
    """Something to do to a table, and what to draw for it."""

    act: Callable[..., Look | None]
    drawn: Mapping[str, st.SearchStrategy[Any]]
    is_read: bool
    wants_index: bool | None
    """True if the table must have an index, False if it must not, None if it may."""


OPERATIONS: dict[str, Operation] = {}


def change(*, indexed: bool | None = True, **drawn: st.SearchStrategy[Any]) -> Any:
    """An operation that makes a new version."""
    return _registered(drawn, is_read=False, wants_index=indexed)


def read(**drawn: st.SearchStrategy[Any]) -> Any:
    """An operation that only looks, by the index: it returns a `Look`."""
    return _registered(drawn, is_read=True, wants_index=True)


def _registered(drawn: Mapping[str, Any], is_read: bool, wants_index: bool | None) -> Any:
    def register(act: Callable[..., Look | None]) -> Callable[..., Look | None]:
        OPERATIONS[act.__name__] = Operation(act, drawn, is_read, wants_index)
        return act

    return register


class TableMachine(RuleBasedStateMachine):
    """One table. `spark` and `directory` are set by whoever runs the machine."""

    spark: ClassVar[SparkSession]
    directory: ClassVar[Path]
    ends: ClassVar[float] = math.inf
    """The monotonic time from which on there are no more steps."""
    reads_of_a_version: ClassVar[int] = 10
    """After each change, in one query of Spark's: they cost little, and each looks at the index in
    its own way."""
    most_ahead: ClassVar[int] = 1
    """How many times more than the rarest operation another one may be done to a table."""
    performed: ClassVar[Counter[str]] = Counter()
    """How often each operation was done, to all tables."""
    numbers: ClassVar = itertools.count()

    table: QbeastTable
    """The newest version, when it has an index."""

    def __init__(self) -> None:
        super().__init__()
        self.path = str(self.directory / f"t{next(self.numbers)}")
        self.next_id = 0
        self.state = State({}, ())
        self.history: dict[int, State] = {}
        self.weights: dict[int, Mapping[int, int]] = {}
        """By version, the weights of its rows by their ids."""
        self.version = -1
        self.done: Counter[str] = Counter()
        self.is_read = True

    def teardown(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    @initialize(batch=near, layout=layouts, size=cube_sizes, properties=properties)
    def create(self, batch: Batch, layout: str, size: int, properties: dict[str, str]) -> None:
        self.done["overwrite"] += 1
        drawn = {"batch": batch, "layout": layout, "size": size, "properties": properties}
        self.perform("overwrite", drawn)

    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        """Change or read the table. One rule for all operations, or Hypothesis would skip some."""
        if self.is_read:
            self.perform(*self.draw(data))
        else:
            self.look([self.draw(data) for _ in range(self.reads_of_a_version)])

    def draw(self, data: st.DataObject) -> tuple[str, dict[str, Any]]:
        """An operation that is possible now, preferring those done less often."""
        has_index = bool(self.state.columns)
        found = [
            name
            for name, operation in OPERATIONS.items()
            if operation.is_read is not self.is_read
            if operation.wants_index in (None, has_index)
        ]
        rarest = min(self.done[name] for name in found)
        behind = [name for name in found if self.done[name] <= rarest + self.most_ahead]
        name = data.draw(st.sampled_from(behind), label="operation")
        self.done[name] += 1
        drawn = OPERATIONS[name].drawn
        return name, {key: data.draw(drawn[key], label=key) for key in drawn}

    def perform(self, name: str, drawn: dict[str, Any]) -> None:
        """Change the table, and check what came of it. Raises TimeIsUp."""
        with self.one_of_many_steps():
            OPERATIONS[name].act(self, **drawn)
            self.assert_as_modelled()
        self.performed[name] += 1
        self.is_read = not self.state.columns

    def look(self, reads: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """Read the table in several ways. Raises TimeIsUp."""
        with self.one_of_many_steps():
            looks = [OPERATIONS[name].act(self, **drawn) for name, drawn in reads]
            ids = [look.rows.select(F.lit(i).alias("look"), "id") for i, look in enumerate(looks)]
            found: dict[int, list[int]] = defaultdict(list)
            for number, id_ in reduce(DataFrame.unionAll, ids).collect():
                found[number].append(id_)
            for number, look in enumerate(looks):
                assert sorted(found[number]) == look.expected, reads[number]
        self.performed.update(name for name, _ in reads)
        self.is_read = True

    @contextmanager
    def one_of_many_steps(self) -> Iterator[None]:
        if time.monotonic() > self.ends:
            raise TimeIsUp
        try:
            yield
        except Exception:
            # Hypothesis must be able to repeat the failure, however long it takes.
            TableMachine.ends = math.inf
            raise

    @change(batch=near | far, layout=layouts, size=cube_sizes, properties=properties)
    def overwrite(self, batch: Batch, layout: str, size: int, properties: dict[str, str]) -> None:
        rows = self.new_rows(batch)
        write_table(
            self.frame(rows),
            path=self.path,
            mode="overwrite",
            columns_to_index=layout,
            cube_size=size,
            properties=properties,
        )
        self.state = State({row.id: row for row in rows}, columns_of(layout))

    @change(batch=near, more=near | far, thirds=st.integers(0, 3))
    def rebuild(self, batch: Batch, more: Batch, thirds: int) -> None:
        """With the index that it has, and then with other rows: in one pass, where that is tried.

        `thirds` is how many of the first rows the others keep.
        """
        cube_size = self.table.cube_size
        self.put(self.new_rows(batch))
        rows = list(self.state.rows.values())
        others = [*(row for row in rows if row.id % 3 < thirds), *self.new_rows(more)]
        for each in (rows, others):
            write_table(self.frame(each), path=self.path, mode="overwrite", cube_size=cube_size)
        self.state = State({row.id: row for row in others}, self.state.columns)

    @change(indexed=None, batch=near)
    def write_without_an_index(self, batch: Batch) -> None:
        """By plain Delta; the index's keys in the configuration go with `replace`."""
        rows = self.new_rows(batch)
        replacing = f"create or replace table delta.`{self.path}` using delta"
        with viewed(self.frame(rows)):
            self.spark.sql(f"{replacing} as select * from source")
        self.state = State({row.id: row for row in rows}, ())

    @change(indexed=False, layout=layouts, size=cube_sizes)
    def convert(self, layout: str, size: int) -> None:
        convert_to_qbeast(self.spark, f"delta.`{self.path}`", layout, size)
        self.state = self.state._replace(columns=columns_of(layout))

    @change(batch=near)
    def append(self, batch: Batch) -> None:
        self.add(batch)

    @change(batch=far)
    def append_beyond(self, batch: Batch) -> None:
        self.add(batch)

    def add(self, batch: Batch) -> None:
        rows = self.new_rows(batch)
        assert write_table(self.frame(rows), path=self.path).rows == len(rows)
        self.put(rows)

    @change(batch=near | far, share=st.sampled_from([2, 5]))
    def merge(self, batch: Batch, share: int) -> None:
        """Updates every `share`th row and inserts the rest of the batch."""
        source, matched = self.new_rows(batch), sorted(self.state.rows)[::share]
        for i, id_ in enumerate(matched[: len(source) // 2]):
            source[i] = source[i]._replace(id=id_)
        result = self.table.merge(self.frame(source), "id")
        updated = sum(row.id in self.state.rows for row in source)
        assert (result.rows_updated, result.rows_inserted) == (updated, len(source) - updated)
        self.put(source)

    @change(condition=conditions)
    def delete(self, condition: Condition) -> None:
        result = self.table.delete(condition.sql)
        assert result.rows_deleted == self.drop(condition)

    @change(condition=conditions, by=st.sampled_from([0, 7, 5000]))
    def update(self, condition: Condition, by: int) -> None:
        found = [row for row in self.state.rows.values() if condition.keeps(row)]
        result = self.table.update({"a": f"a + {by}"}, condition.sql)
        assert result.rows_updated == len(found)
        self.put([row._replace(a=None if row.a is None else row.a + by) for row in found])

    @change(scope=st.sampled_from([None, "all", "unindexed"]))
    def optimize(self, scope: str | None) -> None:
        self.table.optimize(revision_id=scope)
        assert not self.table.optimize(revision_id=scope, dry_run=True).changed

    @change(indexed=None, batch=near | far)
    def plain_append(self, batch: Batch) -> None:
        rows = self.new_rows(batch)
        self.frame(rows).write.format("delta").mode("append").save(self.path)
        self.put(rows)

    @change(indexed=None, condition=conditions)
    def plain_delete(self, condition: Condition) -> None:
        self.foreign.delete(condition.sql)
        self.drop(condition)
        self.state = self.state._replace(lost_blocks=True)

    @change(indexed=None, times=st.integers(1, 2))
    def plain_optimize(self, times: int) -> None:
        for _ in range(times):
            self.foreign.optimize().executeCompaction()
        self.state = self.state._replace(lost_blocks=True)

    @change(indexed=None, steps=st.integers(1, 6))
    def restore(self, steps: int) -> None:
        version = sorted(self.history)[-steps:][0]
        self.foreign.restoreToVersion(version)
        self.state = self.history[version]

    @read(fraction=fractions)
    def sample(self, fraction: float) -> Look:
        return self.sampled(fraction, None)

    @read(fraction=fractions, condition=conditions)
    def sample_of_a_filter(self, fraction: float, condition: Condition) -> Look:
        return self.sampled(fraction, condition)

    @read(condition=conditions)
    def filter(self, condition: Condition) -> Look:
        return self.sampled(1.0, condition)

    @read(fraction=fractions, steps=st.integers(1, 6))
    def sample_of_an_older_version(self, fraction: float, steps: int) -> Look:
        """By the SQL condition, as of a version that was indexed by the same columns."""
        version = sorted(self.history)[-steps:][0]
        if self.history[version].columns != self.state.columns:
            version = self.version
        older = self.spark.read.format("delta").option("versionAsOf", version).load(self.path)
        expected = self.expected(fraction, version)
        return Look(older.where(self.table.sample_condition(fraction)), expected)

    def assert_as_modelled(self) -> None:
        """All that must hold for the newest version, unless it was looked at before."""
        version = self.version = last_version(self.path)
        if version in self.history:
            return
        self.history[version] = self.state
        weight = F.hash(*self.state.columns) if self.state.columns else F.lit(0)
        file = F.col("_metadata.file_name")
        read = plain(self.spark, self.path).select(*Row._fields, weight, file).collect()
        rows = [Row(*each[:4]) for each in read]
        assert sorted(map(repr, rows)) == sorted(map(repr, self.state.rows.values()))
        if not self.state.columns:
            return
        self.table = QbeastTable.for_path(self.spark, self.path)
        assert_checksum(self.path, version, [file.size_bytes for file in self.table.files()])
        self.weights[version] = {row.id: each[4] for row, each in zip(rows, read, strict=True)}
        self.assert_files_hold_samples(
            {row.id: each[5] for row, each in zip(rows, read, strict=True)}
        )
        in_file = defaultdict(list)
        for row, (*_, row_weight, file_name) in zip(rows, read, strict=True):
            in_file[file_name].append((row, row_weight))
        self.assert_index_is_sound(in_file)
        if len(self.history) % VERSIONS_FOR_A_CHECK == 0:
            problems = self.table.check().problems
            assert not (besides_lost_blocks(problems) if self.state.lost_blocks else problems)

    def assert_index_is_sound(self, in_file: Mapping[str, list[tuple[Row, int]]]) -> None:
        """What `check` finds out by Spark, for the few rows in plain Python."""
        table = OpenTable.newest(self.spark, TableAddress(self.path))
        snapshot, index = table.snapshot, table.index
        known = index.configuration.revisions
        for data_file, indexed in zip(snapshot.files, index.files, strict=True):
            assert indexed.problem is None
            if indexed.is_indexed:
                revision = known[indexed.revision_id]
                rows = in_file[data_file.path]
                assert_rows_of_blocks(
                    revision,
                    [([getattr(row, c) for c in revision.columns], w) for row, w in rows],
                    indexed.blocks,
                    some_deleted=data_file.deleted_rows > 0,
                )
        if not self.state.lost_blocks:
            assert not any(violations(index.blocks_of(revision)) for revision in known.values())

    def assert_files_hold_samples(self, file_of: Mapping[int, str]) -> None:
        smaller: set[str] = set()
        for fraction in FRACTIONS:
            files = {file.path for file in self.table.files(fraction)}
            limit = weight_of_fraction(fraction)
            weights = self.weights[self.version].items()
            needed = {file_of[id_] for id_, weight in weights if weight < limit}
            assert needed | smaller <= files, f"sample {fraction}"
            smaller = files

    def sampled(self, fraction: float, condition: Condition | None) -> Look:
        """Exactly the rows below the fraction's weight that the condition keeps."""
        rows = self.table.sample(fraction, condition and condition.sql)
        return Look(rows, self.expected(fraction, self.version, condition))

    def expected(
        self, fraction: float, version: int, condition: Condition | None = None
    ) -> list[int]:
        """The ids of a sample of a version, by the weights of its rows."""
        limit = math.inf if fraction == 1.0 else weight_of_fraction(fraction)
        weights = self.weights[version]
        return sorted(
            id_
            for id_, row in self.history[version].rows.items()
            if fraction > 0.0 and weights[id_] < limit
            if condition is None or condition.keeps(row)
        )

    def new_rows(self, batch: Batch) -> list[Row]:
        self.next_id += batch.count
        return batch.rows(self.next_id - batch.count)

    def put(self, rows: Iterable[Row]) -> None:
        self.state = self.state._replace(rows={**self.state.rows, **{row.id: row for row in rows}})

    def drop(self, condition: Condition) -> int:
        """How many rows of the model the condition deleted."""
        left = {id_: row for id_, row in self.state.rows.items() if not condition.keeps(row)}
        dropped = len(self.state.rows) - len(left)
        self.state = self.state._replace(rows=left)
        return dropped

    def frame(self, rows: Iterable[Row]) -> DataFrame:
        return as_frame(self.spark, rows)

    @property
    def foreign(self) -> DeltaTable:
        return DeltaTable.forPath(self.spark, self.path)


def besides_lost_blocks(problems: Iterable[str]) -> list[str]:
    """The problems that a check must not report even if another writer removed blocks.

    It then correctly reports that readers that walk the tree may miss rows. Those are left out.
    """
    return [each for each in problems if "above it reaches" not in each]


def columns_of(layout: str) -> tuple[str, ...]:
    return tuple(column.split(":")[0] for column in layout.split(","))
