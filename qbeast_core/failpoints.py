"""Named points in a write at which tests inject faults or concurrent commits.

A test registers a callable with `at`. Otherwise `reach` only looks up an empty dict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

BETWEEN_PASSES = "between_passes"
"""The rows are measured and are about to be read again for writing."""
FILES_WRITTEN = "files_written"
"""Spark has written the files of a write; they are about to be read back."""
BEFORE_COMMIT = "before_commit"
"""All files are written; nothing is committed yet."""
AFTER_COMMIT = "after_commit"
"""A commit is made. What follows it has not begun, such as the registration of a new table in the
catalog, or the next commit of an optimize."""

_actions: dict[str, Callable[[], object]] = {}


def reach(name: str) -> None:
    """Run the action registered for the point, if there is one."""
    if action := _actions.get(name):
        action()


@contextmanager
def at(name: str, action: Callable[[], object]) -> Iterator[None]:
    """Run `action` each time the point is reached inside the block."""
    _actions[name] = action
    try:
        yield
    finally:
        _actions.pop(name, None)
