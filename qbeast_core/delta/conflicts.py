"""What a failed commit says: another writer came first, storage refused it, or neither."""

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
_REFUSALS = frozenset(
    (
        "java.nio.file.AccessDeniedException",
        "org.apache.hadoop.security.AccessControlException",
    )
)
_JVM_PACKAGE = "io.delta.exceptions."
_PYTHON_PACKAGE = "delta.exceptions"


def is_commit_conflict(error: BaseException) -> bool:
    """True if Delta refused a commit because of a concurrent one.

    Delta's Python package, where something imported it, turns them into classes of its own, which
    have no common base and do not know the JVM's exception.
    """
    kind = type(error)
    if kind.__module__.startswith(_PYTHON_PACKAGE):
        return kind.__name__ in _CONFLICTS
    return any(
        name.startswith(_JVM_PACKAGE) and name.removeprefix(_JVM_PACKAGE) in _CONFLICTS
        for name in java_class_names(error)
    )


def is_refused_by_storage(error: BaseException) -> bool:
    """True if storage answered that the commit may not be written.

    Most other failures of storage, such as a timeout, leave open what becomes of it.
    """
    return not _REFUSALS.isdisjoint(java_class_names(error))


def reason_of(error: BaseException) -> str:
    """The exception in one line: for one of the JVM, its own class and message."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    # The first line of py4j's says only what was called.
    if getattr(error, "java_exception", None) is not None and len(lines) > 1:
        return lines[1].removeprefix(": ")
    return lines[0]


def java_class_names(error: BaseException) -> list[str]:
    """The class names of the JVM exception behind `error` and of its causes, outermost first."""
    names: list[str] = []
    throwable: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while throwable is not None and len(names) < 20:
        names.append(str(throwable.getClass().getName()))
        throwable = throwable.getCause()
    return names
