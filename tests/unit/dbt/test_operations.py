"""Which tables an operation is run on."""

import re
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.qbeast.run_operation.operations import _check_one_page_each, run
from dbt.adapters.qbeast.run_operation.selection import ModelTable, tables_of
from dbt_common.exceptions import DbtRuntimeError


def node(name: str, materialized: str = "qbeast", **more: Any) -> dict[str, Any]:
    config = {"materialized": materialized, "columns_to_index": more.pop("columns", "id")}
    kind = "snapshot" if materialized == "snapshot" else "model"
    path = f"models/{more.pop('folder', 'base')}/{name}.sql"
    found = {"name": name, "alias": name, "schema": "shop", "resource_type": kind, "tags": []}
    return {**found, "config": config, "original_file_path": path, **more}


NODES = [
    node("events", tags=["nightly"]),
    node("trips", "incremental", folder="base_more"),
    node("history", "snapshot"),
    node("seen", "view", tags=["nightly"]),
    node("plain", "table", columns=None, tags=["nightly"]),
    {"resource_type": "test", "name": "unique_events"},
]
GRAPH = {"nodes": {str(place): found for place, found in enumerate(NODES)}}


@pytest.mark.parametrize(
    ("selected", "labels"),
    [
        (None, ["shop.events", "shop.trips", "shop.history"]),
        ("tag:nightly", ["shop.events"]),
        ("path:models/base", ["shop.events", "shop.history"]),
        ("path:models/base/events.sql", ["shop.events"]),
        # A model that is named is selected, and the operation reports that it has no index.
        (["plain", "tag:nightly", "events"], ["shop.plain", "shop.events"]),
        ([], []),
    ],
)
def test_selections(selected: Any, labels: list[str]) -> None:
    found = tables_of(GRAPH, selected)
    assert [table.label for table in found] == labels
    assert all(table.name == "`shop`." + f"`{table.label[5:]}`" for table in found)


def test_a_schema_may_have_a_catalog_before_it() -> None:
    graph = {"nodes": {"model.shop.events": node("events", schema="spark_catalog.shop")}}
    (table,) = tables_of(graph, None)
    assert table.name == "`spark_catalog`.`shop`.`events`"
    assert table.label == "spark_catalog.shop.events"


def test_a_version_of_a_model_is_selected_by_its_number() -> None:
    versions = [node("orders", alias=f"orders_v{n}", version=n) for n in (1, 2)]
    graph = {"nodes": {f"model.shop.orders.v{n['version']}": n for n in versions}}
    (table,) = tables_of(graph, "orders.v2")
    assert table.label == "shop.orders_v2"
    assert len(tables_of(graph, "orders")) == 2
    with pytest.raises(DbtRuntimeError, match=r"the models are orders\.v1, orders\.v2$"):
        tables_of(graph, "orders.v3")


@pytest.mark.parametrize("selected", ["event", "tag:weekly", "path:models/b", ["events", "x"]])
def test_a_selection_of_nothing_is_an_error(selected: Any) -> None:
    with pytest.raises(DbtRuntimeError, match=r" selects no model; the models are events"):
        tables_of(GRAPH, selected)


@pytest.mark.parametrize(
    "arguments",
    [
        {"table": ""},
        {"table": " "},
        {"table": ["events"]},
        {"table": 5},
        {"models": ""},
        {"models": []},
        {"models": [""]},
        {"models": 5},
        {"models": ["events", 5]},
        {"models": {"events": 1}},
    ],
)
def test_what_names_no_table_is_not_taken_for_all_of_them(arguments: dict[str, Any]) -> None:
    nowhere: Any = None
    ((key, value),) = arguments.items()
    told = rf"{key} is the name .*, not {re.escape(repr(value))}\. To take "
    with pytest.raises(DbtRuntimeError, match=told):
        run(nowhere, "optimize", GRAPH, arguments)


def test_a_table_and_models_at_once_are_an_error() -> None:
    arguments = {"table": "raw.events", "models": ["events"], "dry_run": True}
    nowhere: Any = None
    with pytest.raises(DbtRuntimeError, match=r"table='raw.events' and models=\['events'\]"):
        run(nowhere, "convert_to_qbeast", GRAPH, arguments)


def test_no_page_replaces_another(tmp_path: Path) -> None:
    tables = [ModelTable(f"`a`.`{name}`", f"a.{name}") for name in ("orders", "events")]
    _check_one_page_each(tables, {"path": str(tmp_path)})
    _check_one_page_each(tables[:1], {"path": "index.html"})
    told = "a.orders and .* would both be written to "
    with pytest.raises(DbtRuntimeError, match=told + "index.html: name one of them with models"):
        _check_one_page_each(tables, {"path": "index.html"})
    of_other = ModelTable("`b`.`orders`", "b.orders")
    with pytest.raises(DbtRuntimeError, match=told + "orders.html"):
        _check_one_page_each([*tables, of_other], {})
