"""A cache for the most recently read states of tables, so that each is read once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class VersionCache(Generic[T]):
    """A small least-recently-used cache for immutable values; thread-safe."""

    def __init__(self, size: int = 8) -> None:
        self._size = size
        self._entries: OrderedDict[Hashable, T] = OrderedDict()
        self._guard = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of the key, made if it is missing. Two threads may both make it."""
        with self._guard:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
        value = make()
        self.put(key, value)
        return value

    def known(self, key: Hashable) -> T | None:
        """The value of the key, or None if it is missing."""
        with self._guard:
            return self._entries.get(key)

    def put(self, key: Hashable, value: T) -> None:
        """Store the value of a key."""
        with self._guard:
            self._entries[key] = value
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)
