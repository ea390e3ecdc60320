"""A stream that is killed between its commits and begun again writes each batch once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from qbeast_core import write_table
from tests.integration.core import stream_process
from tests.support.delta_log import last_version, plain
from tests.support.invariants import assert_sound
from tests.support.killing import killed_process


def test_a_killed_stream_that_is_begun_again_writes_no_row_twice(
    spark: SparkSession, tmp_path: Path
) -> None:
    names = ("source", "events", "counts", "checkpoint", "warehouse")
    places = {name: str(tmp_path / name) for name in names}

    def arrive(first: int, last: int) -> None:
        rows = spark.range(first, last, 1, 1).selectExpr("id", "id % 3 as kind")
        rows.write.mode("append").parquet(places["source"])

    none = spark.sql("select 0L as kind, 0L as n limit 0")
    write_table(none, path=places["counts"], columns_to_index=["kind"])
    arrive(0, 30)
    killed_process(Path(__file__).with_name("stream_process.py"), json.dumps(places))
    # The stream has not recorded its first batch as done.
    assert list(Path(places["checkpoint"], "offsets").glob("0"))
    assert not list(Path(places["checkpoint"], "commits").glob("0"))
    assert (last_version(places["events"]), last_version(places["counts"])) == (0, 0)
    arrive(30, 60)
    told: list[tuple[int, bool]] = []

    def note(batch: int, result: Any) -> None:
        told.append((batch, result.repeated))

    stream_process.run(spark, places, note)
    assert told == [(0, True), (0, False), (1, False), (1, False)]
    assert_sound(spark, places["events"], range(60))
    assert sorted(map(tuple, plain(spark, places["counts"]).collect())) == [
        (0, 20),
        (1, 20),
        (2, 20),
    ]
    told.clear()
    stream_process.run(spark, places, note)
    assert not told
