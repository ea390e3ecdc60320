"""Things that happen in other threads while a write is under way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
PATIENCE_SECONDS = 300


class Meeting:
    """A fail point that threads pass together, each of them only once."""

    def __init__(self, threads: int) -> None:
        self._barrier = threading.Barrier(threads)
        self._own = threading.local()

    def __call__(self) -> None:
        if not getattr(self._own, "has_met", False):
            self._own.has_met = True
            self._barrier.wait(PATIENCE_SECONDS)


class Once:
    """A fail point at which something happens in another thread, the first time."""

    def __init__(self, action: Callable[[], object]) -> None:
        self._action = action
        self.happened = 0

    def __call__(self) -> None:
        if not self.happened:
            self.happened = 1
            in_other_thread(self._action)


def in_other_thread(action: Callable[[], T]) -> T:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(action).result(PATIENCE_SECONDS)


def run_in_parallel(*actions: Callable[[], T]) -> list[T]:
    """The results of the actions, each run in a thread of its own."""
    with ThreadPoolExecutor(len(actions)) as pool:
        running = [pool.submit(action) for action in actions]
        return [each.result(PATIENCE_SECONDS) for each in running]
