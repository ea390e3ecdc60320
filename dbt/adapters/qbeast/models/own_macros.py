"""A project's macros that replace a step in other adapters, but that this adapter does not call.

A macro that would change the rows of a table is an error. One that would change only properties,
location or comments is a warning, because a project may need it for its other models.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dbt.adapters.qbeast.models.increment import (
    APPEND,
    DEFAULT,
    DELETE_INSERT,
    INSERT_OVERWRITE,
    MERGE,
    MICROBATCH,
    REPLACE_WHERE,
    strategy_of,
)
from dbt_common.exceptions import DbtRuntimeError

_PACKAGES_OF_ADAPTERS = ("dbt", "dbt_spark", "dbt_qbeast")
_PREFIXES_OF_DISPATCH = ("qbeast__", "spark__", "default__")
_MACROS = {
    APPEND: ("get_incremental_append_sql", "get_insert_into_sql"),
    MERGE: ("get_incremental_merge_sql", "get_merge_sql", "get_merge_update_columns"),
    DELETE_INSERT: ("get_incremental_delete_insert_sql", "get_delete_insert_merge_sql"),
    INSERT_OVERWRITE: (
        "get_incremental_insert_overwrite_sql",
        "get_insert_overwrite_merge_sql",
        "get_insert_overwrite_sql",
    ),
    REPLACE_WHERE: ("get_incremental_replace_where_sql",),
    MICROBATCH: ("get_incremental_microbatch_sql",),
}
_OF_ALL = ("dbt_spark_get_incremental_sql",)
_OF_THE_DEFAULT = ("get_incremental_default_sql",)
_OF_COLUMNS = ("process_schema_changes", "check_for_schema_changes", "sync_column_schemas")
_AS_A_STRATEGY = (
    "Make it a strategy of your own: rename it to get_incremental_<name>_sql, with the one "
    "argument arg_dict, and set incremental_strategy='<name>'. Or delete it"
)
_INSTEAD = {
    "get_merge_update_columns": (
        "Set merge_update_columns or merge_exclude_columns, and delete the macro"
    ),
    **dict.fromkeys(
        _OF_COLUMNS, "Set on_schema_change to the value with the same effect, and delete the macro"
    ),
}


_OF_SNAPSHOTS = ("snapshot_merge_sql",)
_OF_TABLES = {
    "create_table_as": "tblproperties, location_root, persist_docs and the model's contract",
    "location_clause": "location_root",
    "tblproperties_clause": "tblproperties",
    "comment_clause": "persist_docs",
    "persist_constraints": "constraints in the model's contract",
}
"""The macros that make a table without an index, and what to configure for one with an index."""


def check_no_ignored_macros(
    config: Any, context: Mapping[str, Any], packages: Sequence[str] = ()
) -> None:
    """Raises DbtRuntimeError if the project has a macro that should change a built-in strategy.

    Args:
        config: the configuration of a model whose runs add rows.
        context: dbt's context, which has the macros by name, and those of each package by its name.
        packages: where the project's `dispatch` lets dbt search for its own macros.
    """
    strategy = strategy_of(config, APPEND)
    if strategy not in _MACROS:
        return
    names = _MACROS[strategy] + _OF_ALL + _OF_COLUMNS
    if config.get("incremental_strategy") in (None, "", DEFAULT):
        names += _OF_THE_DEFAULT
    for name, macro in _own_macros(names, context, packages):
        raise DbtRuntimeError(
            f"{macro} is not called, because incremental_strategy={strategy!r} is built in. "
            f"{_INSTEAD.get(name, _AS_A_STRATEGY)}"
        )


def check_no_ignored_macros_of_snapshot(
    context: Mapping[str, Any], packages: Sequence[str] = ()
) -> None:
    """Raises DbtRuntimeError if the project has a macro that should merge an indexed snapshot."""
    for _, macro in _own_macros(_OF_SNAPSHOTS, context, packages):
        raise DbtRuntimeError(
            f"{macro} is not called, because the changes of a snapshot with an index are merged "
            "without SQL. Remove columns_to_index from the snapshot, or delete the macro"
        )


def warnings_of_ignored_macros(
    context: Mapping[str, Any], packages: Sequence[str] = ()
) -> Iterator[str]:
    """A warning for each macro of the project that should change how an indexed table is made."""
    for name, macro in _own_macros(tuple(_OF_TABLES), context, packages):
        yield (
            f"{macro} has no effect on tables with an index, because they are created without SQL. "
            f"Use {_OF_TABLES[name]} instead"
        )


def _own_macros(
    names: Sequence[str], context: Mapping[str, Any], packages: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Which of dbt's macros the project replaces, each with what replaces it.

    `dispatch` calls macros of a package only under a name with a prefix.
    """
    places: list[tuple[Mapping[str, Any], tuple[str, ...]]] = [
        (context, ("", *_PREFIXES_OF_DISPATCH))
    ]
    for package in packages:
        of_package = context.get(package)
        if isinstance(of_package, Mapping):
            places.append((of_package, _PREFIXES_OF_DISPATCH))
    for macros, prefixes in places:
        for name in names:
            for prefix in prefixes:
                macro = getattr(macros.get(prefix + name), "macro", None)
                if macro is not None and macro.package_name not in _PACKAGES_OF_ADAPTERS:
                    yield name, f"the macro {prefix}{name} of {macro.package_name}"
