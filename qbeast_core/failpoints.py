"""Named points in a write at which tests inject faults or concurrent commits.

A test registers a callable with `at`. Otherwise `reach` only looks up an empty dict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

BETWEEN_PASSES = "between_passes"
"""The rows are measured and are about to be read again for writing."""
BEFORE_COMMIT = "before_commit"
"""All files are written; nothing is committed yet."""
BEFORE_REGISTRATION = "before_registration"
"""A new table is committed but not registered in the catalog yet."""

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
