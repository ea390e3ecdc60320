"""The cases of the suite, one idea a module, in the order in which they run, main ones first."""

from collections.abc import Callable, Iterable, Mapping

from benchmarks.bench import Bench
from benchmarks.cases import (
    append,
    error,
    filtered_sample,
    full_scan,
    growth,
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
    "write": write.run,
    "sample": sample.run,
    "ranges": ranges.run,
    "full_scan": full_scan.run,
    "planning": planning.run,
    "rebuild": rebuild.run,
    "append": append.run,
    "write_join": write_join.run,
    "filtered_sample": filtered_sample.run,
    "merge": merge.run,
    "growth": growth.run,
    "size": size.run,
    "error": error.run,
    "profile": profile.run,
    "original": original.run,
}
ON_REQUEST = ("size", "profile")
"""Cases that only run when they are named."""
