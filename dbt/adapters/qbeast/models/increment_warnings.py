"""Warnings about an incremental model whose configuration may not do what its author expects."""

from collections.abc import Iterator, Mapping
from typing import Any

from dbt.adapters.qbeast.models.configuration import ModelSpec
from dbt.adapters.qbeast.models.increment import (
    DELETE_INSERT,
    INSERT_OVERWRITE,
    MERGE,
    MICROBATCH,
    REPLACE_WHERE,
    Increment,
)

from qbeast_core import parse_automatic, parse_columns

_WITH_PREDICATES = "'merge' with a unique_key, 'delete+insert', 'replace_where' or 'microbatch'"
_INSTEAD = {
    "unique_key": "'merge' or 'delete+insert'",
    "merge_update_columns": "'merge' with a unique_key",
    "merge_exclude_columns": "'merge' with a unique_key",
    "predicates": _WITH_PREDICATES,
    "incremental_predicates": _WITH_PREDICATES,
}
"""The keys that some strategies ignore, and the strategies that use them."""
_USED = {
    DELETE_INSERT: {"unique_key", "predicates", "incremental_predicates"},
    REPLACE_WHERE: {"predicates", "incremental_predicates"},
    MICROBATCH: {"predicates", "incremental_predicates"},
}


def warnings_of(
    config: Any, increment: Increment | None, model: str, spec: ModelSpec | None
) -> Iterator[str]:
    """The warnings of a model, each in a sentence that begins with its name.

    Args:
        config: the `config` object of dbt's context.
        increment: what a run does with an existing table; None to rebuild it.
        model: the model's name.
        spec: the specification of a model with an index; None without one.
    """
    if config.get("materialized") not in ("qbeast", "incremental"):
        return
    is_batch = config.get("incremental_strategy") == MICROBATCH
    for key, instead in _INSTEAD.items():
        if is_batch and key == "unique_key":
            continue  # other platforms need it for their microbatches
        if config.get(key) and not _uses(increment, key):
            yield (
                f"{model}: {key}={config.get(key)!r} has no effect with {_describe(increment)}. "
                f"Remove it, or use {instead}"
            )
    if spec is None or increment is None:
        return
    if increment.appends and not spec.calls_is_incremental:
        yield (
            f"{model} appends all rows of its query on every run, because its code does not "
            "call is_incremental(): rows that the table already has are added again"
        )
    if increment.strategy == INSERT_OVERWRITE and spec.calls_is_incremental:
        yield (
            f"{model} calls is_incremental(), but insert_overwrite replaces all rows of a table "
            "with an index: rows that the query of a run does not return are lost. To replace a "
            "part of the table, use 'delete+insert', 'replace_where' or 'microbatch'"
        )


def warnings_of_kept_index(
    spec: ModelSpec, increment: Increment, cube_size: int, kinds: Mapping[str, str]
) -> Iterator[str]:
    """The warnings of a run that keeps a cube size or kinds of columns other than the model's.

    Args:
        cube_size: that of the table.
        kinds: the kind of each indexed column of the table.
    """
    if increment.appends or increment.strategy == INSERT_OVERWRITE:
        return
    if str(spec.cube_size) not in ("auto", str(cube_size)):
        yield (
            f"{spec.name}: cube_size={spec.cube_size!r} has no effect with {_describe(increment)}, "
            f"because its runs keep the table's cube size, {cube_size}. To change it, rebuild the "
            f"table; or set cube_size={cube_size}"
        )
    if parse_automatic(spec.columns_to_index) is not None:
        return
    present = {name.lower(): kind for name, kind in kinds.items()}
    for column in parse_columns(spec.columns_to_index):
        kind = present.get(column.name.lower(), column.kind)
        if column.kind not in (None, kind):
            yield (
                f"{spec.name}: the kind {column.kind!r} of {column.name!r} in columns_to_index has "
                f"no effect with {_describe(increment)}, because its runs keep the table's kind, "
                f"{kind!r}. To change it, rebuild the table; or remove the kind from the model"
            )


def _uses(increment: Increment | None, key: str) -> bool:
    if increment is None:
        return False
    if increment.is_custom or increment.matches_rows:
        return True
    return key in _USED.get(increment.strategy, ())


def _describe(increment: Increment | None) -> str:
    if increment is None:
        return "materialized='qbeast' without a strategy or a unique_key, which rebuilds the table"
    without_key = ", which appends without a unique_key" if increment.strategy == MERGE else ""
    return f"incremental_strategy={increment.strategy!r}{without_key}"
