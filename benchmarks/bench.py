"""What the cases share: the session, the data sets, and tables that are written once."""

from __future__ import annotations

import itertools
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks import data, layouts
from benchmarks.comparison import Comparison, Side
from benchmarks.layouts import Layout
from benchmarks.targets import judged

_AT_ONCE = 2


@dataclass(frozen=True)
class Source:
    """Rows to write, the columns to filter by, and the aggregates that queries compute."""

    name: str
    path: str
    columns: tuple[str, str]
    index: tuple[str, str]
    """The same columns, as passed to `columns_to_index`."""
    few: tuple[str, str]
    """Aggregates of two other columns."""

    def rows(self, spark: SparkSession) -> DataFrame:
        """The rows, read from their Parquet file."""
        return spark.read.parquet(self.path)


class Bench:
    """One run of the suite at one scale."""

    def __init__(self, spark: SparkSession, scale: float, root: Path) -> None:
        self.spark = spark
        self.scale = scale
        self._root = root
        self._numbers = itertools.count()
        self._tables: dict[tuple[str, Layout], str] = {}

    @cached_property
    def lineitem(self) -> Source:
        """TPC-H's largest table: 6 million rows at scale 1, two columns without correlation."""
        few = ("avg(l_extendedprice)", "avg(l_quantity)")
        path = data.tpch("lineitem", self.scale)
        columns = ("l_partkey", "l_shipdate")
        return Source("lineitem", path, columns, columns, few)

    @cached_property
    def little_lineitem(self) -> Source:
        """A twentieth of the rows of `lineitem`, for warming up."""
        path = data.tpch("lineitem", round(self.scale / 20, 4))
        return replace(self.lineitem, path=path)

    @cached_property
    def trips(self) -> Source:
        """Taxi trips: 3 million rows at scale 1, with clusters, outliers and nulls."""
        few = ("avg(fare)", "avg(kilometres)")
        path = data.trips(self.scale)
        # Nearly all trips begin within one degree, and a few far away.
        index = ("picked_up_at", "longitude:quantiles")
        return Source("trips", path, ("picked_up_at", "longitude"), index, few)

    def place(self) -> str:
        """A path for a new table. `remove` it afterwards to save space."""
        return str(self._root / str(next(self._numbers)))

    def remove(self, *paths: str) -> None:
        """Delete tables that are no longer needed."""
        for path in paths:
            shutil.rmtree(path, ignore_errors=True)

    def table(self, source: Source, layout: Layout) -> str:
        """The path of a shared table, which no case may change. It is written on first use."""
        key = (source.name, layout)
        if key not in self._tables:
            self._tables[key] = self._written(source, layout)
        return self._tables[key]

    def make(self, *tables: tuple[Source, Layout]) -> None:
        """Write several tables concurrently, because OPTIMIZE writes one file with one task."""
        for source in {source for source, _ in tables}:
            self.table(source, Layout.PLAIN)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda table: self.table(*table), tables))

    def keep(self, source: Source, layout: Layout, path: str) -> None:
        """Use a table that a case has written as the shared one from now on."""
        self._tables[source.name, layout] = path

    def compare(self, case: str, unit: str, ours: Side, other: Side) -> Comparison:
        """A comparison with its target, if it has one, at this scale."""
        return judged(Comparison(case, unit, ours, other), self.scale)

    def _written(self, source: Source, layout: Layout) -> str:
        rows, path = source.rows(self.spark), self.place()
        match layout:
            case Layout.QBEAST:
                layouts.write_qbeast(rows, path, source.index)
            case Layout.QBEAST_SLICES:
                layouts.write_qbeast(rows, path, source.index, slices=True)
            case Layout.PLAIN:
                layouts.write_plain(rows, path)
            case Layout.ZORDER:
                self._zorder(source, path, sorted_files=False)
            case Layout.ZORDER_SORTED:
                self._zorder(source, path, sorted_files=True)
            case Layout.LIQUID:
                plain = self.table(source, Layout.PLAIN)
                layouts.clustered(self.spark, plain, path, source.columns)
        return path

    def _zorder(self, source: Source, path: str, sorted_files: bool) -> None:
        plain = self.table(source, Layout.PLAIN)
        layouts.zordered(self.spark, plain, path, source.columns, sorted_files)
