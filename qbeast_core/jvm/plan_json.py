"""The nodes and expressions of a Spark plan, read from its JSON without calls into the JVM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def classes_in(described: Any) -> Iterator[str]:
    """The JVM classes of the nodes and expressions in a plan's JSON, subqueries included."""
    return (node["class"] for node in nodes_in(described))


def nodes_in(value: Any) -> Iterator[Any]:
    """The nodes and expressions in a plan's JSON, subqueries included."""
    if isinstance(value, dict):
        if "class" in value:
            yield value
        for child in value.values():
            yield from nodes_in(child)
    elif isinstance(value, list):
        for child in value:
            yield from nodes_in(child)
