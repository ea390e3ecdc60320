"""Which JVM failures mean that another writer came first."""

from __future__ import annotations

from typing import Any

from delta.exceptions import DeltaConcurrentModificationException

_CONFLICTS = frozenset(
    "io.delta.exceptions." + name
    for name in (
        "ConcurrentWriteException",
        "MetadataChangedException",
        "ProtocolChangedException",
        "ConcurrentAppendException",
        "ConcurrentDeleteReadException",
        "ConcurrentDeleteDeleteException",
        "ConcurrentTransactionException",
    )
)


def is_commit_conflict(error: BaseException) -> bool:
    """True if Delta refused a commit because of a concurrent one.

    Delta's Python package turns some conflicts into classes of its own, which no longer know the
    JVM's exception.
    """
    return isinstance(error, DeltaConcurrentModificationException) or any(
        name in _CONFLICTS for name in java_class_names(error)
    )


def java_class_names(error: BaseException) -> list[str]:
    """The class names of the JVM exception behind `error` and of its causes, outermost first."""
    names: list[str] = []
    throwable: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while throwable is not None and len(names) < 20:
        names.append(str(throwable.getClass().getName()))
        throwable = throwable.getCause()
    return names
