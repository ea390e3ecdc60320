"""Whether a run is one on a sample."""

from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.qbeast.credentials import QbeastCredentials
from dbt.adapters.qbeast.sampling.run_sample import fraction_of_node, fraction_of_run
from dbt_common.exceptions import DbtRuntimeError


def run(which: str = "run", variable: Any = None, **target: Any) -> Any:
    """The configuration of a command with that variable, on a target with those keys."""
    return SimpleNamespace(
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
