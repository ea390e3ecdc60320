"""A table with an index beside a plain Delta table that the same is done to."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from qbeast_core import QbeastTable, TableSnapshot, quoted, write_table
from qbeast_core.jvm.gateway import activate
from tests.matrix.features import Feature
from tests.matrix.settings import ACTIVE, ONE, ROWS, second_session
from tests.support.faulty_store import FaultyStore

INDEXED, PLAIN = "matrix_indexed", "matrix_plain"

Rows = Counter[str]


@dataclass(frozen=True)
class Mark:
    """A moment in the history of both tables."""

    versions: dict[str, int]
    """By the table's name."""
    rows: Rows
    """The rows that both tables have then."""


@dataclass
class Twin:
    """Both tables, and what the steps so far have made of them."""

    spark: SparkSession
    feature: Feature
    index: dict[str, Any]
    """The arguments that make the index."""
    store: FaultyStore
    """The storage of both tables' logs."""
    is_lenient: bool = False
    """Whether Delta makes values null that do not fit their column."""
    sessions: str = ONE
    """One of `SESSIONS`."""
    altered: bool = False
    marks: dict[str, Mark] = field(default_factory=dict)
    identities: dict[int, tuple[object, ...]] = field(default_factory=dict)
    """The values that Delta gave to the rows of the indexed table, by their numbers."""
    comparisons: int = 0
    """How often the tables were compared."""
    _locations: dict[str, str] = field(default_factory=dict)
    _second: SparkSession | None = None
    """The second session while it is used."""

    def create(self) -> None:
        """Make both tables as plain Delta tables with 120 rows in two files."""
        for name in (PLAIN, INDEXED):
            self.create_empty(name)
        for name in (PLAIN, INDEXED):
            self.save(name, self.rows(0, 120).repartition(2, "id"))

    def create_empty(self, name: str) -> None:
        """Make a plain Delta table with the feature and without rows."""
        columns = ", ".join(
            f"{name} {kind}" for name, (kind, _) in self.feature.definitions.items()
        )
        told = ", ".join(
            f"'{key}' = '{value}'"
            for key, value in self.feature.properties.items()
            if key not in self.feature.of_catalog
        )
        stored = f"tblproperties ({told})" if told else ""
        self.spark.sql(
            f"create table {name} ({columns}) using delta {self.feature.clause} {stored}"
        )

    def append(self, name: str, rows: DataFrame) -> None:
        """Append rows with this library to the indexed table, and with Delta to the other."""
        if name == INDEXED:
            self.switch()
            write_table(rows, table=INDEXED)
        else:
            self.save(name, rows)

    def save(self, name: str, rows: DataFrame, mode: str = "append", **options: str) -> None:
        """Write rows as plain Delta does."""
        rows.write.format("delta").mode(mode).options(**options).save(self.location(name))

    def rows(self, first: int, count: int, **values: str) -> DataFrame:
        """New rows with numbers from `first` on, for the columns that the tables have now.

        Columns whose value is Delta's to compute are left out. `values` replace those of the
        feature.
        """
        known = {name: value for name, (_, value) in self.feature.definitions.items()}
        known |= (self.feature.changed if self.altered else {}) | values
        chosen = [(name, known.get(name, "")) for name in self.plain().columns]
        session = self._second if self._second and self.sessions == ROWS else self.spark
        return session.range(first, first + count, 1, 1).select(
            *(F.expr(value).alias(name) for name, value in chosen if value)
        )

    @contextmanager
    def second_is_used(self) -> Iterator[None]:
        """Let a second session be active or make new rows, if the cell has one."""
        if self.sessions != ONE:
            self._second = second_session(self.spark, self.sessions)
        self.switch()
        try:
            yield
        finally:
            self._second = None
            activate(self.spark)

    def switch(self) -> None:
        """Make the second session active again, because most calls activate their own."""
        if self._second and self.sessions == ACTIVE:
            activate(self._second)

    def indexed(self) -> QbeastTable:
        """The newest version of the table with an index."""
        table = QbeastTable.for_name(self.spark, INDEXED)
        self.switch()
        return table

    def plain(self, name: str = PLAIN) -> DataFrame:
        """All rows of a table, as any reader of Delta sees them."""
        return self.spark.table(name).drop("_qbeast_slice")

    def location(self, name: str) -> str:
        """The directory of a table."""
        if name not in self._locations:
            self._locations[name] = self.spark.sql(f"describe detail {name}").first().location
        return self._locations[name]

    def version(self, name: str) -> int:
        """The newest version of a table."""
        return TableSnapshot.load(self.spark, self.location(name)).version

    def shown(self, rows: DataFrame) -> list[Column]:
        """The columns that two tables have in common, in a form that Python can compare."""
        return [
            (F.to_json(quoted(name)) if kind == "variant" else F.col(quoted(name))).alias(name)
            for name, kind in sorted(rows.dtypes)
            if name not in self.feature.own_values
        ]

    def contents(self, rows: DataFrame) -> Rows:
        """The rows as text and how often each is there, without what two tables may differ in."""
        return Counter(map(str, rows.select(*self.shown(rows)).collect()))

    def changes(self, name: str, since: int) -> Counter[tuple[str, str]]:
        """The kinds and rows that the change data feed has for the versions after `since`."""
        feed = self.spark.read.option("readChangeFeed", "true").option("startingVersion", since + 1)
        told = feed.table(name)
        left = told.drop("_commit_version", "_commit_timestamp", "_qbeast_slice", "_change_type")
        found = told.select("_change_type", F.struct(*self.shown(left)).alias("row")).collect()
        return Counter((row[0], str(row.row)) for row in found)

    def has_property(self, key: str) -> bool:
        """Whether the feature sets this table property to true."""
        return self.feature.properties.get(key) == "true"

    def mark(self, name: str) -> None:
        """Keep the present versions and rows for time travel."""
        versions = {table: self.version(table) for table in (INDEXED, PLAIN)}
        self.marks[name] = Mark(versions, self.contents(self.plain()))


def drop(spark: SparkSession, name: str) -> None:
    """Drop a table, or what is left of one that could not be created."""
    spark.sql(f"drop table if exists {name}")
    warehouse = urlparse(spark.conf.get("spark.sql.warehouse.dir")).path
    shutil.rmtree(Path(warehouse, name), ignore_errors=True)


def reversed_fields(rows: DataFrame) -> DataFrame:
    """The rows with the fields of all their structs, at every depth, in reverse order."""
    return rows.select(
        *(
            _reversed(F.col(quoted(field.name)), field.dataType).alias(field.name)
            for field in rows.schema
        )
    )


def _reversed(value: Column, kind: DataType) -> Column:
    if isinstance(kind, ArrayType):
        return F.transform(value, lambda element: _reversed(element, kind.elementType))
    if isinstance(kind, MapType):
        return F.transform_values(value, lambda _, element: _reversed(element, kind.valueType))
    if isinstance(kind, StructType):
        fields = [
            _reversed(value.getField(field.name), field.dataType).alias(field.name)
            for field in reversed(kind.fields)
        ]
        return F.when(value.isNotNull(), F.struct(*fields))
    return value
