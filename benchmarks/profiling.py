"""Where the time of Spark's tasks goes: what Java's own flight recorder finds them doing.

Each task's thread is looked at fifty times a second, and counts for the innermost part of the work
whose code it is in. The recorder is in every JDK; its tool `jfr` is not in all runtimes of Java.
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
# The recorder tells the name that the thread has in the end, when its tasks are done.
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
"""The parts of the work, by the beginnings of their methods; the first one that fits counts."""


def profile(spark: SparkSession, action: Callable[[], object]) -> Counter[str]:
    """How often the tasks of an action were found in each part.

    Raises:
        FileNotFoundError: this Java has no tool `jfr`; a JDK has.
    """
    jvm: Any = spark._jvm
    tool = Path(jvm.java.lang.System.getProperty("java.home")) / "bin" / "jfr"
    if not tool.exists():
        raise FileNotFoundError(f"profiles need {tool}, which comes with a JDK; install one")
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
    """The methods of each look at a task, innermost first."""
    for event in printed.split("\n\n"):
        if _TASK.search(event):
            yield _FRAME.findall(event)


def part_of(frames: list[str]) -> str:
    """The part of the work that a stack is in."""
    for frame in frames:
        for part, pattern in PARTS.items():
            if pattern.match(frame):
                return part
    return _OTHER
