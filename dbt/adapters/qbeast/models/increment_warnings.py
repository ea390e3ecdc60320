"""Warnings about an incremental model whose configuration may not do what its author expects."""

from collections.abc import Iterator

from dbt.adapters.qbeast.models.configuration import ModelSpec
from dbt.adapters.qbeast.models.increment import APPEND, INSERT_OVERWRITE, MERGE, Increment


def warnings_of(increment: Increment, model: str, spec: ModelSpec | None) -> Iterator[str]:
    """The warnings of a model, each in a sentence that begins with its name.

    Args:
        model: the model's name.
        spec: the specification of a model with an index; None without one.
    """
    if increment.predicates and not _uses_predicates(increment):
        yield (
            f"{model}: incremental_predicates={list(increment.predicates)!r} has no effect with "
            f"{_describe(increment)}. Remove it, or use 'merge' with a unique_key, "
            "'delete+insert', 'replace_where' or 'microbatch'"
        )
    if spec is None:
        return
    if increment.strategy == APPEND and not spec.tells_increments:
        yield (
            f"{model} appends all rows of its query on every run, because its code does not "
            "call is_incremental(): rows that the table already has are added again"
        )
    if increment.strategy == INSERT_OVERWRITE and spec.tells_increments:
        yield (
            f"{model} calls is_incremental(), but insert_overwrite replaces all rows of a table "
            "with an index: rows that the query of a run does not return are lost. To replace a "
            "part of the table, use 'delete+insert', 'replace_where' or 'microbatch'"
        )


def _uses_predicates(increment: Increment) -> bool:
    if increment.strategy == MERGE:
        return increment.matches_rows
    return increment.strategy not in (APPEND, INSERT_OVERWRITE)


def _describe(increment: Increment) -> str:
    without_key = ", which appends without a unique_key" if increment.strategy == MERGE else ""
    return f"incremental_strategy={increment.strategy!r}{without_key}"
