"""The processes of a stress run: each changes or reads the one table, and reports what it did."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import ClassVar

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qbeast_core import QbeastTable, RewriteResult, write_table
from qbeast_core.delta.conflicts import is_commit_conflict
from qbeast_core.errors import CommitConflict
from tests.fuzz.rows import Batch, Row, as_frame
from tests.stress.history import (
    CHECKSUM_SQL,
    IDS_OF_A_PROCESS,
    Change,
    Journal,
    Read,
    Where,
    checksum,
)
from tests.support.delta_log import last_version, plain
from tests.support.invariants import assert_samples

LAYOUTS = ("a,b", "a,s:hash", "s:hash,b,a", "a:hash,b:hash")
CUBE_SIZES = (40, 150)
_LAST_COMMIT = "spark.databricks.delta.lastCommitVersionInSession"


class Draws:
    """Rows and conditions of one process, drawn by its seed."""

    def __init__(self, seed: int, number: int) -> None:
        self.random = random.Random(f"{seed} {number}")
        self._first_id = self._next_id = number * IDS_OF_A_PROCESS

    def rows(self, fewest: int = 1, most: int = 60) -> list[Row]:
        """New rows; those of one batch in twelve lie beyond the others, which needs a revision."""
        reach = self.random.choice([*[100] * 11, 90_000])
        batch = Batch(self.random.randint(fewest, most), self.random.randrange(1000), reach)
        self._next_id += batch.count
        return batch.rows(self._next_id - batch.count)

    def old_rows(self) -> list[Row]:
        """New values for ids that were given before, perhaps to rows that are gone."""
        if self._next_id == self._first_id:
            return self.rows()
        first = self._old_id()
        count = min(self.random.randint(1, 60), self._next_id - first)
        return Batch(count, self.random.randrange(1000)).rows(first)

    def where(self) -> Where:
        """Some of the rows of this process."""
        first = self._old_id()
        ids = Where(first, first + self.random.choice([3, 30, 300]))
        if self.random.random() < 0.5:
            return ids
        lowest = self.random.randint(-40, 40)
        return Where(ids.first, ids.end, lowest, lowest + self.random.randint(0, 30))

    def _old_id(self) -> int:
        return self.random.randrange(self._first_id, max(self._next_id, self._first_id + 1))


class Writer:
    """Changes the table with qbeast_core."""

    SHARES: ClassVar = {
        "append": 6,
        "merge": 3,
        "update": 3,
        "delete": 2,
        "replace_where": 2,
        "replace_matching": 2,
        "optimize": 3,
        "overwrite": 0.2,
    }
    """How often each operation is drawn, relative to the others."""

    def __init__(
        self, spark: SparkSession, path: str, number: int, seed: int, journal: Journal
    ) -> None:
        self._spark, self._path, self._journal = spark, path, journal
        self._draws = Draws(seed, number)
        self.done: Counter[str] = Counter()
        """How often each operation was done."""
        self.conflicts = 0
        """How many operations were given up because of other commits."""

    def step(self) -> None:
        """Do one operation, and report it. Any exception is a fault."""
        names, shares = list(self.SHARES), list(self.SHARES.values())
        name = self._draws.random.choices(names, shares)[0]
        act: Callable[[], Change] = getattr(self, name)
        try:
            change = act()
        except CommitConflict:
            self.conflicts += 1
            return
        self._journal.add(change)
        self.done[name] += 1

    def overwrite(self) -> Change:
        rows = self._draws.rows(100, 300)
        result = write_table(
            self._frame(rows),
            path=self._path,
            mode="overwrite",
            columns_to_index=self._draws.random.choice(LAYOUTS),
            cube_size=self._draws.random.choice(CUBE_SIZES),
        )
        assert result.rows == len(rows)
        return Change("overwrite", result.version, clears=True, put=tuple(rows))

    def append(self) -> Change:
        rows = self._draws.rows()
        result = write_table(self._frame(rows), path=self._path)
        assert result.rows == len(rows)
        return Change("append", result.version, put=tuple(rows))

    def merge(self) -> Change:
        rows = [*self._draws.old_rows(), *self._draws.rows()]
        result = self._table.merge(self._frame(rows), "id")
        reported = {"updated": result.rows_updated, "inserted": result.rows_inserted}
        return self._change("merge", result, reported, put=rows)

    def update(self) -> Change:
        where, by = self._draws.where(), self._draws.random.choice([1, 5000])
        result = self._table.update({"a": f"a + {by}"}, where.sql)
        reported = {"updated": result.rows_updated}
        return self._change("update", result, reported, increased=where, by=by)

    def delete(self) -> Change:
        where = self._draws.where()
        result = self._table.delete(where.sql)
        return self._change("delete", result, {"deleted": result.rows_deleted}, removed=where)

    def replace_where(self) -> Change:
        rows = self._draws.old_rows()
        where = Where(rows[0].id, rows[-1].id + self._draws.random.choice([1, 40]))
        result = self._table.replace_where(self._frame(rows), where.sql)
        reported = {"deleted": result.rows_deleted, "inserted": result.rows_inserted}
        return self._change("replace_where", result, reported, removed=where, put=rows)

    def replace_matching(self) -> Change:
        rows = self._draws.old_rows()
        result = self._table.replace_matching(self._frame(rows), "id")
        where = Where(rows[0].id, rows[-1].id + 1)
        reported = {"deleted": result.rows_deleted, "inserted": result.rows_inserted}
        return self._change("replace_matching", result, reported, removed=where, put=rows)

    def optimize(self) -> Change:
        result = self._table.optimize(self._draws.random.choice([None, "all", "unindexed"]))
        return Change("optimize", result.version, result.changed)

    def _change(
        self,
        name: str,
        result: RewriteResult,
        reported: dict[str, int],
        *,
        removed: Where | None = None,
        increased: Where | None = None,
        by: int = 0,
        put: list[Row] | None = None,
    ) -> Change:
        return Change(
            name,
            result.version,
            result.changed,
            removed=removed,
            increased=increased,
            by=by,
            put=tuple(put or ()),
            reported=reported,
        )

    @property
    def _table(self) -> QbeastTable:
        return QbeastTable.for_path(self._spark, self._path)

    def _frame(self, rows: list[Row]) -> DataFrame:
        return as_frame(self._spark, rows)


class Reader:
    """Reads the table in all ways, and reports the checksums of what it saw."""

    READS: ClassVar = ("by_the_index", "newest", "older")

    def __init__(
        self, spark: SparkSession, path: str, number: int, seed: int, journal: Journal
    ) -> None:
        self._spark, self._path, self._journal = spark, path, journal
        self._writers = number
        self._draws = Draws(seed, number)
        self.done: Counter[str] = Counter()
        self.conflicts = 0

    def step(self) -> None:
        name = self._draws.random.choice(self.READS)
        getattr(self, name)()
        self.done[f"read: {name.replace('_', ' ')}"] += 1

    def by_the_index(self) -> None:
        """Samples and a filter, exactly as the rows and their weights say."""
        table = QbeastTable.for_path(self._spark, self._path)
        where = self._where()
        weight = F.hash(*(F.col(name) for name in table.columns_to_index))
        rows = table.dataframe().select(
            "id", weight.alias("w"), F.expr(where.sql).alias("kept"), "a"
        )
        found = rows.collect()
        samples = [(0.02, None), (0.3, None), (0.3, where.sql), (1.0, where.sql)]
        assert_samples(table, [(row.id, row.w, row.kept) for row in found], samples)
        for condition in (None, where):
            kept = [(row.id, row.a) for row in found if condition is None or row.kept]
            self._report(table.version, table.version, condition, len(kept), checksum(kept))

    def newest(self) -> None:
        """Without an index, and without a choice of the version."""
        where = self._draws.random.choice([None, self._where()])
        first = last_version(self._path)
        found = self._summed(plain(self._spark, self._path), where)
        self._report(first, last_version(self._path), where, *found)

    def older(self) -> None:
        """By time travel."""
        version = self._draws.random.randint(0, last_version(self._path))
        reader = self._spark.read.format("delta").option("versionAsOf", version)
        self._report(version, version, None, *self._summed(reader.load(self._path), None))

    def _where(self) -> Where:
        """Some rows of one of the writers."""
        first = self._draws.random.randrange(self._writers) * IDS_OF_A_PROCESS
        first += self._draws.random.randrange(500)
        lowest = self._draws.random.randint(-40, 40)
        return Where(first, first + 400, lowest, lowest + self._draws.random.randint(0, 60))

    def _summed(self, rows: DataFrame, where: Where | None) -> tuple[int, int]:
        kept = rows if where is None else rows.where(where.sql)
        found = kept.selectExpr("count(*)", CHECKSUM_SQL).head()
        assert found is not None
        return found[0], found[1]

    def _report(self, first: int, last: int, where: Where | None, rows: int, checksum: int) -> None:
        self._journal.add(Read(first, last, where, rows, checksum))


class PlainWriter(Reader):
    """Changes the table as any program does that knows Delta and no index.

    Its changes are quick. It reads between them, or the other writers would only meet conflicts.
    """

    READS: ClassVar = ("newest", "older")

    def step(self) -> None:
        if self._draws.random.random() < 0.75:
            super().step()
            return
        name = self._draws.random.choices(["append", "delete", "compact"], [6, 3, 1])[0]
        # Delta sets it when it has made a commit.
        self._spark.conf.unset(_LAST_COMMIT)
        rows, where = self._draws.rows(), self._draws.where()
        table = DeltaTable.forPath(self._spark, self._path)
        try:
            if name == "append":
                frame = as_frame(self._spark, rows)
                frame.write.format("delta").mode("append").save(self._path)
            elif name == "delete":
                table.delete(where.sql)
            else:
                table.optimize().executeCompaction()
        except Exception as error:
            if not is_commit_conflict(error):
                raise
            self.conflicts += 1
            return
        self.done[f"plain {name}"] += 1
        version = self._spark.conf.get(_LAST_COMMIT, None)
        if version is not None:
            self._journal.add(
                Change(
                    f"plain {name}",
                    int(version),
                    removed=where if name == "delete" else None,
                    put=tuple(rows) if name == "append" else (),
                )
            )
