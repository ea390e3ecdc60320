"""Refuses keys of a configuration that are misspelt, or that belong elsewhere."""

from collections.abc import Callable, Mapping
from typing import Any

from dbt.adapters.qbeast.models.configuration import (
    INDEX_OPTIONS,
    INDEXED_MATERIALIZATIONS,
    is_indexed,
)
from dbt_common.exceptions import DbtRuntimeError

from qbeast_core import closest, suggestion

INDEX_KEYS = (*INDEX_OPTIONS, "optimize")
_KEYS_OF_DBT = (
    "batch_size",
    "begin",
    "event_time",
    "file_format",
    "full_refresh",
    "incremental_predicates",
    "incremental_strategy",
    "location_root",
    "lookback",
    "merge_exclude_columns",
    "merge_update_columns",
    "on_schema_change",
    "partition_by",
    "predicates",
    "tblproperties",
    "unique_key",
)
_KEYS_OF_SNAPSHOTS = (
    "check_cols",
    "dbt_valid_to_current",
    "hard_deletes",
    "invalidate_hard_deletes",
    "snapshot_meta_column_names",
    "strategy",
    "target_database",
    "target_schema",
    "updated_at",
)
_OF_CATALOGS = ("delta", "iceberg")
"""The formats of tables that the adapter replaces in place; their catalogs know them."""
_FORMATS = (*_OF_CATALOGS, "parquet", "orc", "avro", "json", "csv", "text", "hive", "hudi")
_STORED = (*INDEXED_MATERIALIZATIONS, "snapshot", "seed")
# Keys of dbt-athena, dbt-hive and dbt-impala that resemble those above.
_KEYS_OF_OTHERS = ("partitioned_by", "tbl_properties")


def check_no_misplaced_keys(config: Any) -> None:
    """Raises DbtRuntimeError if a model's configuration has the macro `sample_of` as a key."""
    if config.get("sample_of") is not None:
        raise DbtRuntimeError(
            f"sample_of={config.get('sample_of')!r} is not a config key. Call the macro in the "
            "model's query, {{ sample_of(ref('orders'), 0.01) }}, where dbt finds the model's "
            "dependencies"
        )


def check_no_sample(config: Any, name: str) -> None:
    """Raises DbtRuntimeError for a `sample` of a model, seed, snapshot or source."""
    sample = config.get("sample")
    # 0 is equal to False, but is a fraction.
    if sample is not None and sample is not False:
        raise DbtRuntimeError(
            f"{name}: sample={sample!r} is for data tests. To read a sample in a model, use "
            "{{ qbeast_sample(ref(...), 0.1) }} in its query. sample=false makes runs on a sample "
            "read all rows of the table"
        )


def check_no_misspelt_keys(config: Mapping[str, Any]) -> None:
    """Raises DbtRuntimeError for a misspelt key, because dbt accepts any key in a configuration.

    A node without an index may have the keys of other adapters, for targets of theirs.
    """
    others = () if is_indexed(config) else _KEYS_OF_OTHERS
    is_snapshot = config.get("materialized") == "snapshot"
    of_dbt = (*_KEYS_OF_DBT, *_KEYS_OF_SNAPSHOTS) if is_snapshot else _KEYS_OF_DBT
    for key in config:
        if key in others:
            continue
        close = closest(key, INDEX_KEYS, likeness=0.85) or closest(key, of_dbt, likeness=0.9)
        if close not in (None, key):
            raise DbtRuntimeError(
                f"unknown key {key!r} in the config: did you mean {close!r}? A key of your own "
                "belongs in meta"
            )


def check_known_format(config: Mapping[str, Any], is_known: Callable[[str], bool]) -> None:
    """Raises DbtRuntimeError if Spark does not know the format of a table.

    Spark itself reads the format only when it creates the table, after a run has dropped what the
    table replaces. A run that adds rows would not notice it at all.

    Args:
        is_known: whether Spark knows a format.
    """
    name = str(config.get("file_format"))
    if config.get("materialized") not in _STORED or name in _OF_CATALOGS or is_known(name):
        return
    meant = "" if name in _FORMATS else suggestion(name, _FORMATS)
    raise DbtRuntimeError(
        f"file_format={name!r} is not a format that Spark knows{meant}. "
        "Remove it to store the table as Delta, correct it, or add the jar of the format to "
        "spark_config (spark.jars or spark.jars.packages)"
    )
