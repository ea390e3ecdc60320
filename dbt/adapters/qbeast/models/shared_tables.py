"""Refuses nodes whose relations are one to Spark, which ignores the case of names."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

_STORED = ("model", "seed", "snapshot")


def nodes_by_relation(nodes: Iterable[Any]) -> Mapping[tuple[str, str], list[Any]]:
    """The enabled nodes of a project that are stored, by what Spark makes of their names.

    dbt itself refuses two nodes only if their names have the same case.
    """
    found = defaultdict(list)
    for node in nodes:
        if _is_stored(node):
            found[_key(node)].append(node)
    return found


def check_own_relation(node: Any, nodes: Mapping[tuple[str, str], list[Any]]) -> None:
    """Raises DbtRuntimeError if another node has the relation of this one.

    Args:
        nodes: all nodes, as `nodes_by_relation` returns them.
    """
    if not _is_stored(node):
        return
    for other in nodes.get(_key(node), ()):
        if other.unique_id != node.unique_id:
            raise DbtRuntimeError(
                f"{node.unique_id} ({node.original_file_path}) and {other.unique_id} "
                f"({other.original_file_path}) have one relation, {node.schema}.{node.alias}, "
                "because Spark ignores the case of names: rename one of them, or give it another "
                "alias or schema"
            )


def _is_stored(node: Any) -> bool:
    return node.resource_type in _STORED and node.config.get("materialized") != "ephemeral"


def _key(node: Any) -> tuple[str, str]:
    return str(node.schema).lower(), str(node.alias).lower()
