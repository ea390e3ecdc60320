"""Advice for a table that is not stored as its model's configuration says.

It puts first what keeps all rows, and says so where rows would be lost.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dbt.adapters.qbeast.models.configuration import CONVERSION_OPTIONS, ModelSpec
from dbt.adapters.qbeast.relation import plain_name
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import SparkSession

from qbeast_core import (
    IncompatibleTable,
    IndexMismatch,
    NotAQbeastTable,
    QbeastError,
    Remedy,
    check_convertible,
)

IN_PYTHON = (
    "in a Python session on this project's catalog, after `from qbeast_core import write_table`"
)
"""Where to make the call that rewrites or copies a table."""

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?")
_NOT_A_TEXT = ("true", "false", "yes", "no", "on", "off", "null", "y", "n")


@contextmanager
def advising(session: SparkSession, table: str, spec: ModelSpec) -> Iterator[None]:
    """Adds advice to errors: how to give the table the model's index.

    It starts with the way that keeps all rows.
    """
    try:
        yield
    except NotAQbeastTable as error:
        raise DbtRuntimeError(f"{no_index_message(session, table, spec, 'model')}.") from error
    except IndexMismatch as error:
        raise DbtRuntimeError(
            f"{error}. Or rewrite the table with all its rows, {IN_PYTHON}: "
            f"{rewrite_call(table, spec)}. {full_refresh(spec.selector)}."
        ) from error


def full_refresh(model: str) -> str:
    """The command that rebuilds a table, and what it loses.

    Args:
        model: what selects the model (`configuration.selector_of`).
    """
    return (
        f"`dbt run --full-refresh -s {model}` rebuilds the table from the model's query; rows that "
        "the query no longer returns are lost"
    )


def rewrite_call(table: str, spec: ModelSpec) -> str:
    """The Python call that rewrites all rows of a Delta table with the index its model asks for.

    Args:
        table: the quoted name of the table.
    """
    return _write_call(table, _plain(table), "overwrite", spec)


def no_index_message(session: SparkSession, table: str, spec: ModelSpec, kind: str) -> str:
    """The message for a table that has no index, or no files, although its node asks for one.

    Args:
        table: the quoted name of the table.
        kind: "model" or "snapshot".
    """
    problem = _hindrance(session, table, spec)
    if isinstance(problem, NotAQbeastTable):
        message = str(problem)
    else:
        message = (
            f"the table of the {kind} {spec.name} has no index yet, but the {kind} has "
            f"columns_to_index={spec.columns_to_index!r}. {_to_get_an_index(problem, table, spec)}"
        )
    if kind == "snapshot" or _hinders_rebuilds(problem):
        return message
    return f"{message}. {full_refresh(spec.selector)}"


def _to_get_an_index(problem: QbeastError | None, table: str, spec: ModelSpec) -> str:
    if problem is None:
        return f"To add one, {_convert(table, spec)}"
    remedy = problem.remedy if isinstance(problem, IncompatibleTable) else None
    if remedy is Remedy.IN_PLACE:
        return f"{problem}. Then {_convert(table, spec)}"
    if remedy is Remedy.COPY:
        before, copy = _with_suffix(table, "__before"), _with_suffix(table, "__indexed")
        done = (
            f"To keep its rows, copy them {IN_PYTHON}: {_write_call(table, copy, 'error', spec)}. "
            "Constraints and properties are not copied. Then run the SQL `alter table "
            f"{_plain(table)} rename to {before}` and `alter table {copy} rename to "
            f"{_plain(table)}`; {before} keeps the history"
        )
    else:
        done = (
            f"To keep its rows and its history, rewrite it {IN_PYTHON}: {rewrite_call(table, spec)}"
        )
    return f"It cannot be converted: {problem}. {done}. Or remove columns_to_index from the model"


def _hinders_rebuilds(problem: QbeastError | None) -> bool:
    """Whether a table also refuses to be replaced by new rows with an index."""
    return isinstance(problem, IncompatibleTable) and problem.remedy in (
        Remedy.IN_PLACE,
        Remedy.COPY,
    )


def other_format_message(
    session: SparkSession, table: str, model: str, spec: ModelSpec | None
) -> str:
    """The message for a model that adds rows to a table that is not stored as Delta.

    Such a table would have to be dropped first.

    Args:
        table: the quoted name of the table.
        spec: the model's specification; None for a model without an index.
    """
    keeping = f"If it is a Parquet table, the SQL `convert to delta {table}` keeps its rows"
    if spec is not None:
        problem = _hindrance(session, table, spec)
        keeping = f"It cannot be converted: {problem}. Copy its rows to another table first"
        if problem is None:
            keeping = f"To convert it, {_convert(table, spec)}"
    return (
        f"{_plain(table)} is not stored as Delta, but {model} adds rows to a Delta table. "
        f"{keeping}. Or restore the model's previous configuration. {full_refresh(model)}."
    )


def _hindrance(session: SparkSession, table: str, spec: ModelSpec) -> QbeastError | None:
    """Why a table cannot be converted to an indexed one in place; None if it can."""
    try:
        check_convertible(session, table, slices=spec.slices)
    except QbeastError as problem:
        return problem
    return None


def _write_call(table: str, to: str, mode: str, spec: ModelSpec) -> str:
    options = ", ".join(f"{key}={value!r}" for key, value in _options(spec).items())
    # An overwrite then keeps what rows do not have, such as NOT NULL.
    schema = ", overwrite_schema=False" if mode == "overwrite" else ""
    rows = f"spark.table({_plain(table)!r})"
    return f"write_table({rows}, table={to!r}, mode={mode!r}{schema}, {options})"


def _with_suffix(table: str, suffix: str) -> str:
    return _plain(f"{table.removesuffix('`')}{suffix}`")


def _convert(table: str, spec: ModelSpec) -> str:
    arguments = shlex.quote(conversion_arguments(table, spec))
    return (
        f"run `dbt run-operation convert_to_qbeast --args {arguments}`, which keeps rows and "
        "history and rewrites no file. Then run dbt again"
    )


def conversion_arguments(table: str, spec: ModelSpec) -> str:
    """The arguments of `convert_to_qbeast` that give a table the index of its model."""
    return _yaml({"table": _plain(table), **_options(spec)})


def _options(spec: ModelSpec) -> dict[str, Any]:
    """The options of the index that differ from their defaults."""
    defaults = {"cube_size": "auto"}
    options = {key: getattr(spec, key) for key in CONVERSION_OPTIONS}
    return {key: v for key, v in options.items() if v not in (None, defaults.get(key))}


def _plain(table: str) -> str:
    """The name, without backticks if it needs none."""
    plain = plain_name(table)
    return plain if _WORD.fullmatch(plain) else table


def _yaml(value: Any) -> str:
    """A value as YAML on one line.

    >>> _yaml({"table": "s.m", "columns_to_index": ["id", "kind:hash"], "slices": True})
    '{table: s.m, columns_to_index: [id, "kind:hash"], slices: true}'
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_yaml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_yaml, value)) + "]"
    if isinstance(value, str) and _WORD.fullmatch(value) and value.lower() not in _NOT_A_TEXT:
        return value
    return json.dumps(value)
