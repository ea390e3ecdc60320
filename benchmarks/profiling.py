"""Profiles Spark's tasks with Java's flight recorder.

The recorder samples each task's thread fifty times a second. A sample counts for the innermost part
of the work whose code it is in. Every JDK has the recorder; some Java runtimes lack its tool `jfr`.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

PERIOD_MILLIS = 20
_EVENTS = ("jdk.ExecutionSample", "jdk.NativeMethodSample")
# The recorder reports the last name of a thread, which it has when its tasks are done.
_TASK = re.compile(r'sampledThread = "Executor task (launch|idle) worker')
_FRAME = re.compile(r"^\s+([\w.$]+\([^)]*\))\s+line:", re.MULTILINE)
_OTHER = "other"

PARTS: Mapping[str, re.Pattern[str]] = {
    part: re.compile(pattern)
    for part, pattern in {
        "statistics of Delta": r"org\.apache\.spark\.sql\.delta\..*(Stat|stats)",
        "scan": r"org\.apache\.spark\.sql\.execution\.(vectorized|datasources\.parquet\.(Vector|"
        r"SpecificParquet|ParquetFileFormat))|org\.apache\.parquet\.hadoop\.ParquetFileReader",
        "Parquet": r"org\.apache\.(parquet|spark\.sql\.execution\.datasources\.parquet)\.",
        "shuffle": r"org\.apache\.spark\.(shuffle|storage|serializer|io|network)\.|net\.jpountz\."
        r"|.*UnsafeRowSerializer",
        "sort": r".*(UnsafeExternalRowSorter|\.unsafe\.sort\.|TakeOrdered|BoundedPriorityQueue)",
        "aggregation": r".*\.aggregate\.|.*BytesToBytesMap|.*AggregatingAccumulator",
        "placing rows": r"java\.util\.Arrays\.binarySearch|.*\.Murmur3|.*UnsafeProjection\.apply",
        "generated code": r".*catalyst\.expressions\.GeneratedClass",
    }.items()
}
"""The parts of the work, by patterns of their methods. The first match counts."""


def profile(spark: SparkSession, action: Callable[[], object]) -> Counter[str]:
    """How many samples of an action's tasks fall into each part of the work.

    Raises:
        FileNotFoundError: this Java has no tool `jfr`. Install a JDK.
    """
    jvm: Any = spark._jvm
    tool = Path(jvm.java.lang.System.getProperty("java.home")) / "bin" / "jfr"
    if not tool.exists():
        raise FileNotFoundError(f"profiling needs {tool}; install a JDK")
    recording = jvm.jdk.jfr.Recording()
    for event in _EVENTS:
        recording.enable(event).withPeriod(jvm.java.time.Duration.ofMillis(PERIOD_MILLIS))
    with tempfile.TemporaryDirectory() as directory:
        file = str(Path(directory) / "recorded.jfr")
        recording.start()
        try:
            action()
        finally:
            recording.stop()
            recording.dump(jvm.java.io.File(file).toPath())
            recording.close()
        printed = subprocess.run(
            [tool, "print", "--events", ",".join(_EVENTS), "--stack-depth", "64", file],
            check=True,
            capture_output=True,
            text=True,
        )
    return Counter(part_of(frames) for frames in stacks(printed.stdout))


def stacks(printed: str) -> Iterator[list[str]]:
    """The methods on the stack of each sample of a task, innermost first."""
    for event in printed.split("\n\n"):
        if _TASK.search(event):
            yield _FRAME.findall(event)


def part_of(frames: list[str]) -> str:
    """The part of the work that a stack belongs to."""
    for frame in frames:
        for part, pattern in PARTS.items():
            if pattern.match(frame):
                return part
    return _OTHER
