"""The cases of the suite, one per module, in the order in which they run.

Cases that time writes come late, because a new JVM compiles for minutes. They come before the cases
that read the ZORDER table, which the write case creates.
"""

from collections.abc import Callable, Iterable, Mapping

from benchmarks.bench import Bench
from benchmarks.cases import (
    append,
    error,
    filtered_sample,
    fractions,
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
    "fractions": fractions.run,
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
"""Cases that run only if you name them."""
