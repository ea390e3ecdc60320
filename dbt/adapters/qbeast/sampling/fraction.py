"""The fraction of the rows that a run, its nodes and their inputs read."""

from collections.abc import Mapping
from typing import Any

from dbt.adapters.contracts.connection import AdapterRequiredConfig
from dbt.adapters.qbeast.credentials import QbeastCredentials
from dbt.adapters.qbeast.current_node import current_node
from dbt.adapters.qbeast.models.key_checks import check_no_sample
from dbt.adapters.qbeast.relation import parse_fraction
from dbt_common.exceptions import DbtRuntimeError

VARIABLE = "qbeast_sample"
# Commands that inspect or maintain tables and never read a sample.
_WITHOUT_A_SAMPLE = ("run-operation", "generate", "freshness", "list", "parse", "debug", "clone")


def fraction_of_run(config: AdapterRequiredConfig) -> float | None:
    """The fraction of a run on a sample; None for a run on all rows.

    Raises DbtRuntimeError if the value is not a fraction, or if the target allows no samples.
    """
    asked = _variables(config).get(VARIABLE, _credentials(config).sample)
    if asked is None or command_of(config) in _WITHOUT_A_SAMPLE:
        return None
    fraction = parse_fraction(asked)
    if fraction == 1:
        return None
    if not allows_samples(config):
        raise DbtRuntimeError(
            f"{VARIABLE}={asked!r} would build the tables of target {config.target_name!r} from a "
            "sample, which the target does not allow: run without it or, if it is a development "
            "target, add `allow_sampled_build: true` to its profile"
        )
    return fraction


def fraction_of_node(
    config: AdapterRequiredConfig, resource_type: str, node_config: Any
) -> float | None:
    """The fraction of the tables that one node reads; None for all rows.

    A data test with `sample: 1` reads all rows, and so does a function: Spark's catalog stores its
    text, which later runs on all rows call.
    """
    return None if must_read_all_rows(resource_type, node_config) else fraction_of_run(config)


def fraction_of_input(
    config: AdapterRequiredConfig, name: str, input_config: Mapping[str, Any]
) -> float | None:
    """The fraction of a table that the current node reads by `ref` or `source`; None for all rows.

    Args:
        name: the table's name, for messages.
        input_config: the configuration of the model, seed, snapshot or source.
    """
    check_no_sample(input_config, name)
    reader = current_node()
    fraction = fraction_of_node(
        config, getattr(reader, "resource_type", ""), getattr(reader, "config", {})
    )
    return None if input_config.get("sample") is False else fraction


def reader_of_all_rows(config: AdapterRequiredConfig) -> str | None:
    """The name of the current node, if it must read all rows although the run is on a sample."""
    reader = current_node()
    if reader is None or fraction_of_run(config) is None:
        return None
    return reader.name if must_read_all_rows(reader.resource_type, reader.config) else None


def must_read_all_rows(resource_type: str, node_config: Any) -> bool:
    """Whether a node reads all rows even in runs on a sample."""
    return resource_type == "function" or (resource_type == "test" and reads_all_rows(node_config))


def sample_of_test(config: Any) -> Any:
    """The `sample` in a data test's configuration or in its `meta`; None if there is none."""
    sample = config.get("sample")
    return sample if sample is not None else (config.get("meta") or {}).get("sample")


def reads_all_rows(config: Any) -> bool:
    """Whether a data test's configuration says `sample: 1`: all rows, even in runs on a sample."""
    sample = sample_of_test(config)
    return sample is not None and parse_fraction(sample) == 1


def command_of(config: AdapterRequiredConfig) -> str:
    """The command of this run, such as `build`."""
    return str(getattr(getattr(config, "args", None), "which", ""))


def is_sampled_by_time(config: AdapterRequiredConfig) -> bool:
    """Whether the run has dbt's own `--sample`."""
    return getattr(getattr(config, "args", None), "sample", None) is not None


def allows_samples(config: AdapterRequiredConfig) -> bool:
    """Whether tables of the run's target may be built from samples."""
    return _credentials(config).allow_sampled_build


def _variables(config: AdapterRequiredConfig) -> Mapping[str, Any]:
    """The variables of dbt_project.yml and, before them, of the command line."""
    of_project: Mapping[str, Any] = config.vars.to_dict()  # type: ignore[attr-defined]
    own = of_project.get(config.project_name)
    return {**of_project, **(own if isinstance(own, Mapping) else {}), **config.cli_vars}


def _credentials(config: AdapterRequiredConfig) -> QbeastCredentials:
    credentials: QbeastCredentials = config.credentials  # type: ignore[assignment]
    return credentials
