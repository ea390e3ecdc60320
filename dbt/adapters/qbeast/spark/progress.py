"""Lines that tell how far a long statement is, while it runs.

One thread looks after all nodes of the process. It sleeps while nothing runs, wakes when the oldest
statement is due for a line, and asks Spark for the tasks of that statement's job group then. Lines
are events of dbt, so they come between its own, go into its log file, and follow its flags.
"""

import contextvars
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dbt.adapters.events.logging import AdapterLogger
from pyspark import SparkContext

from qbeast_core import phases

logger = AdapterLogger("Qbeast")

# Of a statement that runs for long, a line comes for each such part of its time so far.
_LATER = 0.1


@dataclass(eq=False)
class Statement:
    """What a node is having done by Spark.

    Attributes:
        spark: the context that runs its jobs.
        job_group: the group of these jobs.
        name: what the user is told of.
        every_seconds: the time to the first line, and the least between any two.
    """

    spark: SparkContext
    job_group: str
    name: str
    every_seconds: float
    phase: str = ""
    started: float = field(default_factory=time.monotonic)
    # dbt knows by it which node a line belongs to.
    node: contextvars.Context = field(default_factory=contextvars.copy_context)
    next_line: float = field(init=False)

    def __post_init__(self) -> None:
        self.next_line = self.started + self.every_seconds

    def enter(self, phase: str) -> None:
        self.phase = phase

    def line(self) -> str:
        """How far it is."""
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
    """The tasks that are done and that there are, in the stages under way of the group's jobs."""
    tracker = spark.statusTracker()
    jobs = set(tracker.getActiveJobsIds()) & set(tracker.getJobIdsForGroup(job_group))
    infos = [tracker.getJobInfo(job) for job in jobs]
    stages = {stage for info in infos if info is not None for stage in info.stageIds}
    # A stage of a running job that never starts has been computed by an earlier one.
    started = [
        stage
        for stage in map(tracker.getStageInfo, stages)
        if stage is not None and (stage.numActiveTasks or stage.numCompletedTasks)
    ]
    return sum(s.numCompletedTasks for s in started), sum(s.numTasks for s in started)


def line(name: str, phase: str, done: int, known: int, seconds: float) -> str:
    """
    >>> line("model.shop.events", "writing files", 3, 8, 20.4)
    'model.shop.events: writing files, 3 of 8 tasks, 20 s'
    >>> line("model.shop.events", "", 0, 0, 100)
    'model.shop.events: running, 1 min 40 s'
    """
    parts = [phase or "running"]
    if known:
        parts.append(f"{done:,} of {known:,} tasks")
    minutes, rest = divmod(round(seconds), 60)
    parts.append(f"{minutes} min {rest} s" if minutes else f"{rest} s")
    return f"{name}: {', '.join(parts)}"


class _Watch:
    """The statements that run, and the thread that tells of them."""

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
                    told = statement.line()
                    if statement in self._statements:
                        statement.node.run(logger.info, told)
                except Exception as error:
                    # It may have ended or been cancelled since; nothing of this is its fault.
                    logger.debug(f"no progress of {statement.name} can be told: {error}")

    def _due(self) -> list[Statement]:
        """The statements that it is time to tell of; waits until there is one."""
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
