"""Measures a merge that updates 1 % of the rows, those of a few days, like late corrections."""

from __future__ import annotations

from collections.abc import Iterator

from delta import DeltaTable
from pyspark.sql import functions as F

from benchmarks import layouts
from benchmarks.bench import Bench
from benchmarks.comparison import Comparison
from benchmarks.data import known_values
from benchmarks.layouts import Layout
from benchmarks.measuring import alternate
from qbeast_core import QbeastTable

_KEY = ("picked_up_at", "trip_id")


def run(bench: Bench) -> Iterator[Comparison]:
    """Merge the same new fares into both tables. Each repetition changes the same rows again."""
    source = bench.trips
    plain = layouts.copy(bench.table(source, Layout.PLAIN), bench.place())
    ours = layouts.copy(bench.table(source, Layout.QBEAST), bench.place())
    moments = known_values(source.path, ("picked_up_at",))["picked_up_at"]
    first, last = moments[int(0.5 * len(moments))], moments[int(0.51 * len(moments))]
    changes = bench.place()
    rows = source.rows(bench.spark).where(
        f"picked_up_at between timestamp'{first}' and timestamp'{last}'"
    )
    rows.withColumn("fare", F.col("fare") + 1).write.parquet(changes)
    corrected = bench.spark.read.parquet(changes)

    def merge_plain() -> None:
        condition = " and ".join(f"target.{column} = source.{column}" for column in _KEY)
        target = DeltaTable.forPath(bench.spark, plain).alias("target")
        merge = target.merge(corrected.alias("source"), condition)
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    def merge_ours() -> None:
        QbeastTable.for_path(bench.spark, ours).merge(corrected, on=_KEY)

    sides = alternate({"MERGE of plain Delta": merge_plain, "qbeast": merge_ours})
    bench.remove(plain, ours, changes)
    yield bench.compare("merge 1 % into trips", "s", sides["qbeast"], sides["MERGE of plain Delta"])
