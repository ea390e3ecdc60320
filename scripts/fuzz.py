"""Run the state machine of tests/fuzz for some minutes, in several processes with one session each.

Prints the number of steps for each kind of operation. Exits with an error if a process found a
fault, or if there were too few steps for a meaningful run.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from scripts.processes import in_processes

FEWEST_STEPS = 1000
CHANGES_AND_LOOKS_PER_TABLE = 40
"""After each change, a look reads the table in several ways."""
# From ten on, Hypothesis spends many of them on trivial tables.
TABLES_PER_SEED = 9


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="repeats a run")
    options = parser.parse_args()
    print(f"fuzzing for {options.minutes:g} minutes, --seed {options.seed}", flush=True)
    performed, faults = fuzz(options.minutes * 60, options.processes, options.seed)
    for name, times in sorted(performed.items()):
        print(f"{times:7,}  {name}")
    steps = performed.total()
    print(f"{steps:7,}  steps in all, {faults} faults")
    if steps < FEWEST_STEPS:
        print(f"too short: a run needs at least {FEWEST_STEPS:,} steps; raise --minutes")
    return int(faults > 0 or steps < FEWEST_STEPS)


def fuzz(seconds: float, processes: int, seed: int) -> tuple[Counter[str], int]:
    """Count the runs of each operation, and the processes that found a fault."""
    # Each process counts up from its seed, so the seeds must be far apart.
    seeds = [seed + number * 1_000_000 for number in range(processes)]
    performed: Counter[str] = Counter()
    faults = 0
    for result in in_processes(_work, [(seconds, each) for each in seeds]):
        counted, found = result or (Counter(), True)
        performed += counted
        faults += found
    return performed, faults


def _work(seconds: float, seed: int) -> tuple[Counter[str], bool]:
    import hypothesis
    from hypothesis.stateful import run_state_machine_as_test

    from tests.fuzz.machine import QUICK, TableMachine, TimeIsUp
    from tests.support import spark_session

    directory = Path(tempfile.mkdtemp(prefix="fuzz-"))
    settings = hypothesis.settings(
        max_examples=TABLES_PER_SEED,
        stateful_step_count=CHANGES_AND_LOOKS_PER_TABLE,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    spark = spark_session.start(directory / "warehouse", **QUICK, **{"spark.master": "local[1]"})
    TableMachine.spark, TableMachine.directory = spark, directory
    TableMachine.ends = time.monotonic() + seconds
    found = False
    try:
        while True:
            run_state_machine_as_test(hypothesis.seed(seed)(TableMachine), settings=settings)
            seed += 1
    except TimeIsUp:
        pass
    except Exception:
        found = True
        print(f"found with seed {seed}:\n{traceback.format_exc()}", flush=True)
    finally:
        spark.stop()
        shutil.rmtree(directory, ignore_errors=True)
    return TableMachine.performed, found


if __name__ == "__main__":
    sys.exit(main())
