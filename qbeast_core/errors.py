"""The exceptions that qbeast_core raises on purpose, one class for each cause.

Every message names the problem and the value, lists what is allowed, and says what to do next.
"""

from enum import Enum


class QbeastError(Exception):
    """Base class of every error that qbeast_core raises on purpose."""


class InvalidOptions(QbeastError, ValueError):
    """An option (columns, cube size, fraction, mode ...) has a value that is not allowed."""


class UnknownColumn(InvalidOptions):
    """A named column does not exist in the data or in the table."""


class AmbiguousMerge(QbeastError):
    """Several source rows of a merge would update the same row of the table."""


class ReplaceMismatch(InvalidOptions):
    """A new row does not satisfy the condition that selects the rows to replace."""


class UnknownSchema(InvalidOptions):
    """The schema (database) of a table does not exist."""


class UnsupportedColumnType(InvalidOptions):
    """A column's type cannot be indexed, or not with the requested kind of index."""


class NotAQbeastTable(QbeastError):
    """The table does not exist, is not stored as Delta, or has no Qbeast index."""


class IncompatibleTable(QbeastError):
    """The table has features or settings that an indexed write cannot maintain."""

    def __init__(self, message: str, remedy: "Remedy | None" = None) -> None:
        super().__init__(message)
        self.remedy = remedy
        """How to make the table ready for an index; None if unknown."""


class Remedy(Enum):
    """How to make an incompatible table ready for an index."""

    IN_PLACE = "run the statements in the message on the table"
    REWRITE = "rewrite all rows of the table"
    COPY = "copy the rows to another table"


class IndexMismatch(QbeastError):
    """The options of a write differ from the index that the table already has."""


class SourceChanged(QbeastError):
    """The query returned different rows when they were written than when they were measured."""


class SampleWarning(UserWarning):
    """Samples of a written table are less precise than their number of rows suggests, or have a
    different number of rows than their fraction suggests."""


class CommitConflict(QbeastError):
    """Other writers changed the table during every attempt; the change was not written.

    There is one attempt if the rows to write were read from a fixed version of the table.
    """


class CommitVetoed(QbeastError):
    """A commit hook refused the commit; its exception is the cause, and nothing was written."""


class CommitStateUnknown(QbeastError):
    """It is not known whether the commit was or will be written.

    Check before you repeat the operation.
    """


class ExecutionFailed(QbeastError):
    """Spark, Delta or storage failed while it ran the operation; `__cause__` has the full text."""


class NotRegistered(ExecutionFailed):
    """The rows of a new table are committed, but the catalog does not have it under its name."""


class ConstraintViolated(ExecutionFailed):
    """A row violates a CHECK or NOT NULL constraint of the table, or the rule of a column."""


class ValueDoesNotFit(ExecutionFailed):
    """A value is too large or too long for its type, or is not a value of that type."""


class NoSpace(ExecutionFailed):
    """A disk or a storage quota is full."""


class StorageRefused(ExecutionFailed):
    """Storage does not permit Spark to read or write there."""


class CorruptMetadata(QbeastError, ValueError):
    """The index metadata in the Delta log cannot be parsed."""


class UnsupportedEnvironment(QbeastError):
    """Java, Spark, Delta or the session's settings lack something that qbeast_core needs."""
