"""Let several processes change and read one table at the same time, and judge what came of it.

Writers mix all operations of qbeast_core, a plain Delta writer interferes, and a reader samples and
filters. At the end, every version must be what the processes report. A seed decides what each
process does; in which order they commit is up to the machine.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from multiprocessing.synchronize import Barrier
from pathlib import Path

from scripts.processes import SPAWN, in_processes

ROOT = Path(__file__).parents[1]
SEEDS = ROOT / "tests" / "stress" / "seeds.txt"
PATIENCE_SECONDS = 600
SESSION = {"spark.master": "local[1]", "spark.driver.memory": "1g"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="repeats a run")
    parser.add_argument(
        "--stored", action="store_true", help=f"run each seed of {SEEDS.relative_to(ROOT)}"
    )
    options = parser.parse_args()
    seeds = list(stored_seeds()) if options.stored else [options.seed]
    return max([stress(options.minutes * 60, options.writers, seed) for seed in seeds], default=0)


def stored_seeds() -> Iterator[int]:
    for line in SEEDS.read_text().splitlines():
        if line and not line.startswith("#"):
            yield int(line.split()[0])


def stress(seconds: float, writers: int, seed: int) -> int:
    """Run all processes, judge, and print the counts. Returns 1 for a fault, else 0."""
    print(f"{writers} writers for {seconds / 60:g} minutes, --seed {seed}", flush=True)
    directory = Path(tempfile.mkdtemp(prefix="stress-"))
    roles = ["Writer"] * writers + ["PlainWriter", "Reader"]
    done, conflicts, faults = _run(directory, roles, seconds, seed)
    for name, times in sorted(done.items()):
        print(f"{times:7,}  {name}")
    print(
        f"{done.total():7,}  operations in all, {conflicts:,} given up after conflicts", flush=True
    )
    if not faults:
        faults += not _is_as_reported(directory, len(roles))
    if faults:
        print(f"{faults} faults; the table and the reports are in {directory}")
        return 1
    shutil.rmtree(directory)
    return 0


def _run(
    directory: Path, roles: list[str], seconds: float, seed: int
) -> tuple[Counter[str], int, int]:
    """Count the operations, the conflicts, and the processes that found a fault."""
    barrier = SPAWN.Barrier(len(roles))
    arguments = [
        (barrier, directory, role, number, seconds, seed) for number, role in enumerate(roles)
    ]
    done: Counter[str] = Counter()
    conflicts = faults = 0
    for result in in_processes(_work, arguments):
        counted, given_up, found = result or (Counter(), 0, True)
        done += counted
        conflicts += given_up
        faults += found
    return done, conflicts, faults


def _work(
    barrier: Barrier,
    directory: Path,
    role: str,
    number: int,
    seconds: float,
    seed: int,
) -> tuple[Counter[str], int, bool]:
    from tests.fuzz.machine import QUICK
    from tests.stress import processes
    from tests.stress.history import Journal
    from tests.support import spark_session

    spark = spark_session.start(directory / f"warehouse-{number}", **QUICK, **SESSION)
    journal = Journal(directory / f"journal-{number}.jsonl")
    process = getattr(processes, role)(spark, str(directory / "table"), number, seed, journal)
    found = False
    try:
        if number == 0:
            journal.add(process.overwrite())
        barrier.wait(PATIENCE_SECONDS)
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            process.step()
    except Exception:
        found = True
        barrier.abort()
        print(f"{role} {number}:\n{traceback.format_exc()}", flush=True)
    finally:
        spark.stop()
    return process.done, process.conflicts, found


def _is_as_reported(directory: Path, processes: int) -> bool:
    from tests.fuzz.machine import QUICK
    from tests.stress.history import Journal
    from tests.stress.verdict import judge
    from tests.support import spark_session

    journals = [Journal(directory / f"journal-{number}.jsonl") for number in range(processes)]
    reports = [report for journal in journals for report in journal.reports()]
    spark = spark_session.start(directory / "warehouse", **QUICK, **SESSION)
    try:
        verdict = judge(spark, str(directory / "table"), reports)
    except Exception:
        print(traceback.format_exc(), flush=True)
        return False
    finally:
        spark.stop()
    print(
        f"{verdict.versions:7,}  versions as reported, {verdict.rows:,} rows and "
        f"{verdict.reads:,} reads compared"
    )
    return True


if __name__ == "__main__":
    sys.exit(main())
