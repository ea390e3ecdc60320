"""Count what an operation costs: Spark jobs, and calls from Python into the JVM."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

_MEMORY = "m\n"
"""The prefix of py4j's commands that release objects. Python's garbage collector triggers them."""


@dataclass
class Counts:
    """The counts of a block; final when the block has ended."""

    jobs: int = 0
    calls: int = 0


@contextmanager
def counting(spark: SparkSession) -> Iterator[Counts]:
    """Count this thread's Spark jobs and all threads' py4j calls inside the block."""
    counts = Counts()
    client: Any = spark.sparkContext._gateway._gateway_client
    send = client.send_command

    def counted(command: str, *arguments: Any, **named: Any) -> Any:
        counts.calls += not command.startswith(_MEMORY)
        return send(command, *arguments, **named)

    group = str(uuid.uuid4())
    spark.sparkContext.setJobGroup(group, "counted")
    client.send_command = counted
    try:
        yield counts
    finally:
        client.send_command = send
        counts.jobs = len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
