"""A table with an index beside a plain Delta table that the same is done to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qbeast_core import IncompatibleTable, QbeastError, QbeastTable, quoted
from tests.matrix.features import Feature

INDEXED, PLAIN = "matrix_indexed", "matrix_plain"

FILTERS = (
    "a between 20 and 60",
    "ts < timestamp'2023-12-01 00:00:00'",
    "old < date'1000-02-01'",
    "b = 'v003'",
    "v >= 40 and id % 3 = 0",
    "a = 10005 or b is null",
)
FRACTION = 0.3
_NOT_INDEXED = "counts as not indexed"
_FOUND_IN_TYPES = {"DELTA_FAILED_TO_MERGE_FIELDS": "CAST_INVALID_INPUT"}
"""What Delta finds wrong with a column's type, by what the index finds wrong with its values."""

Rows = Counter[str]


@dataclass
class Twin:
    """Both tables, and what the steps so far have made of them."""

    spark: SparkSession
    feature: Feature
    altered: bool = False
    marks: dict[str, tuple[int, int, Rows]] = field(default_factory=dict)
    """By name: a version of each of the two, and the rows that both had then."""

    def rows(self, first: int, count: int, **values: str) -> DataFrame:
        """New rows with numbers from `first` on, for the columns that the tables have now.

        Columns whose value is Delta's to compute are left out. `values` replace those of the
        feature.
        """
        known = {name: value for name, (_, value) in self.feature.definitions.items()}
        known |= (self.feature.changed if self.altered else {}) | values
        chosen = [(name, known.get(name, "")) for name in self.plain().columns]
        return self.spark.range(first, first + count, 1, 1).select(
            *(F.expr(value).alias(name) for name, value in chosen if value)
        )

    def indexed(self) -> QbeastTable:
        """The newest version of the table with an index."""
        return QbeastTable.for_name(self.spark, INDEXED)

    def plain(self, name: str = PLAIN) -> DataFrame:
        """All rows of a table, as any reader of Delta sees them."""
        return self.spark.table(name)

    def location(self, name: str) -> str:
        """The directory of a table."""
        return str(self.spark.sql(f"describe detail {name}").first().location)

    def version(self, name: str) -> int:
        """The newest version of a table."""
        return int(self.spark.sql(f"describe history {name} limit 1").first().version)

    def contents(self, rows: DataFrame) -> Rows:
        """The rows as text and how often each is there, without what two tables may differ in."""
        shown = [
            F.to_json(quoted(name)) if kind == "variant" else F.col(quoted(name))
            for name, kind in sorted(rows.dtypes)
            if name not in self.feature.own_values
        ]
        return Counter(map(str, rows.select(*shown).collect()))

    def changes(self, name: str, since: int) -> Rows:
        """The rows that the change data feed tells of versions after `since`."""
        feed = self.spark.read.option("readChangeFeed", "true").option("startingVersion", since + 1)
        return self.contents(feed.table(name).drop("_commit_version", "_commit_timestamp"))


def same_rows(twin: Twin) -> None:
    """Assert that both tables have the same columns and the same rows."""
    assert twin.plain(INDEXED).dtypes == twin.plain().dtypes
    found, expected = twin.contents(twin.plain(INDEXED)), twin.contents(twin.plain())
    assert found == expected, f"missing {expected - found}, too many {found - expected}"


def index_is_right(twin: Twin) -> None:
    """Assert that filters and samples have the rows that a look at all rows finds."""
    table, every_row = twin.indexed(), twin.plain(INDEXED)
    usable = [f for f in FILTERS if _has_columns(every_row, f)]
    pairs = [(table.sample(1.0, f), every_row.where(f)) for f in usable]
    weight = F.hash(*(F.col(quoted(name)) for name in table.sample_key or table.columns_to_index))
    try:
        below = F.expr(table.sample_condition(FRACTION))
        pairs += [(table.sample(FRACTION, f), every_row.where(f).where(below)) for f in usable[:2]]
        limit = -(2**31) + round(FRACTION * (2**32 - 1))
        pairs.append((table.sample(FRACTION), every_row.where(weight < limit)))
    except IncompatibleTable:
        assert "sample" in twin.feature.refuses
    found, expected = (_numbered(side) for side in zip(*pairs, strict=True))
    assert found == expected, f"{found - expected}, lost {expected - found}"
    report = table.check()
    wrong = [problem for problem in report.problems if _NOT_INDEXED not in problem]
    assert not wrong, str(report)


def outcome(action: Callable[[], object]) -> Exception | None:
    """The error of an action; None if it succeeds."""
    try:
        action()
    except (QbeastError, PySparkException, Py4JError) as error:
        return error
    return None


def kind(error: Exception) -> str:
    """What kind of error it is: its class of ours, else Spark's condition."""
    if isinstance(error, QbeastError):
        return type(error).__name__
    condition = getattr(error, "getCondition", lambda: None)() or type(error).__name__
    condition = condition.split(".")[0]
    return _FOUND_IN_TYPES.get(condition, condition)


def _numbered(queries: tuple[DataFrame, ...]) -> Counter[tuple[int, int]]:
    parts = [query.select(F.lit(i).alias("query"), "id") for i, query in enumerate(queries)]
    return Counter((row.query, row.id) for row in reduce(DataFrame.unionAll, parts).collect())


def _has_columns(rows: DataFrame, condition: str) -> bool:
    return outcome(lambda: rows.where(condition).schema) is None


def described(choice: Mapping[str, str]) -> str:
    """A choice of settings for people: `ANSI on, time zone UTC`."""
    return ", ".join(f"{name} {value}" for name, value in choice.items())
