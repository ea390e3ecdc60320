"""Named points in a write at which tests make something happen.

A test registers a callable with `at`. Without one, `reach` is one look into an empty dict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

BETWEEN_PASSES = "between_passes"
"""Statistics are taken; the rows are about to be read for writing."""
BEFORE_COMMIT = "before_commit"
"""All files are written; nothing is committed."""
BEFORE_REGISTRATION = "before_registration"
"""A new table is committed; the catalog does not know it yet."""

_actions: dict[str, Callable[[], object]] = {}


def reach(name: str) -> None:
    """Run what is registered for the point, if anything."""
    if action := _actions.get(name):
        action()


@contextmanager
def at(name: str, action: Callable[[], object]) -> Iterator[None]:
    """Run `action` whenever the point is reached inside the block."""
    _actions[name] = action
    try:
        yield
    finally:
        _actions.pop(name, None)
