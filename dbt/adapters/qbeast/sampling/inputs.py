"""The tables and views that a node reads, found as dbt's `ref` and `source` find them."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dbt.adapters.contracts.connection import AdapterRequiredConfig
from dbt.adapters.qbeast.relation import table_name

Exists = Callable[[Any, str, str], bool]
"""Whether the target has a relation of this database, schema and name."""


@dataclass(frozen=True)
class Input:
    """A table or view that a node reads, itself or through views.

    Attributes:
        table: its quoted name, `schema`.`table`.
        is_left_whole: whether runs on a sample read it whole, because its configuration sets
            `sample: false` or because a function reads it.
        views: the quoted names of the views through which the node reads it, the outermost first.
    """

    table: str
    is_left_whole: bool
    views: tuple[str, ...] = ()


@dataclass(frozen=True)
class Deferral:
    """Which refs of a run with `--defer` read the relation of the state.

    Attributes:
        is_on: whether the run defers.
        favors_state: whether it reads the state's relation even if the target has its own.
        selected: the unique ids of the nodes that the run selects.
        exists: whether the target has its own relation.
    """

    is_on: bool
    favors_state: bool
    selected: Collection[str]
    exists: Exists

    @classmethod
    def of_run(cls, config: AdapterRequiredConfig, exists: Exists) -> "Deferral":
        # dbt hands adapters the selection nowhere else.
        from dbt import selected_resources

        args = getattr(config, "args", None)
        return cls(
            is_on=bool(getattr(args, "defer", False)),
            favors_state=bool(getattr(args, "favor_state", False)),
            selected=selected_resources.SELECTED_RESOURCES,
            exists=exists,
        )

    def relation(self, node: Mapping[str, Any]) -> Mapping[str, Any]:
        """The entry whose relation `ref` reads: the node itself, or its `defer_relation`.

        The same rule as in dbt's own `ref`.
        """
        of_state: Mapping[str, Any] | None = node.get("defer_relation")
        if not self.is_on or not of_state:
            return node
        if self.favors_state and node["unique_id"] not in self.selected:
            return of_state
        has_own = self.exists(node.get("database"), node["schema"], _name(node))
        return node if has_own else of_state


def inputs_of(
    node: Mapping[str, Any], graph: Mapping[str, Any], deferral: Deferral
) -> Iterator[Input]:
    """The inputs of a node, also through ephemeral models, functions and views.

    A view counts, and so do the tables that it reads, which may have been rebuilt after it.

    Args:
        node: the `model` of dbt's context.
        graph: the `graph` of dbt's context.
    """
    functions = graph.get("functions", {})
    for unique_id in node.get("depends_on", {}).get("nodes", ()):
        if unique_id in functions:
            for each in inputs_of(functions[unique_id], graph, deferral):
                yield replace(each, is_left_whole=True)
            continue
        given = graph["nodes"].get(unique_id) or graph["sources"].get(unique_id)
        if given is None:
            continue
        if given["config"].get("materialized") == "ephemeral":
            yield from inputs_of(given, graph, deferral)
            continue
        relation = deferral.relation(given)
        found = input_of(relation)
        yield found
        if relation is given and given["config"].get("materialized") == "view":
            for each in inputs_of(given, graph, deferral):
                is_left_whole = found.is_left_whole or each.is_left_whole
                yield Input(each.table, is_left_whole, (found.table, *each.views))


def input_of(entry: Mapping[str, Any]) -> Input:
    """The input that a node, source or `defer_relation` of dbt's context is."""
    config = entry.get("config") or {}
    table = table_name(entry["schema"], _name(entry))
    return Input(table, is_left_whole=config.get("sample") is False)


def _name(entry: Mapping[str, Any]) -> str:
    """The name of the table of a model, snapshot, seed or source."""
    return str(entry.get("alias") or entry.get("identifier") or entry["name"])
