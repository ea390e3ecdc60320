"""Recognize commits that failed because another writer committed first."""

from __future__ import annotations

from typing import Any

_CONFLICTS = frozenset(
    (
        "ConcurrentWriteException",
        "MetadataChangedException",
        "ProtocolChangedException",
        "ConcurrentAppendException",
        "ConcurrentDeleteReadException",
        "ConcurrentDeleteDeleteException",
        "ConcurrentTransactionException",
    )
)
_JVM_PACKAGE = "io.delta.exceptions."
_PYTHON_PACKAGE = "delta.exceptions"


def is_commit_conflict(error: BaseException) -> bool:
    """Whether Delta refused a commit because of a concurrent one.

    If Delta's Python package was imported, it converts these exceptions to its own classes, which
    have no common base class and no reference to the JVM's exception.
    """
    kind = type(error)
    if kind.__module__.startswith(_PYTHON_PACKAGE):
        return kind.__name__ in _CONFLICTS
    return any(
        name.startswith(_JVM_PACKAGE) and name.removeprefix(_JVM_PACKAGE) in _CONFLICTS
        for name in java_class_names(error)
    )


def java_class_names(error: BaseException) -> list[str]:
    """The class names of the JVM exception behind `error` and of its causes, outermost first."""
    names: list[str] = []
    throwable: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while throwable is not None and len(names) < 20:
        names.append(str(throwable.getClass().getName()))
        throwable = throwable.getCause()
    return names
