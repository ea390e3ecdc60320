"""The cases of the suite, one idea a module, in the order in which they run.

Those that time writes come late, for a new JVM compiles for minutes, and before those that read the
table with ZORDER that a write is compared with.
"""

from collections.abc import Callable, Iterable, Mapping

from benchmarks.bench import Bench
from benchmarks.cases import (
    append,
    error,
    filtered_sample,
    full_scan,
    growth,
    memory,
    merge,
    original,
    planning,
    profile,
    ranges,
    rebuild,
    sample,
    size,
    write,
    write_join,
)
from benchmarks.comparison import Comparison

CASES: Mapping[str, Callable[[Bench], Iterable[Comparison]]] = {
    "memory": memory.run,
    "sample": sample.run,
    "full_scan": full_scan.run,
    "planning": planning.run,
    "error": error.run,
    "merge": merge.run,
    "growth": growth.run,
    "write_join": write_join.run,
    "rebuild": rebuild.run,
    "write": write.run,
    "append": append.run,
    "ranges": ranges.run,
    "filtered_sample": filtered_sample.run,
    "size": size.run,
    "profile": profile.run,
    "original": original.run,
}
ON_REQUEST = ("size", "profile")
"""Cases that only run when they are named."""
