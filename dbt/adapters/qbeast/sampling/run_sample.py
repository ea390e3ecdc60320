"""Runs on a sample: `--vars '{qbeast_sample: 0.01}'`, or `sample: 0.01` in the target.

A node that reads an indexed table with all of its rows reads a sample of it. Tables built from a
sample are not sampled again. A table without an index is read whole, because Spark would read all
of it anyway. Tables and views built from a sample record that in a property, and no table ever
mixes rows of a sample with rows of another sample or of all data.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbt.adapters.contracts.connection import AdapterRequiredConfig
from dbt.adapters.qbeast.credentials import QbeastCredentials
from dbt.adapters.qbeast.models.configuration import reads_all_rows
from dbt.adapters.qbeast.relation import parse_fraction, percent
from dbt.adapters.qbeast.sampling.inputs import Deferral, Exists, Input, input_of, inputs_of
from dbt_common.exceptions import DbtRuntimeError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VARIABLE = "qbeast_sample"
# Commands that inspect or maintain tables and never read a sample.
_WITHOUT_A_SAMPLE = ("run-operation", "generate", "freshness", "list", "parse", "debug", "clone")


def fraction_of_run(config: AdapterRequiredConfig) -> float | None:
    """The fraction of a run on a sample; None for a run on all rows.

    Raises DbtRuntimeError if the value is not a fraction, or if the target allows no samples.
    """
    credentials = _credentials(config)
    asked = config.cli_vars.get(VARIABLE, credentials.sample)
    if asked is None or command_of(config) in _WITHOUT_A_SAMPLE:
        return None
    fraction = parse_fraction(asked)
    if fraction == 1:
        return None
    if not credentials.allow_sampled_build:
        raise DbtRuntimeError(
            f"{VARIABLE}={asked!r} would build the tables of target {config.target_name!r} from a "
            "sample, which the target does not allow: run without it or, if it is a development "
            "target, add `allow_sampled_build: true` to its profile"
        )
    return fraction


def fraction_of_node(
    config: AdapterRequiredConfig, resource_type: str, node_config: Any
) -> float | None:
    """The same for what one node reads; None also for a data test with `sample: 1`.

    A function reads all rows: Spark's catalog stores its text, which later runs on all rows call.
    """
    if resource_type == "function" or (resource_type == "test" and reads_all_rows(node_config)):
        return None
    return fraction_of_run(config)


def command_of(config: AdapterRequiredConfig) -> str:
    """The command of this run, such as `build`."""
    return str(getattr(getattr(config, "args", None), "which", ""))


def is_to_be_sampled(session: "SparkSession", table: str) -> bool:
    """Whether runs on a sample sample this table: it must have an index and all of its rows."""
    from qbeast_core import QbeastTable

    return QbeastTable.is_qbeast(session, table) and built_from(session, table) is None


def built_from(session: "SparkSession", table: str) -> float | None:
    """The fraction of the sample that a table was built from; None if it has all rows."""
    from qbeast_core import BUILT_FROM_SAMPLE, Catalog

    fraction = Catalog(session).properties(table).get(BUILT_FROM_SAMPLE)
    return None if fraction is None else float(fraction)


@dataclass(frozen=True)
class RunSample:
    """What a node of this run reads: SQL through `ref` and `source`, Python through `reader`.

    Attributes:
        session: the node's session.
        config: the run's configuration.
        graph: the `graph` of dbt's context.
        exists: whether the target has a relation.
    """

    session: "SparkSession"
    config: AdapterRequiredConfig
    graph: Mapping[str, Any]
    exists: Exists

    def of_node(self, node: Mapping[str, Any]) -> float | None:
        """The fraction of all rows that the node's inputs have; None if they have all rows.

        If the target does not allow samples, the result is None and no table is looked up.
        """
        fraction = fraction_of_node(self.config, node["resource_type"], node["config"])
        if not _credentials(self.config).allow_sampled_build:
            return None
        found = [self._of_input(given, fraction) for given in self._inputs(node)]
        return min((f for f in found if f is not None), default=None)

    def reader(self, node: Mapping[str, Any]) -> "Callable[[str], DataFrame]":
        """What `dbt.ref` and `dbt.source` of a Python model call with the name of a table."""
        from qbeast_core import QbeastTable

        fraction = fraction_of_run(self.config)
        if fraction is None:
            return self.session.table
        whole: dict[bool, set[str]] = {True: set(), False: set()}
        for given in self._inputs(node):
            whole[given.is_left_whole].add(_plain(given.table))
        # A table that only a function of the model leaves whole is sampled here.
        left_whole = whole[True] - whole[False]

        def read(table: str) -> "DataFrame":
            if _plain(table) in left_whole or not is_to_be_sampled(self.session, table):
                return self.session.table(table)
            return QbeastTable.for_name(self.session, table).sample(fraction, stored=True)

        return read

    def _inputs(self, node: Mapping[str, Any]) -> Iterator[Input]:
        if command_of(self.config) == "clone":
            # A clone reads the relation of the state, not the inputs of its node.
            of_state = node.get("defer_relation")
            return iter([input_of(of_state)] if of_state else [])
        return inputs_of(node, self.graph, Deferral.of_run(self.config, self.exists))

    def _of_input(self, given: Input, fraction: float | None) -> float | None:
        present = built_from(self.session, given.table)
        if present is not None or fraction is None or given.is_left_whole:
            return present
        return fraction if is_to_be_sampled(self.session, given.table) else None


def require_no_mixture(session: "SparkSession", table: str, fraction: float | None) -> None:
    """Raises DbtRuntimeError if the rows to add are of another sample than the table's rows."""
    present = built_from(session, table)
    if present != fraction:
        raise DbtRuntimeError(
            f"{_plain(table)} was built from {describe_fraction(present)}, but this run would add "
            f"rows from {describe_fraction(fraction)}: use the same {VARIABLE} as before, or "
            "rebuild the table with --full-refresh, which keeps only the rows of that run (a "
            "snapshot must be dropped for that, and loses its history)"
        )


def describe_fraction(fraction: float | None) -> str:
    """A fraction in words.

    >>> describe_fraction(0.01), describe_fraction(None)
    ('a sample of 1 percent', 'all rows')
    """
    return "all rows" if fraction is None else f"a sample of {percent(fraction)} percent"


def _plain(table: str) -> str:
    """The name of a table without backticks."""
    return table.replace("`", "")


def _credentials(config: AdapterRequiredConfig) -> QbeastCredentials:
    credentials: QbeastCredentials = config.credentials  # type: ignore[assignment]
    return credentials
