"""Replaces a view, or a table in another format, by a table.

Spark's catalog cannot do that in one step. What is replaced has another name until the rows of the
new table are committed, and gets its own name back if the model fails. If the process is killed,
the next run finds it under the other name.
"""

from dataclasses import dataclass

from dbt.adapters.qbeast.relation import QbeastRelation, table_name
from pyspark.sql import SparkSession

from qbeast_core import Catalog, InvalidOptions, activate, quoted, run_statement

_SUFFIX = "__dbt_replaced"


@dataclass(frozen=True)
class Replaced:
    """A relation that has another name while a model replaces it."""

    relation: QbeastRelation
    """The relation under its own name."""
    aside: QbeastRelation
    """The relation under the other name."""
    moved_from: str = ""
    """The directory of its files before it was renamed; empty if they have not been moved."""


def name_aside(relation: QbeastRelation) -> QbeastRelation:
    """The relation under the name that it has while a model replaces it."""
    aside: QbeastRelation = relation.incorporate(
        path={"identifier": f"{relation.identifier}{_SUFFIX}"}
    )
    return aside


def set_aside(session: SparkSession, existing: QbeastRelation) -> Replaced:
    """Renames a relation that a model is about to replace."""
    aside = name_aside(existing)
    before = _location(session, existing)
    _rename(session, existing, aside)
    # The files of an external table stay where they are.
    is_moved = before != _location(session, aside)
    return Replaced(existing, aside, before if is_moved else "")


def put_back(session: SparkSession, replaced: Replaced) -> None:
    """Gives a relation its own name back, because its model has failed.

    The files that a failed write left in its directory are deleted.
    """
    activate(session)
    if replaced.moved_from:
        Catalog(session).delete_unregistered(_table(replaced.relation), replaced.moved_from)
    _rename(session, replaced.aside, replaced.relation)


def not_put_back(replaced: Replaced, reason: str) -> str:
    """The warning about a relation that still has the other name after its model has failed."""
    aside = replaced.aside
    return (
        f"{replaced.relation} was to be replaced, and is now named {aside}, because the model "
        f"failed and the old name could not be restored ({reason.rstrip('.')}). The next run that "
        f"succeeds drops it. To restore it: {_rename_statement(aside, replaced.relation)}"
    )


def _rename(session: SparkSession, old: QbeastRelation, new: QbeastRelation) -> None:
    run_statement(session, _rename_statement(old, new))


def _rename_statement(old: QbeastRelation, new: QbeastRelation) -> str:
    # Spark's own catalog does not take its own name in the new name.
    name = _table(new).removeprefix(f"{quoted('spark_catalog')}.")
    return f"alter {old.type} {_table(old)} rename to {name}"


def _location(session: SparkSession, relation: QbeastRelation) -> str:
    """The directory of a table; empty for a view, and in another catalog than Spark's own."""
    try:
        return Catalog(session).find(_table(relation)).location
    except InvalidOptions:
        return ""


def _table(relation: QbeastRelation) -> str:
    return table_name(relation.schema or "", relation.identifier or "")
