"""A pool of reusable threads.

Each keeps its JVM connection, so py4j need not look up every method again.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from pyspark import inheritable_thread_target
from pyspark.sql import SparkSession

from qbeast_core.jvm.gateway import activate

_P = ParamSpec("_P")
_R = TypeVar("_R")

_MAX_THREADS = 64
_threads = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="qbeast")


def in_background(
    spark: SparkSession, function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs
) -> Future[_R]:
    """Call a function in another thread, with the session and the job properties of this one.

    Functions start in the order of these calls. One may therefore wait for an earlier one. While
    the interpreter ends, there are no new threads, and this one calls the function.
    """

    def in_session() -> _R:
        activate(spark)
        try:
            return function(*args, **kwargs)
        finally:
            # Job properties are replaced by the next call, but tags accumulate.
            spark.clearTags()

    try:
        return _threads.submit(inheritable_thread_target(spark)(in_session))
    except RuntimeError:
        # The main thread has ended, and this one is a user's thread that still works.
        done: Future[_R] = Future()
        try:
            done.set_result(function(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done
