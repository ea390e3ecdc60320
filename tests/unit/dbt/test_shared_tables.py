"""Nodes whose relations are one to Spark."""

from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.qbeast.models.shared_tables import check_own_relation, nodes_by_relation
from dbt_common.exceptions import DbtRuntimeError


def node(name: str, kind: str = "model", schema: str = "s", materialized: str = "table") -> Any:
    return SimpleNamespace(
        unique_id=f"{kind}.p.{name}",
        original_file_path=f"{kind}s/{name}.sql",
        resource_type=kind,
        schema=schema,
        alias=name,
        config={"materialized": materialized},
    )


@pytest.mark.parametrize("other", [node("twice"), node("twice", "seed"), node("twice", schema="S")])
def test_names_that_differ_in_case_only_are_refused(other: Any) -> None:
    own = node("Twice")
    nodes = nodes_by_relation([own, other])
    with pytest.raises(DbtRuntimeError, match=r"model\.p\.Twice .*\.p\.twice .* one relation"):
        check_own_relation(own, nodes)
    with pytest.raises(DbtRuntimeError, match=r"\.p\.twice .*model\.p\.Twice .* one relation"):
        check_own_relation(other, nodes)


@pytest.mark.parametrize(
    "other",
    [
        node("twice", schema="other"),
        node("twice", materialized="ephemeral"),
        node("twice", "test"),
        node("thrice"),
    ],
)
def test_other_relations_and_what_is_not_stored_may_have_any_name(other: Any) -> None:
    own = node("Twice")
    nodes = nodes_by_relation([own, other])
    for each in (own, other):
        check_own_relation(each, nodes)
