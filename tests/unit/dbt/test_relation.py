"""How a relation that stands for a sample is written, and how one is found."""

from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.base.relation import EventTimeFilter
from dbt.adapters.qbeast.impl import QbeastAdapter
from dbt.adapters.qbeast.relation import (
    QbeastRelation,
    parse_fraction,
    percent,
    table_name,
)
from dbt_common.exceptions import DbtRuntimeError

EVENTS = QbeastRelation.create(schema="s", identifier="events", type="table")


def test_a_sample_is_a_subquery_and_renders_as_its_name() -> None:
    sampled = EVENTS.sampled("0.01")
    assert str(sampled) == "(select * from s.events tablesample (1 percent))"
    assert sampled.render() == "s.events"
    assert str(EVENTS) == "s.events"


def test_a_sample_of_the_run_is_marked_whatever_is_made_of_it() -> None:
    of_run = EVENTS.sampled(0.1).replace(is_run_sample=True)
    assert str(of_run) == "(select * from s.events tablesample (10 percent /* of this run */))"
    assert "tablesample (1 percent /* of this run */)" in str(of_run.sampled(0.01))
    assert "/* of this run */" in str(of_run.replace(limit=0))


def test_a_sample_of_a_sample_is_the_smaller_of_both() -> None:
    assert EVENTS.sampled(0.1).sampled(0.01) == EVENTS.sampled(0.01).sampled(0.1)
    assert EVENTS.sampled(0.1).sampled(0.01).sample == 0.01


def test_a_relation_is_found_whatever_the_case_of_its_name_also_in_quotes() -> None:
    quoted = EVENTS.quote(schema=True, identifier=True)
    for relation in (EVENTS, quoted):
        assert relation.matches(schema="S", identifier="Events")
        assert not relation.matches(schema="s", identifier="events_2")


def test_empty_runs_stay_empty() -> None:
    sampled = EVENTS.replace(limit=0).sampled(0.5)
    text = "(select * from (select * from s.events tablesample (50 percent)) where false limit 0)"
    assert str(sampled) == text


@pytest.mark.parametrize(
    ("name", "column"), [("ts", "ts"), ("a.ts", "a.ts"), ('"the `ts`"', "`the ``ts```")]
)
def test_dbts_filter_quotes_a_column_as_spark_does(name: str, column: str) -> None:
    start = datetime(2024, 1, 2, tzinfo=timezone.utc)
    filtered = EVENTS.replace(event_time_filter=EventTimeFilter(name, start=start))
    assert f" where {column} >= '2024-01-02 00:00:00+00:00')" in str(filtered)


def test_a_function_is_never_sampled() -> None:
    node: Any = SimpleNamespace(
        database=None, schema="s", identifier="f", quoting_dict={}, catalog_name=None, config={}
    )
    project: Any = SimpleNamespace(quoting={})
    # dbt's arguments while a node runs; there is no adapter that could look the name up.
    function = QbeastRelation.create_from(
        project, node, event_time_filter=None, type=QbeastRelation.Function
    )
    assert str(function) == "s.f"


@pytest.mark.parametrize(
    ("fraction", "text"), [(0.1, "10"), (1e-7, "0.00001"), (0.29, "29"), (1.0, "100"), (0.0, "0")]
)
def test_percent_is_exact(fraction: float, text: str) -> None:
    assert percent(fraction) == text


@pytest.mark.parametrize("value", [1.1, -0.1, "ten", None, True, float("nan")])
def test_invalid_fractions_are_rejected(value: Any) -> None:
    with pytest.raises(DbtRuntimeError, match="between 0 and 1"):
        parse_fraction(value)


def test_only_relations_can_be_sampled() -> None:
    adapter: Any = None  # the method needs no state
    with pytest.raises(DbtRuntimeError, match=r"dbt_subquery' cannot be sampled.* remove `where`"):
        QbeastAdapter.qbeast_sampled(adapter, "(select 1 where true) dbt_subquery", 0.1)


@pytest.mark.parametrize(
    ("names", "quoted"),
    [
        (("s", "t"), "`s`.`t`"),
        (("ice.db", "t"), "`ice`.`db`.`t`"),
        (("`ice.db`", "`/lake/a b.c`"), "`ice.db`.`/lake/a b.c`"),
        (("cat.`a.b`", "t`"), "`cat`.`a.b`.`t```"),
        (("`a``b`",), "`a``b`"),
        (("delta", "/lake/v1.0/clicks.v2"), "`delta`.`/lake/v1.0/clicks.v2`"),
        (("delta", "s3a://bucket.eu/clicks"), "`delta`.`s3a://bucket.eu/clicks`"),
        (("",), "``"),
    ],
)
def test_a_table_has_the_name_that_the_user_wrote(names: tuple[str, ...], quoted: str) -> None:
    assert table_name(*names) == quoted
