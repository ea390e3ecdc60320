"""Selects the tables of an operation, by the names, tags and paths of their models."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from dbt.adapters.qbeast.models.configuration import (
    INDEXED_MATERIALIZATIONS,
    is_indexed,
    selector_of,
)
from dbt.adapters.qbeast.relation import table_name
from dbt_common.exceptions import DbtRuntimeError


@dataclass(frozen=True)
class ModelTable:
    """The table of a model, or one that the user named."""

    name: str
    """The quoted name, for Spark."""
    label: str
    """The name in messages."""


def tables_of(graph: Mapping[str, Any], selected: str | Iterable[str] | None) -> list[ModelTable]:
    """The tables of the selected models; without a selection, of all indexed models.

    A selection is a model's name, `orders.v2` for one of its versions, `tag:nightly` for all
    indexed models with a tag, `path:models/events` for those under a path, or a list of these.
    """
    models = [n for n in graph["nodes"].values() if n["resource_type"] in ("model", "snapshot")]
    indexed = [node for node in models if _is_stored_with_index(node["config"])]
    if selected is None:
        return [table_of(node) for node in indexed]
    tables: list[ModelTable] = []
    for choice in [selected] if isinstance(selected, str) else selected:
        found = [node for node in models if choice in _names_of(node)]
        found = found or [node for node in indexed if _has_tag_or_path(node, choice)]
        if not found:
            names = ", ".join(sorted(selector_of(node) for node in models))
            raise DbtRuntimeError(f"{choice!r} selects no model; the models are {names}")
        tables += [table_of(node) for node in found if table_of(node) not in tables]
    return tables


def table_of(node: Mapping[str, Any]) -> ModelTable:
    """The table of a model or snapshot of dbt's `graph`."""
    schema, alias = node["schema"], node["alias"]
    return ModelTable(table_name(schema, alias), f"{schema}.{alias}")


def _names_of(node: Mapping[str, Any]) -> tuple[str, str, str]:
    return node["name"], node["alias"], selector_of(node)


def _is_stored_with_index(config: Mapping[str, Any]) -> bool:
    """Whether a node is stored with an index.

    Views can inherit columns_to_index from their folder, so the materialization counts too.
    """
    return config["materialized"] in (*INDEXED_MATERIALIZATIONS, "snapshot") and is_indexed(config)


def _has_tag_or_path(node: Mapping[str, Any], choice: str) -> bool:
    kind, _, value = choice.partition(":")
    if kind == "tag":
        return value in node["tags"]
    return kind == "path" and PurePath(node["original_file_path"]).is_relative_to(value)
