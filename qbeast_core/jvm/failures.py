"""Errors of Spark and of the JVM as errors of qbeast_core, each with its cause in one line.

`typed_errors` stands around every function of the public API, and nowhere else: inside, Delta's own
exceptions decide whether a commit is tried again.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import AnalysisException
from pyspark.errors.exceptions.captured import CapturedException

from qbeast_core.errors import (
    ConstraintViolated,
    ExecutionFailed,
    IncompatibleTable,
    InvalidOptions,
    NoSpace,
    QbeastError,
    StorageRefused,
    ValueDoesNotFit,
)

_P = ParamSpec("_P")
_R = TypeVar("_R")
_C = TypeVar("_C", bound=type)

# A cause, also where Spark only reports the text of a failed task's exception.
_CAUSE = re.compile(
    r"^(?:Caused by: |.*\(TID \d+\) \([^)]*\): )(?P<kind>[\w.$]+): "
    r"(?P<text>.*?)(?=\n\tat |\n\t\.\.\. |\nCaused by: |\n\n|\Z)",
    re.MULTILINE | re.DOTALL,
)
_CLASS_PREFIX = re.compile(r"^(?P<kind>(?:[a-z]\w*\.)+[A-Z][\w$]*): ")
_SQL_STATE = re.compile(r"\s*SQLSTATE: \w+")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]*)\]")
# PySpark looks up Delta's errors in a list of Spark's errors, and raises this if it finds none.
_NOT_CONVERTED = "Cannot find main error class"
# Messages that only say that something below them failed.
_WRAPPERS = (
    "Exception thrown in awaitResult",
    "Job aborted",
    "[FAILED_EXECUTE",
    "[FAILED_READ_FILE",
    "[TASK_WRITE_FAILED]",
)
_TRACEBACK = "Traceback (most recent call last):"
_MAX_TEXT_LENGTH = 500


def typed_errors(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A public function that raises errors of qbeast_core instead of those of the JVM.

    What Spark finds wrong in a user's SQL or names before it runs, `AnalysisException` and its
    `ParseException`, stays PySpark's own. Texts that cannot be sent to the JVM raise
    InvalidOptions.
    """

    @functools.wraps(function)
    def typed_function(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        _check_texts((args, kwargs))
        try:
            return function(*args, **kwargs)
        except Exception as error:
            failure = as_failure(error)
            if failure is None:
                raise
            raise failure from error

    typed_function.__dict__["raises_typed_errors"] = True
    return typed_function


def typed_errors_of_methods(cls: _C) -> _C:
    """`typed_errors` for all public methods and properties of a class."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, property) and member.fget is not None:
            setattr(cls, name, property(typed_errors(member.fget), doc=member.__doc__))
        elif isinstance(member, classmethod | staticmethod):
            setattr(cls, name, type(member)(typed_errors(member.__func__)))
        elif callable(member):
            setattr(cls, name, typed_errors(member))
    return cls


def _check_texts(value: object) -> None:
    """Raise InvalidOptions for a text in arguments that is not Unicode text.

    Otherwise it breaks the connection to the JVM, or a `?` is stored in its place.
    """
    match value:
        case str() if not value.isascii():
            try:
                value.encode("utf-8")
            except UnicodeEncodeError as problem:
                start = problem.start
                raise InvalidOptions(
                    f"the text {value[max(start - 20, 0) : start + 20]!a} has half of a surrogate "
                    f"pair ({value[start]!a}), which has no UTF-8 form; remove it or write the "
                    "whole character"
                ) from None
        case Mapping():
            _check_texts((*value, *value.values()))
        case list() | tuple():
            for each in value:
                _check_texts(each)


def as_failure(error: BaseException) -> QbeastError | None:
    """The error to raise instead of one of the JVM; None for an error to leave as it is."""
    if isinstance(error, Py4JNetworkError | ConnectionError):
        return ExecutionFailed(
            f"the JVM of Spark does not answer ({one_line(error)}); start a new session. If a "
            "change was running, check the table's history to see whether it was committed"
        )
    is_of_jvm = isinstance(error, Py4JError | CapturedException)
    if not is_of_jvm or isinstance(error, AnalysisException):
        return None
    found = _causes(error)
    for pattern in _PATTERNS:
        for cause in reversed(found):
            if pattern.describes(cause):
                return pattern.error(f"{cause.text}. {pattern.advice}")
    return ExecutionFailed(one_line(error))


def one_line(error: BaseException) -> str:
    """The first line of the deepest message that says more than that a job failed.

    >>> one_line(Exception("Job aborted\\nCaused by: java.lang.Error: [DIVIDE_BY_ZERO] by zero"))
    '[DIVIDE_BY_ZERO] by zero'
    """
    return _deepest(_causes(error)).line or type(error).__name__


def message_and_trace(error: BaseException) -> tuple[str, str]:
    """An exception's own message, and the JVM's stack trace behind it if there is one."""
    if isinstance(error, QbeastError) and error.__cause__ is not None:
        return str(error), "\n".join(message_and_trace(error.__cause__))
    raised = _as_raised(error)
    described = getattr(raised, "_desc", None)  # pyspark's captured exceptions
    if described:
        trace = str(getattr(raised, "_stackTrace", "") or described)
        below = getattr(raised, "_cause", None)
        while below is not None:
            trace += f"\nCaused by: {type(below).__name__}: {getattr(below, '_desc', below)}"
            below = getattr(below, "_cause", None)
        return str(described), trace
    if isinstance(raised, Py4JJavaError):  # where pyspark captured nothing
        try:
            return str(raised.java_exception.toString()), str(raised)
        except Exception:
            return str(raised.errmsg), str(raised.errmsg)  # the JVM is gone
    return str(raised), str(raised)


@dataclass(frozen=True)
class _Cause:
    """One exception of a chain."""

    kind: str
    """Its Java class, where it is known."""
    message: str

    @property
    def line(self) -> str:
        """The first line of the message."""
        lines = [line.strip() for line in _SQL_STATE.sub("", self.message).splitlines()]
        lines = list(filter(None, lines)) or [""]
        # A Python function's own error is the last line of its traceback.
        return lines[-1] if any(line.endswith(_TRACEBACK) for line in lines) else lines[0]

    @property
    def text(self) -> str:
        """The first line, with the values of the row that Delta writes below it."""
        values = re.findall(r"^ - (.+)$", self.message, re.MULTILINE)
        whole = " ".join([self.line.rstrip("."), ", ".join(values)]).strip()
        return whole if len(whole) <= _MAX_TEXT_LENGTH else whole[: _MAX_TEXT_LENGTH - 3] + "..."

    @property
    def conditions(self) -> frozenset[str]:
        """The names of Spark's error conditions at the start of the message."""
        found = _CONDITION.match(self.message)
        return frozenset([found[1], found[1].partition(".")[0]] if found else [])


@dataclass(frozen=True)
class _ErrorPattern:
    """How one class of error is recognized in a cause, and what helps."""

    error: type[QbeastError]
    advice: str
    conditions: frozenset[str] = frozenset()
    words: re.Pattern[str] | None = None

    def describes(self, cause: _Cause) -> bool:
        if not self.conditions.isdisjoint(cause.conditions):
            return True
        if self.words is None or cause.conditions:
            return False  # the message of a condition can contain values of rows
        return self.words.search(f"{cause.kind}: {cause.line}") is not None


_PATTERNS = (
    _ErrorPattern(
        ValueDoesNotFit,
        "Correct or filter the value in the query, or give the column a wider type",
        frozenset(
            (
                "ARITHMETIC_OVERFLOW",
                "BINARY_ARITHMETIC_OVERFLOW",
                "CAST_INVALID_INPUT",
                "CAST_OVERFLOW",
                "CAST_OVERFLOW_IN_TABLE_INSERT",
                "DATETIME_OVERFLOW",
                "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
                "DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
                "EXCEED_LIMIT_LENGTH",
                "NUMERIC_VALUE_OUT_OF_RANGE",
            )
        ),
    ),
    _ErrorPattern(
        ConstraintViolated,
        "Correct or filter such rows, or change the table's constraint with ALTER TABLE",
        frozenset(
            (
                "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
                "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
                "NOT_NULL_ASSERT_VIOLATION",
            )
        ),
    ),
    _ErrorPattern(
        IncompatibleTable,
        "Use a newer Delta Lake, or let the program that enabled the feature drop it",
        frozenset(
            (
                "DELTA_INVALID_PROTOCOL_VERSION",
                "DELTA_UNSUPPORTED_FEATURES_FOR_READ",
                "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
            )
        ),
    ),
    _ErrorPattern(
        NoSpace,
        "Free space on the disk or raise the quota, and repeat the operation. VACUUM removes files "
        "that failed writes left behind",
        words=re.compile(
            r"No space left on device|quota exceeded|QuotaExceededException|DiskOutOfSpace"
            r"|not enough space",
            re.IGNORECASE,
        ),
    ),
    _ErrorPattern(
        StorageRefused,
        "Check that the user who runs Spark may read and write the table's directory, and that "
        "storage is not read-only",
        words=re.compile(
            r"AccessDenied|AccessControlException|Permission denied|Read-only file system"
            r"|Operation not permitted|Mkdirs failed|ParentNotDirectoryException|Access Denied"
            r"|Status Code: 403|403 Forbidden|AuthorizationPermissionMismatch"
        ),
    ),
)
"""In the order in which they are looked for."""


def _causes(error: BaseException) -> list[_Cause]:
    """The exception and its causes, the deepest last."""
    text, trace = message_and_trace(error)
    named = _CLASS_PREFIX.match(text)
    own = _Cause(named["kind"], text[named.end() :]) if named else _Cause("", text)
    return [own, *(_Cause(each["kind"], each["text"]) for each in _CAUSE.finditer(trace))]


def _deepest(causes: list[_Cause]) -> _Cause:
    if not causes[0].message.startswith(_WRAPPERS):
        return causes[0]
    described = [cause for cause in causes if not cause.message.startswith(_WRAPPERS)]
    return described[-1] if described else causes[0]


def _as_raised(error: BaseException) -> BaseException:
    """The exception that PySpark failed to convert when it raised `error`, or `error` itself."""
    below: BaseException | None = error
    while below is not None and _NOT_CONVERTED in str(below):
        below = below.__context__
    return below or error
