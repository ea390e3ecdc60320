"""A model's configuration as dbt gives it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.spark.impl import SparkConfig


@dataclass
class QbeastConfig(SparkConfig):
    """The keys that a model's `config` may have beside dbt's own."""

    file_format: str = "delta"
    columns_to_index: str | list[str] | None = None


def default_to_delta(config: Mapping[str, Any]) -> None:
    """Sets `file_format: delta` on the node unless its configuration names another.

    dbt-spark's macros read the key at many places, each with a default of parquet; dbt has no hook
    for an adapter's default but the node's own configuration.
    """
    node_config = getattr(getattr(config, "model", None), "config", None)
    if node_config is not None and not node_config.get("file_format"):
        node_config["file_format"] = "delta"
