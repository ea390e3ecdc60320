"""Project macros that override a built-in strategy in other adapters; this adapter rejects them."""

from collections.abc import Mapping
from itertools import product
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
_PREFIXES = ("", "qbeast__", "spark__", "default__")
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


def refuse_ignored_macros(config: Any, context: Mapping[str, Any]) -> None:
    """Raises DbtRuntimeError if the project has a macro that should change a built-in strategy.

    Args:
        config: the configuration of a model whose runs add rows.
        context: dbt's context, which has the macros by name.
    """
    strategy = strategy_of(config, APPEND)
    if strategy not in _MACROS:
        return
    names = _MACROS[strategy] + _OF_ALL + _OF_COLUMNS
    if config.get("incremental_strategy") in (None, "", DEFAULT):
        names += _OF_THE_DEFAULT
    for name, prefix in product(names, _PREFIXES):
        macro = getattr(context.get(prefix + name), "macro", None)
        if macro is not None and macro.package_name not in _PACKAGES_OF_ADAPTERS:
            instead = _INSTEAD.get(name, _AS_A_STRATEGY)
            raise DbtRuntimeError(
                f"the macro {prefix}{name} of {macro.package_name} is not called, because "
                f"incremental_strategy={strategy!r} is built in. {instead}"
            )
