"""Which tables a node reads: its own target's, or those of the state that a run defers to."""

from copy import deepcopy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.qbeast.sampling.inputs import Deferral, Input, has_event_time, inputs_of

NODES: dict[str, Any] = {
    "model.p.orders": {
        "unique_id": "model.p.orders",
        "database": None,
        "schema": "dev",
        "alias": "orders",
        "config": {"materialized": "table"},
        "defer_relation": {"schema": "prod", "alias": "orders_v2", "config": {"sample": False}},
    },
    "model.p.between": {
        "unique_id": "model.p.between",
        "config": {"materialized": "ephemeral"},
        "depends_on": {"nodes": ["model.p.orders", "source.p.raw.rates"]},
    },
}
NODES["model.p.seen"] = {
    "unique_id": "model.p.seen",
    "schema": "dev",
    "alias": "seen",
    "config": {"materialized": "view"},
    "depends_on": {"nodes": ["model.p.between"]},
    "defer_relation": {"schema": "prod", "alias": "seen", "config": {"materialized": "view"}},
}
NODES["model.p.seen_again"] = {
    **NODES["model.p.seen"],
    "unique_id": "model.p.seen_again",
    "alias": "seen_again",
    "depends_on": {"nodes": ["model.p.seen"]},
}
SOURCES = {
    "source.p.raw.rates": {
        "schema": "raw",
        "name": "rates",
        "identifier": "rates_eu",
        "config": {"sample": False},
    }
}
FUNCTIONS = {
    "function.p.latest": {"depends_on": {"nodes": ["function.p.first", "source.p.raw.rates"]}},
    "function.p.first": {"depends_on": {"nodes": ["model.p.between"]}},
}
ORDERS, RATES = "model.p.orders", "source.p.raw.rates"
OWN = Input("`dev`.`orders`", ORDERS, is_exempt=False)
OF_STATE = Input("`prod`.`orders_v2`", ORDERS, is_exempt=True, is_built_here=False)
OF_SOURCE = Input("`raw`.`rates_eu`", RATES, is_exempt=True, is_built_here=False)


def orders(own_exists: bool, **deferral: Any) -> Input:
    """What a node that reads the model `orders` reads."""
    looked_up = []

    def exists(*name: Any) -> bool:
        looked_up.append(name)
        return own_exists

    given = {"is_on": True, "favors_state": False, "selected": [], **deferral}
    reading = {"depends_on": {"nodes": ["model.p.orders"]}}
    graph = {"nodes": NODES, "sources": SOURCES}
    (found,) = inputs_of(reading, graph, Deferral(exists=exists, **given))
    assert set(looked_up) <= {(None, "dev", "orders")}
    return found


@pytest.mark.parametrize(
    ("own_exists", "deferral", "expected"),
    [
        (False, {"is_on": False}, OWN),
        (False, {}, OF_STATE),
        (True, {}, OWN),
        (True, {"favors_state": True}, OF_STATE),
        (True, {"favors_state": True, "selected": ["model.p.orders"]}, OWN),
        (False, {"favors_state": True, "selected": ["model.p.orders"]}, OF_STATE),
        (False, {"is_on": False, "favors_state": True}, OWN),
    ],
)
def test_a_ref_is_resolved_as_dbt_does(
    own_exists: bool, deferral: dict[str, Any], expected: Input
) -> None:
    assert orders(own_exists, **deferral) == expected


def test_what_an_ephemeral_model_reads_counts() -> None:
    deferral = Deferral(is_on=False, favors_state=False, selected=[], exists=lambda *_: True)
    reading = {"depends_on": {"nodes": ["model.p.between", "macro.p.unknown"]}}
    found = inputs_of(reading, {"nodes": NODES, "sources": SOURCES}, deferral)
    assert list(found) == [OWN, OF_SOURCE]


def test_a_view_and_the_tables_under_it_count() -> None:
    def read_by(view: str, *, defers: bool) -> list[Input]:
        deferral = Deferral(is_on=defers, favors_state=True, selected=[], exists=lambda *_: True)
        reading = {"depends_on": {"nodes": [f"model.p.{view}"]}}
        return list(inputs_of(reading, {"nodes": NODES, "sources": SOURCES}, deferral))

    seen, again = "`dev`.`seen`", "`dev`.`seen_again`"
    assert read_by("seen_again", defers=False) == [
        Input(again, "model.p.seen_again", is_exempt=False),
        Input(seen, "model.p.seen", is_exempt=False, view=again),
        replace(OWN, view=seen),
        replace(OF_SOURCE, view=seen),
    ]
    graph = {"nodes": deepcopy(NODES), "sources": SOURCES}
    graph["nodes"]["model.p.seen"]["config"]["sample"] = False
    deferral = Deferral(is_on=False, favors_state=False, selected=[], exists=lambda *_: True)
    found = inputs_of({"depends_on": {"nodes": ["model.p.seen"]}}, graph, deferral)
    assert all(each.is_exempt for each in found)
    # The view of the state reads the tables of the state.
    of_state = "`prod`.`seen`"
    assert read_by("seen", defers=True) == [
        Input(of_state, "model.p.seen", is_exempt=False, is_built_here=False),
        replace(OF_STATE, view=of_state),
        replace(OF_SOURCE, view=of_state),
    ]


def test_what_a_function_reads_counts_and_is_read_whole() -> None:
    deferral = Deferral(is_on=False, favors_state=False, selected=[], exists=lambda *_: True)
    graph = {"nodes": NODES, "sources": SOURCES, "functions": FUNCTIONS}
    reading = {"depends_on": {"nodes": ["function.p.latest", "model.p.orders"]}}
    whole = replace(OWN, is_exempt=True)
    assert list(inputs_of(reading, graph, deferral)) == [whole, OF_SOURCE, OWN]


def test_each_node_is_visited_once() -> None:
    """Of 60 levels of two views that read both of the level below, there are 2 ** 60 paths."""
    nodes = {
        f"{level}{side}": {
            "unique_id": f"{level}{side}",
            "schema": "dev",
            "alias": f"v{level}{side}",
            "config": {"materialized": "view"},
            "depends_on": {"nodes": [f"{level - 1}a", f"{level - 1}b"] if level else []},
        }
        for level in range(60)
        for side in "ab"
    }
    deferral = Deferral(is_on=False, favors_state=False, selected=[], exists=lambda *_: True)
    reading = {"depends_on": {"nodes": ["59a"]}}
    found = inputs_of(reading, {"nodes": nodes, "sources": {}}, deferral)
    assert {each.table for each in found} == {
        f"`dev`.`v{level}{side}`"
        for level in range(60)
        for side in "ab"
        if (level, side) != (59, "b")
    }


def test_a_run_without_the_flags_does_not_defer() -> None:
    def of(**args: Any) -> tuple[bool, bool]:
        config: Any = SimpleNamespace(args=SimpleNamespace(**args))
        deferral = Deferral.of_run(config, lambda *_: True)
        return deferral.is_on, deferral.favors_state

    assert of() == (False, False)
    assert of(defer=True, favor_state=True) == (True, True)


@pytest.mark.parametrize("dated", [None, "model.p.seen_again", ORDERS, RATES, "model.p.unread"])
def test_an_event_time_is_found_at_any_distance(dated: str | None) -> None:
    nodes = {**deepcopy(NODES), "model.p.unread": {"config": {}}}
    sources = deepcopy(SOURCES)
    if dated:
        (nodes.get(dated) or sources[dated])["config"]["event_time"] = "at"
    snapshot = {"depends_on": {"nodes": ["model.p.seen_again", "function.p.latest"]}}
    found = has_event_time(snapshot, {"nodes": nodes, "sources": sources})
    assert found == (dated in ("model.p.seen_again", ORDERS, RATES))
