"""Spark's and the core's exceptions as dbt errors, each in one readable line."""

from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError
from pyspark.errors import PySparkException

from qbeast_core import ExecutionFailed, QbeastError, one_line


def as_dbt_error(error: Exception) -> Exception:
    """A dbt error for an error of Spark, Delta or qbeast_core; any other error unchanged."""
    if isinstance(error, ExecutionFailed):
        return DbtDatabaseError(str(error))
    if isinstance(error, QbeastError):
        return DbtRuntimeError(str(error))
    if isinstance(error, PySparkException) or type(error).__module__.startswith("py4j."):
        return DbtDatabaseError(one_line(error))
    return error
