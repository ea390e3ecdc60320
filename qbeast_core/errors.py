"""The failures that a user can act on, one class for each.

Every message says what was wrong, with the value, what is allowed, and what to do next.
"""

from enum import Enum


class QbeastError(Exception):
    """Base class of every error that qbeast_core raises on purpose."""


class InvalidOptions(QbeastError, ValueError):
    """An option (columns, cube size, fraction, mode ...) has a value that is not allowed."""


class UnknownColumn(InvalidOptions):
    """A column to index does not exist in the data or the table."""


class AmbiguousMerge(QbeastError):
    """Several source rows of a merge would update the same row of the table."""


class ReplaceMismatch(InvalidOptions):
    """New rows do not satisfy the condition of the rows that they are to replace."""


class UnknownSchema(InvalidOptions):
    """The schema (database) of a table does not exist."""


class UnsupportedColumnType(InvalidOptions):
    """A column's type cannot be indexed."""


class NotAQbeastTable(QbeastError):
    """The table is missing, is not Delta, or has no Qbeast index."""


class IncompatibleTable(QbeastError):
    """The table has features or settings that a write would not keep right."""

    def __init__(self, message: str, remedy: "Remedy | None" = None) -> None:
        super().__init__(message)
        self.remedy = remedy
        """What makes the table one that can be written to, where that is known."""


class Remedy(Enum):
    """What lets an incompatible table have an index."""

    IN_PLACE = "change the table by the statements in the message"
    REWRITE = "write all its rows anew"
    COPY = "copy its rows to another table"


class IndexMismatch(QbeastError):
    """The options asked for differ from the index that the table already has."""


class SourceChanged(QbeastError):
    """The model query gave other rows while writing than while its statistics were taken."""


class SampleWarning(UserWarning):
    """Samples of a table that was written will be less certain than one would think."""


class CommitConflict(QbeastError):
    """Other writers changed the table on every attempt; the change was not written."""


class CommitStateUnknown(QbeastError):
    """The commit may have been written, or may still be; look before you repeat the operation."""


class CorruptMetadata(QbeastError, ValueError):
    """The index metadata in the Delta log cannot be understood."""


class UnsupportedEnvironment(QbeastError):
    """Java, Spark, Delta or the session's set-up is missing something that is needed."""
