"""Report which phase a running operation is in, so that callers can show progress.

    with phases.listening(print):
        write_table(df, table="events", columns_to_index="ts")

Without a listener in the calling thread, `enter` only reads a variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

STORING = "checkpointing the query"
MEASURING = "measuring the indexed columns"
PLANNING = "planning the index"
WRITING = "writing files"
COMMITTING = "committing"
FINDING = "finding the rows to change"
CHECKING = "checking rows"

_listener: ContextVar[Callable[[str], object] | None] = ContextVar("listener", default=None)


def enter(phase: str) -> None:
    """Report that the operation in this thread enters a phase."""
    if (listener := _listener.get()) is not None:
        listener(phase)


@contextmanager
def listening(listener: Callable[[str], object]) -> Iterator[None]:
    """Call `listener` with each phase that operations in this thread enter inside the block.

    Args:
        listener: takes the phase, such as `"writing files"`.
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
