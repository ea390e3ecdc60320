"""Measures fifty small appends, `optimize` twice, and the appends after that."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame

from benchmarks import layouts
from benchmarks.bench import Bench
from benchmarks.comparison import Comparison, Side
from benchmarks.measuring import in_turn, seconds_of
from qbeast_core import QbeastTable

APPENDS = 50
_FEW = 5
_PARTS = 1000
"""An append has a thousandth of the rows, so starting its jobs costs most."""
_LAST_PART = APPENDS + 1 + _FEW


def run(bench: Bench) -> Iterator[Comparison]:
    """Append the same rows to both sides in turn. Trips are in random order."""
    tables = _start(bench)
    tables.append(0)  # warm up
    before = layouts.stored(bench.spark, tables.ours)[0]
    pairs = [tables.append(part) for part in range(1, APPENDS + 1)]
    appended = layouts.stored(bench.spark, tables.ours)[0] - before
    mine, theirs = zip(*pairs, strict=True)
    first = Side("the first ones", mine[:_FEW])
    yield bench.compare(
        "50 appends of 0.1 % to trips", "s", Side("qbeast", mine), Side("plain Delta", theirs)
    )
    yield bench.compare("the last of 50 appends", "s", Side("the last ones", mine[-_FEW:]), first)

    rewritten = _removed_by(tables.ours, lambda: _optimize(bench, tables.ours))
    again = _removed_by(tables.ours, lambda: _optimize(bench, tables.ours))
    yield bench.compare(
        "optimize after 50 appends",
        "bytes",
        Side("rewritten", (float(sum(rewritten)),)),
        Side("appended", (float(appended),)),
    )
    yield bench.compare(
        "optimize again",
        "files",
        Side("rewritten then", (float(len(again)),)),
        Side("rewritten at first", (float(len(rewritten)),)),
    )
    tables.append(APPENDS + 1)  # warm up, as for the first ones
    later = tuple(tables.append(part)[0] for part in range(APPENDS + 2, _LAST_PART + 1))
    case = "an append after 50 and optimize"
    yield bench.compare(case, "s", Side("after", later), first)
    bench.remove(tables.plain, tables.ours)


@dataclass(frozen=True)
class _Tables:
    """The two growing tables."""

    plain: str
    ours: str
    columns: tuple[str, str]
    rows_of: Callable[[int], DataFrame]

    def append(self, part: int) -> tuple[float, float]:
        """Append one part to both tables. Returns the seconds of ours and of the plain one."""
        rows = self.rows_of(part)
        writes: dict[str, Callable[[], None]] = {
            "plain": lambda: layouts.write_plain(rows, self.plain, mode="append"),
            "ours": lambda: layouts.write_qbeast(rows, self.ours, self.columns),
        }
        seconds = {name: seconds_of(writes[name]) for name in in_turn(list(writes), part)}
        return seconds["ours"], seconds["plain"]


def _start(bench: Bench) -> _Tables:
    source = bench.trips
    rows = source.rows(bench.spark)
    part = f"pmod(xxhash64(trip_id), {_PARTS})"
    parts, plain, ours = bench.place(), bench.place(), bench.place()
    appended = rows.where(f"{part} <= {_LAST_PART}").selectExpr("*", f"{part} as part")
    appended.repartition(1).write.partitionBy("part").parquet(parts)
    base = rows.where(f"{part} > {_LAST_PART}")
    layouts.write_plain(base, plain)
    layouts.write_qbeast(base, ours, source.index)
    return _Tables(
        plain, ours, source.index, lambda i: bench.spark.read.parquet(f"{parts}/part={i}")
    )


def _optimize(bench: Bench, path: str) -> None:
    QbeastTable.for_path(bench.spark, path).optimize()


def _removed_by(path: str, change: Callable[[], None]) -> list[int]:
    """The sizes of the files that a change removed, read from the text of the log."""
    log = Path(path) / "_delta_log"
    known = set(log.glob("*.json"))
    change()
    actions = [
        json.loads(line)
        for commit in set(log.glob("*.json")) - known
        for line in commit.read_text().splitlines()
    ]
    return [action["remove"]["size"] for action in actions if "remove" in action]
