"""Python models, run in this process on the node's own session."""

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import DataFrame, SparkSession

from qbeast_core import quoted

VIEW = "dbt_python_model"


def run_model(
    session: SparkSession,
    model: Mapping[str, Any],
    compiled_code: str,
    read: Callable[[str], DataFrame],
) -> str:
    """Runs a model's function; the query of what it returned.

    Args:
        session: what `session` and `spark` are in the model's code.
        model: the `model` of dbt's context.
        compiled_code: the code as dbt compiled it, with the class of its `dbt` argument.
        read: what `dbt.ref` and `dbt.source` give for a table's name.

    Raises:
        DbtRuntimeError: the code raised something, or did not return a DataFrame.
    """
    path = str(model["original_file_path"])
    # "__main__", as where dbt sends models elsewhere, would run a `if __name__` block of the file.
    names: dict[str, Any] = {"spark": session, "__name__": str(model["name"])}
    try:
        exec(compile(compiled_code, path, "exec"), names)
        argument = names["dbtObj"](read)
        result = names["model"](argument, session)
    except DbtRuntimeError:
        raise
    except Exception as error:
        raise _as_error(error, path) from error
    _as_view(session, data_frame(session, result, path))
    return f"select * from {quoted(VIEW)}"


def data_frame(session: SparkSession, result: Any, path: str) -> DataFrame:
    """What a model returned as Spark's DataFrame: one of Spark, pandas or pandas on Spark."""
    if isinstance(result, DataFrame):
        return result
    kind = type(result)
    if kind.__module__.startswith("pyspark.pandas") and hasattr(result, "to_spark"):
        frame: DataFrame = result.to_spark()
        return frame
    if kind.__module__.startswith("pandas.") and kind.__name__ == "DataFrame":
        return session.createDataFrame(result)
    raise DbtRuntimeError(
        f"{path}: model() returned a {kind.__module__}.{kind.__qualname__}; it is to return a "
        "DataFrame of Spark, of pandas or of pandas on Spark"
    )


def _as_view(session: SparkSession, frame: DataFrame) -> None:
    """Gives the session a view of the rows; pandas on Spark has them in the process's session."""
    session.catalog.dropTempView(VIEW)
    frame.createOrReplaceTempView(VIEW)
    if session.catalog.tableExists(VIEW):
        return
    shared = f"{VIEW}_{uuid.uuid4().hex}"
    frame.createGlobalTempView(shared)
    session.table(f"global_temp.{shared}").createOrReplaceTempView(VIEW)
    session.catalog.dropGlobalTempView(shared)


def _as_error(error: Exception, path: str) -> DbtRuntimeError:
    """The error with the line of the model's own file that raised it."""
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    where = path if line is None else f"{path} (line {line} of the compiled code)"
    return DbtRuntimeError(f"{where}: {type(error).__name__}: {error}")
