"""Runs Python models in this process, on the node's own session."""

import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from dbt.adapters.qbeast.relation import QbeastRelation
from dbt_common.exceptions import DbtRuntimeError
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from qbeast_core import quoted

VIEW = "dbt_python_model"


def run_model(
    session: SparkSession,
    model: Mapping[str, Any],
    compiled_code: str,
    read: Callable[[str], DataFrame],
) -> str:
    """Runs a model's function and returns the query of its result.

    Args:
        session: the session that the model's code knows as `session` and `spark`.
        model: the `model` of dbt's context.
        compiled_code: the code as dbt compiled it, with the class of its `dbt` argument.
        read: called by `dbt.ref` and `dbt.source` with a table's name.

    Raises:
        DbtRuntimeError: the code failed, or did not return a DataFrame.
    """
    path = str(model["original_file_path"])
    with _module(str(model["unique_id"])) as module:
        names = module.__dict__
        names["spark"] = session
        try:
            # A Python model is a program of the project's author, who is trusted (SECURITY.md).
            exec(compile(compiled_code, path, "exec"), names)  # nosec B102 # noqa: S102
            argument = names["dbtObj"](read)
            result = names["model"](argument, session)
        except (DbtRuntimeError, KeyboardInterrupt):
            raise
        except BaseException as error:
            # SystemExit would end the thread of the node, for which dbt would then wait forever.
            raise _as_error(error, path) from error
        _as_view(session, data_frame(session, result, path))
    return f"select * from {quoted(VIEW)}"


def within_batch(
    read: Callable[[str], DataFrame], inputs: Iterable[QbeastRelation]
) -> Callable[[str], DataFrame]:
    """`read`, limited to the rows of a batch.

    Args:
        inputs: the refs and sources of the model with the filters of the batch.
    """
    conditions = {each.render(): each.event_time_condition for each in inputs}

    def filtered(table: str) -> DataFrame:
        condition = conditions.get(table)
        return read(table).where(condition) if condition else read(table)

    return filtered


def data_frame(session: SparkSession, result: Any, path: str) -> DataFrame:
    """A model's result as a Spark DataFrame; it may be one of Spark, pandas or pandas on Spark."""
    if isinstance(result, DataFrame):
        return result
    kind = type(result)
    if kind.__module__.startswith("pyspark.pandas") and hasattr(result, "to_spark"):
        frame: DataFrame = result.to_spark()
        return frame
    # The module of pandas' own is `pandas.core.frame`, and from pandas 3 on `pandas`.
    if kind.__module__.partition(".")[0] == "pandas" and kind.__name__ == "DataFrame":
        return session.createDataFrame(result)
    raise DbtRuntimeError(
        f"{path}: model() returned a {kind.__module__}.{kind.__qualname__}. Return a DataFrame of "
        "Spark, pandas or pandas on Spark"
    )


@contextmanager
def _module(unique_id: str) -> Iterator[ModuleType]:
    """A module for a model's code, importable by its name inside the block.

    `dataclasses` and others look up the module of a class by its name. A node's unique id has dots
    and no package, so no real module has that name. It is not "__main__", which would run the
    file's `if __name__` block.
    """
    module = ModuleType(unique_id)
    sys.modules[unique_id] = module
    # Spark's workers cannot import it, so its functions are sent to them as code.
    cloudpickle.register_pickle_by_value(module)
    try:
        yield module
    finally:
        cloudpickle.unregister_pickle_by_value(module)
        del sys.modules[unique_id]


def _as_view(session: SparkSession, frame: DataFrame) -> None:
    """Creates a view of the rows in the session; pandas on Spark uses the shared session."""
    if frame.sparkSession is session:
        frame.createOrReplaceTempView(VIEW)
        return
    shared = f"{VIEW}_{uuid.uuid4().hex}"
    frame.createGlobalTempView(shared)
    session.table(f"global_temp.{shared}").createOrReplaceTempView(VIEW)
    session.catalog.dropGlobalTempView(shared)


def _as_error(error: BaseException, path: str) -> DbtRuntimeError:
    """The error as dbt's, with the line of the compiled code that raised it."""
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    where = path if line is None else f"{path} (line {line} of the compiled code)"
    return DbtRuntimeError(f"{where}: {type(error).__name__}: {error}")
