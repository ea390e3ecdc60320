"""Spark's exceptions as dbt errors: the cause in one readable line, everything else in the log."""

import re

from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError
from pyspark.errors import PySparkException

from qbeast_core import QbeastError

_CAUSED_BY = re.compile(r"^Caused by: [\w.$]+: (.+)$", re.MULTILINE)
_CLASS_PREFIX = re.compile(r"^(?:[a-z]\w*\.)+[A-Z][\w$]*: ")
_SQL_STATE = re.compile(r"\s*SQLSTATE: \w+")
# PySpark looks up Delta's errors in a list of Spark's errors, and raises this if it finds none.
_NOT_CONVERTED = "Cannot find main error class"
# Messages that only say that something below them failed.
_WRAPPERS = ("Job aborted", "[FAILED_EXECUTE", "[TASK_WRITE_FAILED]", "[FAILED_READ_FILE")


def as_dbt_error(error: Exception) -> Exception:
    """A dbt error for an error of Spark, Delta or qbeast_core; any other error unchanged."""
    if isinstance(error, QbeastError):
        return DbtRuntimeError(str(error))
    if isinstance(error, PySparkException) or type(error).__module__.startswith("py4j."):
        return DbtDatabaseError(one_line(error))
    return error


def one_line(error: Exception) -> str:
    """The first line of the deepest message that says more than that a job failed.

    >>> one_line(Exception("Job aborted\\nCaused by: java.lang.Error: [DIVIDE_BY_ZERO] by zero"))
    '[DIVIDE_BY_ZERO] by zero'
    """
    text, trace = message_and_trace(error)
    text = _CLASS_PREFIX.sub("", text)
    if text.startswith(_WRAPPERS):
        causes = [cause for cause in _CAUSED_BY.findall(trace) if not cause.startswith(_WRAPPERS)]
        text = causes[-1] if causes else text
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return _SQL_STATE.sub("", first) or type(error).__name__


def message_and_trace(error: Exception) -> tuple[str, str]:
    """An exception's own message, and the JVM's stack trace behind it if there is one."""
    raised = _as_raised(error)
    described = getattr(raised, "_desc", None)  # pyspark's captured exceptions
    if described:
        trace = str(getattr(raised, "_stackTrace", "") or described)
        below = getattr(raised, "_cause", None)
        while below is not None:
            trace += f"\nCaused by: {type(below).__name__}: {getattr(below, '_desc', below)}"
            below = getattr(below, "_cause", None)
        return str(described), trace
    text = str(raised)
    java = getattr(raised, "java_exception", None)  # py4j's, where pyspark captured nothing
    if java is not None:
        return str(java.toString()), text
    return text, text


def _as_raised(error: BaseException) -> BaseException:
    """The exception that PySpark failed to convert when it raised `error`, or `error` itself."""
    below: BaseException | None = error
    while below is not None and _NOT_CONVERTED in str(below):
        below = below.__context__
    return below or error
