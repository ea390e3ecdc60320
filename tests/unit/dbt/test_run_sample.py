"""Whether a run is one on a sample, and what it builds its tables from."""

import re
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.qbeast.credentials import QbeastCredentials
from dbt.adapters.qbeast.sampling.fraction import (
    fraction_of_node,
    fraction_of_run,
    sample_of_test,
)
from dbt.adapters.qbeast.sampling.inputs import Input
from dbt.adapters.qbeast.sampling.marks import (
    SampledInput,
    digest,
    sample_properties,
    view_properties,
)
from dbt.adapters.qbeast.sampling.run_sample import (
    parts_of,
    sampled_by_its_text,
    sampled_inputs_error,
)
from dbt.config.project import VarProvider
from dbt_common.exceptions import DbtRuntimeError


def read(table: str, view: str | None = None, is_exempt: bool = False) -> Input:
    return Input(table, f"model.{table}", is_exempt, view=view)


SAMPLED, WHOLE, SMALL = read("sampled"), read("whole"), read("small")
LEFT_WHOLE = read("whole", is_exempt=True)
VIEW, SAMPLING_VIEW = read("view"), read("sampling_view")
# What the tables and views have as properties. The other ones have none.
PROPERTIES = {
    "sampled": sample_properties((SampledInput(0.1, "s"),)),
    "sampled_by_old": sample_properties((SampledInput(0.1),)),
    "view_of_sampled": view_properties((SampledInput(0.1, "s"),), []),
    "sampling_view": view_properties((SampledInput(0.1, "w"),), ["whole"]),
    "view_by_old": sample_properties((SampledInput(0.1),)),
}
A_TENTH = SampledInput(0.1, digest("model.whole", "id IntegerType()"))
ALL = SampledInput(1.0)


def run(
    which: str = "run", variable: Any = None, variables: Mapping[str, Any] = {}, **target: Any
) -> Any:
    """A command's configuration with that variable, those of the project and keys of the target."""
    return SimpleNamespace(
        project_name="shop",
        vars=VarProvider(dict(variables)),
        credentials=QbeastCredentials.from_dict({"schema": "s", **target}),
        cli_vars={} if variable is None else {"qbeast_sample": variable},
        args=SimpleNamespace(which=which),
        target_name="prod",
    )


def fraction(*args: Any, **target: Any) -> float | None:
    return fraction_of_run(run(*args, **target))


def test_the_variable_overrides_the_target() -> None:
    assert fraction() is None
    assert fraction(allow_sampled_build=True) is None
    assert fraction(allow_sampled_build=True, sample=0.1) == 0.1
    assert fraction(allow_sampled_build=True, sample=0.1, variable="0.01") == 0.01
    assert fraction(allow_sampled_build=True, sample=0.1, variable=1) is None


def test_a_variable_of_the_project_overrides_the_target_only() -> None:
    of_all, of_shop = {"qbeast_sample": 0.2}, {"shop": {"qbeast_sample": 0.3}}
    allowed = {"allow_sampled_build": True, "sample": 0.1}
    assert fraction(variables=of_all, **allowed) == 0.2
    assert fraction(variables={**of_all, **of_shop}, **allowed) == 0.3
    assert fraction(variables={"other": {"qbeast_sample": 0.4}}, **allowed) == 0.1
    assert fraction(variables=of_shop, variable=0.5, **allowed) == 0.5
    with pytest.raises(DbtRuntimeError, match=r"`allow_sampled_build: true`"):
        fraction(variables=of_all)


@pytest.mark.parametrize("command", ["run-operation", "generate", "list", "freshness", "clone"])
def test_some_commands_look_at_whole_tables(command: str) -> None:
    assert fraction(command, allow_sampled_build=True, sample=0.1) is None


def test_a_target_must_allow_samples() -> None:
    with pytest.raises(DbtRuntimeError, match=r"target 'prod' .* `allow_sampled_build: true`"):
        fraction(variable=0.1)
    assert fraction(variable=1) is None
    with pytest.raises(DbtRuntimeError, match="between 0 and 1"):
        fraction(variable=10, allow_sampled_build=True)


@pytest.mark.parametrize(
    ("resource_type", "config", "expected"),
    [
        ("test", {"sample": 1}, None),
        ("test", {"meta": {"sample": "1.0"}}, None),
        ("test", {"sample": 0.5}, 0.1),
        ("test", {}, 0.1),
        ("model", {"sample": 1}, 0.1),
        ("function", {}, None),
    ],
)
def test_functions_and_some_tests_read_all_rows(
    resource_type: str, config: dict[str, Any], expected: float | None
) -> None:
    on_a_sample = run(allow_sampled_build=True, sample=0.1)
    assert fraction_of_node(on_a_sample, resource_type, config) == expected


def parts(inputs: list[Input], fraction: float | None, weights: str = "id IntegerType()") -> Any:
    return parts_of(
        inputs,
        fraction,
        properties=lambda table: PROPERTIES.get(table, {}),
        sampleable=lambda table: table in ("whole", "also_whole"),
        weights=lambda _: weights,
    )


@pytest.mark.parametrize(
    ("inputs", "fraction", "expected"),
    [
        ([], 0.1, ()),
        ([SMALL, LEFT_WHOLE], 0.1, ()),
        ([WHOLE, SMALL], None, ()),
        ([WHOLE, SMALL, LEFT_WHOLE], 0.1, (A_TENTH,)),
        ([WHOLE], 0.0, (A_TENTH._replace(fraction=0.0),)),
        ([SAMPLED, SMALL, LEFT_WHOLE], None, (SampledInput(0.1, "s"),)),
        ([SAMPLED, WHOLE], 0.1, (A_TENTH, SampledInput(0.1, "s"))),
        ([SAMPLED, WHOLE], 0.01, (A_TENTH._replace(fraction=0.01), SampledInput(0.1, "s"))),
        ([WHOLE, SAMPLED], None, (SampledInput(0.1, "s"), ALL)),
        ([VIEW, read("whole", "view")], 0.1, ()),
        ([VIEW, read("whole", "view"), SAMPLED], 0.1, (SampledInput(0.1, "s"), ALL)),
        ([VIEW, read("sampled", "view")], None, (SampledInput(0.1, "s"),)),
        ([SAMPLING_VIEW, read("whole", "sampling_view")], 0.1, (SampledInput(0.1, "w"),)),
        ([SAMPLING_VIEW, read("also_whole", "sampling_view")], 0.1, (SampledInput(0.1, "w"), ALL)),
        # The table was a sample when the view was created, and has all rows now.
        (
            [read("view_of_sampled"), read("whole", "view_of_sampled")],
            0.1,
            (SampledInput(0.1, "s"), ALL),
        ),
        ([read("view_by_old"), read("whole", "view_by_old")], 0.1, (SampledInput(0.1),)),
        ([read("sampled_by_old")], 0.1, (SampledInput(0.1),)),
    ],
)
def test_every_part_of_the_inputs_counts(
    inputs: list[Input], fraction: float | None, expected: tuple[SampledInput, ...]
) -> None:
    assert sorted(parts(inputs, fraction)) == sorted(expected)


def test_a_sample_by_other_columns_has_other_rows() -> None:
    assert parts([WHOLE], 0.1) == parts([WHOLE, WHOLE], 0.1)
    assert parts([WHOLE], 0.1) != parts([WHOLE], 0.1, weights="day DateType()")
    assert parts([WHOLE], 0.1) != parts([read("also_whole")], 0.1)
    # The state's table is sampled like the target's own.
    of_state = [replace(WHOLE, is_built_here=False)]
    assert parts(of_state, 0.1) == parts([WHOLE], 0.1)


def test_a_view_that_samples_a_sample_must_be_rebuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROPERTIES, "whole", PROPERTIES["sampled"])
    told = "view sampling_view samples whole, .*: rebuild sampling_view before what reads it"
    with pytest.raises(DbtRuntimeError, match=told):
        parts([SAMPLING_VIEW, read("whole", "sampling_view")], 0.1)
    assert parts([SAMPLING_VIEW], 0.1) == (SampledInput(0.1, "w"),)


def test_a_target_without_samples_refuses_sampled_inputs() -> None:
    marks = {"`raw`.`t`": (SampledInput(0.01, "s"),), "`raw`.`whole`": ()}
    told = "\n  raw.t was built from a sample of 1 percent, and target 'prod' .*allow_sampled"
    assert re.search(told, str(sampled_inputs_error("prod", marks)))


def test_an_ephemeral_model_samples_what_its_own_text_reads() -> None:
    def sampleable(table: str) -> bool:
        return table == "whole"

    assert (
        sampled_by_its_text([SAMPLED, SMALL, LEFT_WHOLE, read("whole", view="view")], sampleable)
        == []
    )
    assert sampled_by_its_text([SMALL, WHOLE], sampleable) == ["whole"]


def test_a_tests_sample_may_stand_in_its_meta() -> None:
    assert sample_of_test({"sample": 0.1, "meta": {"sample": 0.5}}) == 0.1
    assert sample_of_test({"meta": {"sample": 0.5}}) == 0.5
    assert sample_of_test({}) is None
