"""What dbt costs apart from writing: `dbt build` of examples/tpch, with dbt-qbeast and dbt-spark.

    python -m benchmarks.dbt_overhead [--scale 0.1] [--runs 5]

This process builds the projects in turn, on one Spark session and with one thread each, so that it
can subtract the time spent in writes. dbt-spark uses its session method and builds the same project
without the features of dbt-qbeast: its models are Delta `table`s, without `optimize` as a post-hook
and without sampled tests. dbt-qbeast builds the example twice: unchanged, and without hook and
samples, which is the same work as dbt-spark's.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from dbt.adapters.qbeast.models import write as writing
from dbt.adapters.spark.session import Cursor
from dbt.cli.main import dbtRunner
from rich.console import Console

from benchmarks.comparison import Comparison, Side, table_of
from benchmarks.data import tpch
from benchmarks.measuring import seconds_of
from benchmarks.session import spark_session

EXAMPLE = Path(__file__).parents[1] / "examples/tpch"
LIMIT = 1.1
"""The largest ratio of the time outside writes that meets the target."""
WARMUPS = 4
QBEAST = {"type": "qbeast"}
SPARK = {"type": "spark", "method": "session", "host": "NA"}
BARE = {"+materialized": "qbeast"}
TABLES = {"+materialized": "table", "+file_format": "delta"}
FIGURES: tuple[tuple[str, Callable[[float, float], float], float | None], ...] = (
    ("outside of writing", lambda total, writing: total - writing, LIMIT),
    ("writing", lambda _, writing: writing, None),
    ("all of dbt build", lambda total, _: total, None),
)


@dataclass
class Clock:
    """The seconds spent in calls that write a model's rows."""

    seconds: float = 0.0

    def around(self, call: Callable[..., Any], is_write: Callable[..., bool]) -> Callable[..., Any]:
        """The function, wrapped to count its time when its arguments say that it writes."""

        def timed(*given: Any, **named: Any) -> Any:
            started = time.perf_counter()
            try:
                return call(*given, **named)
            finally:
                if is_write(*given, **named):
                    self.seconds += time.perf_counter() - started

        return timed


@dataclass(frozen=True)
class Builds:
    """The builds of one side: for each, the total seconds and those spent in writes."""

    name: str
    directory: Path
    data: Path
    counted: list[tuple[float, float]] = field(default_factory=list)

    def run(self, clock: Clock, *, counts: bool) -> None:
        """Run one `dbt build`."""
        before = clock.seconds
        elapsed = seconds_of(self._build)
        if counts:
            self.counted.append((elapsed, clock.seconds - before))

    def side(self, of: Callable[[float, float], float]) -> Side:
        """A figure per build, computed from its total seconds and those spent in writes."""
        return Side(self.name, tuple(of(total, writing) for total, writing in self.counted))

    def _build(self) -> None:
        directory = str(self.directory)
        result = dbtRunner().invoke(
            [
                *("build", "--quiet", "--threads", "1"),
                *("--project-dir", directory, "--profiles-dir", directory),
                *("--vars", f"{{data: '{self.data}'}}"),
            ]
        )
        if not result.success:
            raise SystemExit(f"{self.name}: dbt build failed: {result.exception or result.result}")


def main() -> None:
    """Build the projects in turn, and print a table and a JSON line per figure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dbt_overhead", description=__doc__)
    parser.add_argument(
        "--scale", type=float, default=0.1, help="scale factor of TPC-H; 0.1 by default"
    )
    parser.add_argument("--runs", type=int, default=5, help="measured builds of each project")
    arguments = parser.parse_args()
    data = {Path(tpch(table, arguments.scale)).parent for table in ("lineitem", "orders")}.pop()
    clock = Clock()
    # The calls in which each adapter writes the rows of a model and waits for them.
    writing.write_model = clock.around(writing.write_model, lambda *_, **__: True)
    Cursor.execute = clock.around(Cursor.execute, _creates_a_table)  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as root, spark_session():
        ours = Builds("dbt-qbeast", _project(Path(root), "qbeast", QBEAST), data)
        bare = Builds("without hook and samples", _project(Path(root), "bare", QBEAST, BARE), data)
        other = Builds("dbt-spark", _project(Path(root), "spark", SPARK, TABLES), data)
        for number in range(WARMUPS + arguments.runs):
            for side in (ours, bare, other):
                side.run(clock, counts=number >= WARMUPS)
    comparisons = [
        Comparison(case, "s", side.side(of), other.side(of), limit=limit, group="dbt_overhead")
        for case, of, limit in FIGURES
        for side in (ours, bare)
    ]
    title = f"dbt build of examples/tpch, warm, scale {arguments.scale:g}"
    Console(width=max(120, Console().width)).print(table_of(title, comparisons))
    for comparison in comparisons:
        print(json.dumps(comparison.line()), flush=True)


def _project(
    root: Path, name: str, target: Mapping[str, str], models: Mapping[str, str] | None = None
) -> Path:
    """Copy the example with a separate schema; `models` replaces its model configuration."""
    directory = root / name
    shutil.copytree(EXAMPLE / "models", directory / "models")
    settings = yaml.safe_load((EXAMPLE / "dbt_project.yml").read_text())
    if models is not None:
        settings["models"]["tpch"] = dict(models)
        del settings["data_tests"]
    output = {**target, "schema": f"tpch_{name}", "threads": 1}
    profiles = {"tpch": {"target": "dev", "outputs": {"dev": output}}}
    for file, content in (("dbt_project.yml", settings), ("profiles.yml", profiles)):
        (directory / file).write_text(yaml.safe_dump(content))
    if models is not None:
        _without_samples(directory / "models" / "models.yml")
    return directory


def _without_samples(schema: Path) -> None:
    """Make tests that configure a sample read all rows."""
    content = yaml.safe_load(schema.read_text())
    for column in [column for model in content["models"] for column in model["columns"]]:
        for position, test in enumerate(column["data_tests"]):
            if isinstance(test, dict):
                ((name, options),) = test.items()
                options.pop("config", None)
                column["data_tests"][position] = test if options else name
    schema.write_text(yaml.safe_dump(content))


def _creates_a_table(cursor: Cursor, sql: str, *_: Any) -> bool:
    return "create or replace table" in sql


if __name__ == "__main__":
    main()
