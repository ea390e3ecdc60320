"""The tables and views that a node reads, found as dbt's `ref` and `source` find them."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from dbt.adapters.contracts.connection import AdapterRequiredConfig
from dbt.adapters.qbeast.relation import QbeastRelation, table_name

Exists = Callable[[Any, str, str], bool]
"""Whether the target has a relation of this database, schema and name."""


@dataclass(frozen=True)
class Input:
    """A table or view that a node reads, itself or through views."""

    table: str
    """Its quoted name, `schema`.`table`."""
    node: str
    """The unique id of its model, seed, snapshot or source."""
    is_exempt: bool
    """Whether runs on a sample read all of its rows, because its configuration sets `sample: false`
    or because a function reads it."""
    is_built_here: bool = True
    """Whether runs of this target build it; False for sources, and for relations of the state that
    a run defers to."""
    view: str | None = None
    """The quoted name of the view whose text reads it; None if the node itself does."""


@dataclass(frozen=True)
class Deferral:
    """Which refs of a run with `--defer` read the relation of the state."""

    is_on: bool
    """Whether the run defers."""
    favors_state: bool
    """Whether it reads the state's relation even if the target has its own."""
    selected: Collection[str]
    """The unique ids of the nodes that the run selects."""
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

        dbt's own `ref` has the same rule.
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
) -> tuple[Input, ...]:
    """The inputs of a node, each once, also through ephemeral models, functions and views.

    A view counts, and so do the tables that it reads, which may have been rebuilt after it. A view
    of the state is taken to read what its model reads here, in the state.

    Args:
        node: the `model` of dbt's context.
        graph: the `graph` of dbt's context.
    """
    functions = graph.get("functions", {})

    def read_by(reader: Mapping[str, Any], is_of_state: bool = False) -> tuple[Input, ...]:
        references = reader.get("depends_on", {}).get("nodes", ())
        found = (each for name in references for each in behind(name, is_of_state))
        return tuple(dict.fromkeys(found))

    # Views can share inputs at every level, so that there are far more paths than nodes.
    @cache
    def behind(unique_id: str, is_of_state: bool) -> tuple[Input, ...]:
        if unique_id in functions:
            inputs = read_by(functions[unique_id], is_of_state)
            return tuple(replace(each, is_exempt=True) for each in inputs)
        given = graph["nodes"].get(unique_id) or graph["sources"].get(unique_id)
        if given is None:
            return ()
        if given["config"].get("materialized") == "ephemeral":
            return read_by(given, is_of_state)
        of_state = given.get("defer_relation") if is_of_state else None
        relation = of_state or deferral.relation(given)
        is_deferred = relation is not given
        is_built_here = not is_deferred and unique_id in graph["nodes"]
        found = input_of(relation, unique_id, is_built_here)
        if (relation.get("config") or {}).get("materialized") != "view":
            return (found,)
        under = (
            replace(
                each,
                is_exempt=found.is_exempt or each.is_exempt,
                view=each.view or found.table,
            )
            for each in read_by(given, is_deferred)
        )
        return (found, *under)

    return read_by(node)


def has_event_time(node: Mapping[str, Any], graph: Mapping[str, Any]) -> bool:
    """Whether dbt's `--sample` limits what a node reads, itself or through models.

    Args:
        node: the `model` of dbt's context.
        graph: the `graph` of dbt's context.
    """
    known = {**graph["nodes"], **graph["sources"]}
    seen: set[str] = set()
    left = [node]
    while left:
        references = left.pop().get("depends_on", {}).get("nodes", ())
        found = {each for each in references if each in known} - seen
        if any(known[each]["config"].get("event_time") for each in found):
            return True
        seen |= found
        left += [known[each] for each in found]
    return False


def ephemeral_inputs(node: Any, graph: Mapping[str, Any], cte: str) -> Iterator[Mapping[str, Any]]:
    """The ephemeral models that dbt's node reads as a CTE of this name."""
    nodes = graph["nodes"]
    for found in (nodes[each] for each in node.depends_on.nodes if each in nodes):
        is_ephemeral = found["config"].get("materialized") == "ephemeral"
        if is_ephemeral and QbeastRelation.add_ephemeral_prefix(found["alias"]) == cte:
            yield found


def input_of(entry: Mapping[str, Any], node: str, is_built_here: bool) -> Input:
    """The input that a node, source or `defer_relation` of dbt's context is."""
    config = entry.get("config") or {}
    return Input(
        table=table_name(entry["schema"], _name(entry)),
        node=node,
        is_exempt=config.get("sample") is False,
        is_built_here=is_built_here,
    )


def _name(entry: Mapping[str, Any]) -> str:
    """The name of the table of a model, snapshot, seed or source."""
    return str(entry.get("alias") or entry.get("identifier") or entry["name"])
