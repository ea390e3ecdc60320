"""The functions of a project that Spark's catalog can store."""

from collections.abc import Mapping
from typing import Any

from dbt_common.exceptions import DbtRuntimeError


def check_scalar_sql(model: Mapping[str, Any]) -> None:
    """Raises DbtRuntimeError unless a function is a scalar one and written in SQL.

    Args:
        model: the `model` of dbt's context.
    """
    kind, language = model["config"].get("type"), model["language"]
    if language != "sql":
        raise DbtRuntimeError(
            f"the function {model['name']} is written in {language}, but Spark's catalog stores "
            "only functions in SQL. Write it in SQL, or use it inside a Python model"
        )
    if kind != "scalar":
        raise DbtRuntimeError(
            f"the function {model['name']} has type: {kind}, but Spark's catalog stores only "
            "scalar functions in SQL. Use type: scalar, or write its query as a model or a macro"
        )
