"""The cases of the suite, one idea a module, in the order in which they run."""

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
    ranges,
    rebuild,
    sample,
    write,
    write_join,
)
from benchmarks.comparison import Comparison

CASES: Mapping[str, Callable[[Bench], Iterable[Comparison]]] = {
    "write": write.run,
    "write_join": write_join.run,
    "rebuild": rebuild.run,
    "append": append.run,
    "sample": sample.run,
    "ranges": ranges.run,
    "filtered_sample": filtered_sample.run,
    "full_scan": full_scan.run,
    "planning": planning.run,
    "growth": growth.run,
    "merge": merge.run,
    "error": error.run,
    "original": original.run,
}
