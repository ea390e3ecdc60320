"""Whether a run is one on a sample."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.qbeast.credentials import QbeastCredentials
from dbt.adapters.qbeast.sampling.inputs import Input
from dbt.adapters.qbeast.sampling.run_sample import (
    fraction_of_node,
    fraction_of_run,
    fractions_of,
    refuse_mixture,
    sampled_by_its_text,
)
from dbt.config.project import VarProvider
from dbt_common.exceptions import DbtRuntimeError

SAMPLED, WHOLE, LEFT_WHOLE, SMALL = (
    Input("sampled", is_left_whole=False),
    Input("whole", is_left_whole=False),
    Input("whole", is_left_whole=True),
    Input("small", is_left_whole=False),
)
IN_VIEW, IN_SAMPLED_VIEW, SAMPLED_IN_VIEW = (
    Input("whole", is_left_whole=False, view="view"),
    Input("whole", is_left_whole=False, view="sampled"),
    Input("sampled", is_left_whole=False, view="view"),
)


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


def test_the_variable_goes_before_the_target() -> None:
    assert fraction() is None
    assert fraction(allow_sampled_build=True) is None
    assert fraction(allow_sampled_build=True, sample=0.1) == 0.1
    assert fraction(allow_sampled_build=True, sample=0.1, variable="0.01") == 0.01
    assert fraction(allow_sampled_build=True, sample=0.1, variable=1) is None


def test_a_variable_of_the_project_goes_between_them() -> None:
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


def test_a_target_has_to_allow_it() -> None:
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


@pytest.mark.parametrize(
    ("inputs", "fraction", "expected"),
    [
        ([], 0.1, ()),
        ([SMALL, LEFT_WHOLE], 0.1, ()),
        ([WHOLE, SMALL], None, ()),
        ([WHOLE, SMALL, LEFT_WHOLE], 0.1, (0.1,)),
        ([WHOLE], 0.0, (0.0,)),
        ([SAMPLED, SMALL, LEFT_WHOLE], None, (0.1,)),
        ([SAMPLED, WHOLE], 0.1, (0.1,)),
        ([SAMPLED, WHOLE], 0.01, (0.01, 0.1)),
        ([WHOLE, SAMPLED], None, (0.1, 1.0)),
        ([IN_VIEW], 0.1, ()),
        ([IN_VIEW, SAMPLED], 0.1, (0.1, 1.0)),
        ([IN_SAMPLED_VIEW, SAMPLED], None, (0.1,)),
        ([SAMPLED_IN_VIEW], None, (0.1,)),
    ],
)
def test_every_fraction_of_the_inputs_counts(
    inputs: list[Input], fraction: float | None, expected: tuple[float, ...]
) -> None:
    def marks(table: str) -> tuple[float, ...]:
        return (0.1,) if table == "sampled" else ()

    assert fractions_of(inputs, fraction, marks, lambda table: table == "whole") == expected


def test_an_ephemeral_model_samples_what_its_own_text_reads() -> None:
    def is_whole(table: str) -> bool:
        return table == "whole"

    assert sampled_by_its_text([SAMPLED, SMALL, LEFT_WHOLE, IN_VIEW], is_whole) == []
    assert sampled_by_its_text([SMALL, WHOLE], is_whole) == ["whole"]


@pytest.mark.parametrize("same", [(), (0.1,)])
def test_rows_of_the_same_sample_are_added(same: tuple[float, ...]) -> None:
    refuse_mixture("s.t", same, same)


@pytest.mark.parametrize(
    ("present", "added", "told"),
    [
        ((0.1,), (), "s.t was built from a sample of 10 percent, .* from all rows: use the same"),
        ((), (0.1,), "from all rows, .* from a sample of 10 percent: .* --full-refresh"),
        ((0.1, 1.0), (0.1,), "from a sample of 10 percent and all rows, but .* --full-refresh"),
        ((0.1,), (0.1, 1.0), "inputs are a sample of 10 percent and all rows: .*`sample: false`"),
        ((0.01, 0.1), (0.01, 0.1), "inputs are a sample of 1 percent and a sample of 10 percent"),
    ],
)
def test_rows_of_other_samples_are_not_added(
    present: tuple[float, ...], added: tuple[float, ...], told: str
) -> None:
    with pytest.raises(DbtRuntimeError, match=told):
        refuse_mixture("s.t", present, added)
