"""The node that a thread compiles or runs, because dbt does not pass it to `ref` and `source`."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_node: ContextVar[Any] = ContextVar("node", default=None)


def current_node() -> Any:
    """dbt's node; None between nodes, and in threads without one."""
    return _node.get()


@contextmanager
def at_node(node: Any) -> Iterator[None]:
    """Makes `node` the current one inside; None for work that belongs to no node."""
    token = _node.set(node)
    try:
        yield
    finally:
        _node.reset(token)
