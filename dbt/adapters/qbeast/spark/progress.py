"""Progress lines for long-running statements.

One thread serves all nodes of the process. It sleeps while nothing runs, wakes when a statement is
due for a line, and then asks Spark for the tasks of that statement's job group. The lines are dbt
events, so they appear among dbt's own, go to its log file and obey its flags.
"""

import contextvars
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dbt.adapters.events.logging import AdapterLogger
from pyspark import SparkContext

from qbeast_core import phases

logger = AdapterLogger("Qbeast")

# What dbt calls the connections that read the catalog: `list_<database>_<schema>` and so on. Spark
# has no databases, so dbt says None.
_OF_A_SCHEMA = re.compile("(list|create)_None_(?P<schema>.+)")
_WORK = {"list": "list the tables of", "create": "create the schema"}

# A long-running statement waits for this part of its running time so far before the next line.
_LATER = 0.1


@dataclass(eq=False)
class Statement:
    """A statement that Spark runs for a node."""

    spark: SparkContext
    """The context that runs its jobs."""
    job_group: str
    """The group of these jobs."""
    name: str
    """The name that its lines begin with."""
    every_seconds: float
    """Seconds before the first line, and at least between any two lines."""
    phase: str = ""
    started: float = field(default_factory=time.monotonic)
    # So that dbt assigns the line to its node.
    node: contextvars.Context = field(default_factory=contextvars.copy_context)
    next_line: float = field(init=False)

    def __post_init__(self) -> None:
        self.next_line = self.started + self.every_seconds

    def enter(self, phase: str) -> None:
        self.phase = phase

    def line(self) -> str:
        """The progress line for this moment."""
        done, known = running_tasks(self.spark, self.job_group)
        return line(self.name, self.phase, done, known, time.monotonic() - self.started)


@contextmanager
def reported(statement: Statement) -> Iterator[None]:
    """Reports the progress of the statement while the block runs."""
    _watch.add(statement)
    try:
        with phases.listening(statement.enter):
            yield
    finally:
        _watch.remove(statement)


def running_tasks(spark: SparkContext, job_group: str) -> tuple[int, int]:
    """The numbers of completed and of all tasks in the group's running stages."""
    tracker = spark.statusTracker()
    jobs = set(tracker.getActiveJobsIds()) & set(tracker.getJobIdsForGroup(job_group))
    infos = [tracker.getJobInfo(job) for job in jobs]
    stages = {stage for info in infos if info is not None for stage in info.stageIds}
    # Spark skips a stage that an earlier job has computed: it never starts.
    started = [
        stage
        for stage in map(tracker.getStageInfo, stages)
        if stage is not None and (stage.numActiveTasks or stage.numCompletedTasks)
    ]
    return sum(s.numCompletedTasks for s in started), sum(s.numTasks for s in started)


def line(name: str, phase: str, done: int, known: int, seconds: float) -> str:
    """The text of a progress line.

    >>> line("model.shop.events", "writing files", 3, 8, 20.4)
    'model.shop.events: writing files, 3 of 8 tasks, 20 s'
    >>> line("model.shop.events", "", 0, 0, 100)
    'model.shop.events: running, 1 min 40 s'
    >>> line("list_None_shop", "", 0, 0, 10)
    'list the tables of shop: running, 10 s'
    """
    if found := _OF_A_SCHEMA.fullmatch(name):
        name = f"{_WORK[found[1]]} {found['schema']}"
    parts = [phase or "running"]
    if known:
        parts.append(f"{done:,} of {known:,} tasks")
    minutes, rest = divmod(round(seconds), 60)
    parts.append(f"{minutes} min {rest} s" if minutes else f"{rest} s")
    return f"{name}: {', '.join(parts)}"


class _Watch:
    """The running statements, and the thread that reports their progress."""

    def __init__(self) -> None:
        self._statements: set[Statement] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def add(self, statement: Statement) -> None:
        with self._changed:
            self._statements.add(statement)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
                self._thread.start()
            self._changed.notify()

    def remove(self, statement: Statement) -> None:
        with self._changed:
            self._statements.discard(statement)

    def _run(self) -> None:
        while True:
            for statement in self._due():
                try:
                    line = statement.line()
                    if statement in self._statements:
                        statement.node.run(logger.info, line)
                except Exception as error:
                    # The statement may have ended or been cancelled; reporting must not fail it.
                    logger.debug(f"Could not report the progress of {statement.name}: {error}")

    def _due(self) -> list[Statement]:
        """The statements that are due for a line; waits until there is one."""
        with self._changed:
            while True:
                now = time.monotonic()
                due = [s for s in self._statements if s.next_line <= now]
                for statement in due:
                    pause = max(statement.every_seconds, _LATER * (now - statement.started))
                    statement.next_line = now + pause
                if due:
                    return due
                waits = [s.next_line - now for s in self._statements]
                self._changed.wait(min(waits, default=None))


_watch = _Watch()
