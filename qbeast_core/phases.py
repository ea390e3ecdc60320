"""What an operation is doing, told to whoever shows it to a user while it runs.

    with phases.listening(print):
        write_table(df, table="events", columns_to_index="ts")

Without a listener in the calling thread, `enter` is one look at a variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

STORING = "storing the rows of the query"
MEASURING = "measuring the indexed columns"
PLANNING = "planning the index"
WRITING = "writing files"
COMMITTING = "committing"
FINDING = "looking for the rows to change"
CHECKING = "checking the rows of the files"

_listener: ContextVar[Callable[[str], object] | None] = ContextVar("listener", default=None)


def enter(phase: str) -> None:
    """Say that the operation of this thread is now doing this."""
    if (listener := _listener.get()) is not None:
        listener(phase)


@contextmanager
def listening(listener: Callable[[str], object]) -> Iterator[None]:
    """Have each phase that operations in this thread enter inside the block told to `listener`."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
