"""Decides what a run does with the table of a model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dbt.adapters.qbeast.models.increment import Increment
from dbt.adapters.qbeast.relation import QbeastRelation
from dbt_common.exceptions import DbtRuntimeError


@dataclass(frozen=True)
class BuildPlan:
    """What a run does with the table of a model."""

    action: Literal["create", "replace", "increment"]
    """`create` makes the table, also in place of one in the same format. `replace` puts it in
    place of a view or a table in another format. `increment` changes the rows of the table."""
    target: QbeastRelation
    """The table as the run leaves it. dbt caches this relation for the next batch of the run."""


def build_plan(
    relation: QbeastRelation,
    existing: QbeastRelation | None,
    file_format: str,
    increment: Increment | None,
    *,
    full_refresh: bool,
    other_format_error: Callable[[], DbtRuntimeError],
) -> BuildPlan:
    """Decides what a run does with the table of a model.

    Args:
        relation: the model's relation.
        existing: what is there now; None for nothing.
        file_format: the format that the model is stored in.
        increment: what a run does with an existing table; None to rebuild it.
        other_format_error: the error for a model that adds rows to a table which is not stored as
            Delta, although the model is.
    """
    target = relation.incorporate(
        type="table", is_delta=file_format == "delta", is_iceberg=file_format == "iceberg"
    )
    if existing is None:
        return BuildPlan("create", target)
    is_in_place = existing.is_table and (
        (existing.is_delta and target.is_delta) or (existing.is_iceberg and target.is_iceberg)
    )
    if increment is not None and existing.is_table and not full_refresh:
        if target.is_delta and not is_in_place:
            raise other_format_error()
        return BuildPlan("increment", target)
    return BuildPlan("create" if is_in_place else "replace", target)
