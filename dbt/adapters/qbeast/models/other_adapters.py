"""Keys that a configuration may have from other Delta adapters, and what to use instead."""

from typing import Any

from dbt.adapters.qbeast.models.increment import INSERT_OVERWRITE, MERGE, MICROBATCH, Increment
from dbt_common.exceptions import DbtRuntimeError

_CLUSTERED = (
    "the index already clusters rows by all indexed columns. Add the column to columns_to_index "
    "and remove {key}"
)
_WITHOUT_INDEX_ONLY = {
    "partition_by": "the index already clusters rows by all indexed columns, and partitions would "
    "split its files into small ones. Add the column to columns_to_index and remove {key}",
    "clustered_by": _CLUSTERED,
    "liquid_clustered_by": _CLUSTERED,
    "zorder": _CLUSTERED,
    "buckets": "Delta tables have no buckets; remove {key}",
    "options": "an indexed table takes its settings from tblproperties; move them there",
}
# Without its partitions, an increment of these strategies would replace other rows.
_PARTITIONED = {
    INSERT_OVERWRITE: "an indexed table has no partitions, so insert_overwrite would replace all "
    "of its rows on each run. To replace only the values of {value!r} that the query has, use "
    "incremental_strategy='delete+insert' with unique_key={value!r}. 'replace_where' with "
    "incremental_predicates and 'microbatch' with event_time also replace a part of the table. "
    "Then add the column to columns_to_index and remove {key}",
    MICROBATCH: "microbatch finds the rows of its batch by event_time, without partitions. Add "
    "the column to columns_to_index and remove {key}",
}
_FILTER = "select only the rows to merge in the model's query, which can join {{ this }}"
_DELETE = "to replace a part of the table, use 'delete+insert' or 'replace_where'"
_ALIAS = "call the table DBT_INTERNAL_DEST and the query DBT_INTERNAL_SOURCE in conditions"
# Keys of dbt-databricks that change which rows a merge leaves in the table.
_DATABRICKS_MERGE_KEYS = {
    "skip_matched_step": _FILTER,
    "skip_not_matched_step": _FILTER,
    "matched_condition": _FILTER,
    "not_matched_condition": _FILTER,
    "not_matched_by_source_condition": _DELETE,
    "not_matched_by_source_action": _DELETE,
    "merge_with_schema_evolution": "set on_schema_change='append_new_columns'",
    "source_alias": _ALIAS,
    "target_alias": _ALIAS,
}


def check_no_layout_keys(config: Any, strategy: str | None) -> None:
    """Raises DbtRuntimeError if a key cannot be combined with `columns_to_index`.

    Args:
        strategy: the incremental strategy; None for a model that every run rebuilds.
    """
    for key, reason in _WITHOUT_INDEX_ONLY.items():
        value = config.get(key)
        if not value:
            continue
        if key == "partition_by":
            reason = _PARTITIONED.get(strategy or "", reason)
        raise DbtRuntimeError(
            f"{key}={value!r} cannot be combined with columns_to_index: "
            f"{reason.format(key=key, value=value)}."
        )


def check_no_databricks_merge_keys(config: Any, increment: Increment) -> None:
    """Raises DbtRuntimeError if a merge would ignore a key that says which rows it changes."""
    if increment.strategy != MERGE:
        return
    for key, instead in _DATABRICKS_MERGE_KEYS.items():
        value = config.get(key)
        if value:
            raise DbtRuntimeError(
                f"{key}={value!r} is a key of dbt-databricks that this adapter does not have. "
                f"Remove it and {instead}. Or write the MERGE yourself in a macro "
                "get_incremental_<name>_sql, and set incremental_strategy='<name>'"
            )
