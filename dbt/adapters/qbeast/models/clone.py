"""Clones a Delta table onto one that has rows, or to a directory of its own."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from dbt.adapters.qbeast.relation import QbeastRelation
from dbt.adapters.qbeast.spark.errors import as_dbt_error
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import SparkSession

from qbeast_core import Catalog, TableSnapshot, is_same_location, run_statement

_Result = TypeVar("_Result")


def clone_onto(session: SparkSession, table: str, clone: Callable[[], _Result]) -> _Result:
    """Deletes the rows of a table and clones another table onto it.

    Delta clones only onto empty tables, so this takes two commits. If the clone fails, the rows are
    restored.

    Args:
        table: the quoted name, `schema`.`table`.
        clone: runs the statement.

    Raises:
        DbtRuntimeError: the rows may be deleted although Delta reports an error; or the clone
            failed, and the rows could not be restored.
    """
    before = _version(session, table)
    try:
        run_statement(session, f"delete from {table}")
    except Exception as error:
        if _is_at(session, table, before):
            raise
        raise DbtRuntimeError(
            f"the rows of {table} could not be deleted before the clone: {_message(error)}. If "
            f"they are gone, run `{_restoring(table, before)}`"
        ) from error
    try:
        return clone()
    except Exception as error:
        _restore(session, table, before, error)
        raise


def check_cloneable(source: QbeastRelation) -> None:
    """Raises DbtRuntimeError if a table is not stored as Delta."""
    if not source.is_delta:
        raise DbtRuntimeError(
            f"{source} cannot be cloned, because it is not a Delta table. Build it in this target "
            "instead"
        )


def check_other_location(session: SparkSession, source: str, location: str) -> None:
    """Raises DbtRuntimeError if the clone of a table would be stored in the table's own directory.

    Args:
        source: the quoted name of the table to clone.
        location: the directory of the clone, from `location_root`.
    """
    if is_same_location(session, Catalog(session).find(source).location, location):
        raise DbtRuntimeError(
            f"{source} cannot be cloned to {location}, because it is stored there itself: two "
            "tables cannot share a directory. Set another location_root for this target, such as "
            "one that contains {{ target.name }}"
        )


def _restore(session: SparkSession, table: str, before: int, error: Exception) -> None:
    """Restores a version, unless others have changed the table since its rows were deleted."""
    statement = _restoring(table, before)
    try:
        now = _version(session, table)
        if now == before + 1:
            run_statement(session, statement)
        elif now > before:
            raise DbtRuntimeError("other writers have changed the table since")
    except Exception as problem:
        raise DbtRuntimeError(
            f"the clone onto {table} failed: {_message(error)}. Its rows are still in version "
            f"{before}, but they could not be restored: {_message(problem)}. To restore them, run "
            f"`{statement}`"
        ) from error


def _restoring(table: str, version: int) -> str:
    return f"restore table {table} to version as of {version}"


def _is_at(session: SparkSession, table: str, version: int) -> bool:
    """Whether this is still the table's version; False if storage fails to answer."""
    with suppress(Exception):
        return _version(session, table) == version
    return False


def _version(session: SparkSession, table: str) -> int:
    return TableSnapshot.load(session, Catalog(session).find(table).location).version


def _message(error: Exception) -> str:
    failure = as_dbt_error(error)
    return str(getattr(failure, "msg", failure)).rstrip(".")
