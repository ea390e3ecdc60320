"""A stream that keeps two tables: `python stream_process.py <JSON>` is killed in its first batch.

The JSON has the directories `warehouse`, `source`, `events`, `counts` and `checkpoint`. The process
dies when the first table has its commit, before the second table has one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame, SparkSession

from qbeast_core import QbeastTable, RewriteResult, WriteResult, write_table
from tests.support import spark_session
from tests.support.killing import kill_all

APPLICATION = "events-stream"


def run(
    spark: SparkSession,
    places: Mapping[str, str],
    report: Callable[[int, WriteResult | RewriteResult], object],
) -> None:
    """Write what the source has and the tables do not, one file of the source at a time."""

    def write(batch: DataFrame, batch_id: int) -> None:
        txn = {"txn_app_id": APPLICATION, "txn_version": batch_id}
        appended = write_table(batch, path=places["events"], columns_to_index=["id"], **txn)
        report(batch_id, appended)
        counts = QbeastTable.for_path(batch.sparkSession, places["counts"])
        new = batch.groupBy("kind").count()
        sums = {"n": "target.n + source.count"}
        inserted = {"kind": "source.kind", "n": "source.count"}
        report(batch_id, counts.merge(new, "kind", update=sums, insert=inserted, **txn))

    source = spark.readStream.schema("id long, kind long").option("maxFilesPerTrigger", 1)
    stream = source.parquet(places["source"]).writeStream.foreachBatch(write)
    stream = stream.option("checkpointLocation", places["checkpoint"]).trigger(availableNow=True)
    stream.start().awaitTermination()


def main() -> None:
    places = json.loads(sys.argv[1])
    spark = spark_session.start(places["warehouse"], spark__driver__memory="1g")
    run(spark, places, lambda *_: kill_all())


if __name__ == "__main__":
    main()
