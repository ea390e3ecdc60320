"""Runs on a sample: the variable `qbeast_sample: 0.01`, or `sample: 0.01` in the target.

A node that reads an indexed table with all of its rows reads a sample of it. Tables built from a
sample are not sampled again. A table without an index is read whole, because Spark would read all
of it anyway. Tables and views built from a sample record that in a property, and no table ever
gets rows of another sample, or of all data, added to those of its own.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from dbt.adapters.contracts.connection import AdapterRequiredConfig
from dbt.adapters.qbeast.credentials import QbeastCredentials
from dbt.adapters.qbeast.current_node import current_node
from dbt.adapters.qbeast.models.configuration import (
    ALL_ROWS,
    Fractions,
    reads_all_rows,
    refuse_sample,
)
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
    asked = _variables(config).get(VARIABLE, credentials.sample)
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


def _variables(config: AdapterRequiredConfig) -> Mapping[str, Any]:
    """The variables of dbt_project.yml and, before them, of the command line."""
    of_project: Mapping[str, Any] = config.vars.to_dict()  # type: ignore[attr-defined]
    own = of_project.get(config.project_name)
    return {**of_project, **(own if isinstance(own, Mapping) else {}), **config.cli_vars}


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
    refuse_sample(input_config, name)
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
    """Whether a node reads all rows also in runs on a sample."""
    return resource_type == "function" or (resource_type == "test" and reads_all_rows(node_config))


def command_of(config: AdapterRequiredConfig) -> str:
    """The command of this run, such as `build`."""
    return str(getattr(getattr(config, "args", None), "which", ""))


def is_to_be_sampled(session: "SparkSession", table: str) -> bool:
    """Whether runs on a sample sample this table: it must have an index and all of its rows."""
    from qbeast_core import QbeastTable

    return QbeastTable.is_qbeast(session, table) and not built_from(session, table)


def built_from(session: "SparkSession", table: str) -> Fractions:
    """What a table was built from, as its property records it."""
    from qbeast_core import BUILT_FROM_SAMPLE, Catalog

    recorded = Catalog(session).properties(table).get(BUILT_FROM_SAMPLE)
    return tuple(map(float, recorded.split(","))) if recorded else ALL_ROWS


@dataclass(frozen=True)
class RunSample:
    """What a node of this run reads: SQL through `ref` and `source`, Python through `reader`."""

    session: "SparkSession"
    """The node's session."""
    config: AdapterRequiredConfig
    """The run's configuration."""
    graph: Mapping[str, Any]
    """The `graph` of dbt's context."""
    exists: Exists

    def of_node(self, node: Mapping[str, Any]) -> Fractions:
        """The fractions of all rows that the node's inputs have.

        If the target does not allow samples, these are all rows and no table is looked up.
        """
        fraction = fraction_of_node(self.config, node["resource_type"], node["config"])
        if not _credentials(self.config).allow_sampled_build:
            return ALL_ROWS
        marks = cache(partial(built_from, self.session))
        is_whole = cache(partial(is_to_be_sampled, self.session))
        return fractions_of(self._inputs(node), fraction, marks, is_whole)

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

    def notes_of_test(self, sql: str, test: Mapping[str, Any]) -> list[str]:
        """The log lines of a test: the samples in its text or, without any, those of its inputs."""
        from dbt.adapters.qbeast.sampling.spans import find_samples

        notes = [
            f"reads a sample of {percent(sample.fraction)} percent of {sample.label}"
            for sample in find_samples(self.session, sql).rewritable
        ]
        built_from = ALL_ROWS if notes else self.of_node(test)
        if built_from:
            notes.append(f"reads data built from {describe(built_from)}")
        return list(dict.fromkeys(notes))

    def require_whole(self, ephemeral: Mapping[str, Any], reader: str) -> None:
        """Raises DbtRuntimeError if the text of an ephemeral model reads a sample.

        dbt compiles the text once in a run, so it cannot read all rows for one of its readers.
        """
        sampled = sampled_by_its_text(
            self._inputs(ephemeral), partial(is_to_be_sampled, self.session)
        )
        if sampled:
            name = ephemeral["name"]
            raise DbtRuntimeError(
                f"{reader} must read all rows, but the ephemeral model {name} reads a sample of "
                f"{', '.join(map(_plain, sampled))} in this run, and dbt compiles {name} once for "
                f"all its readers: make {name} a view or a table"
            )

    def _inputs(self, node: Mapping[str, Any]) -> tuple[Input, ...]:
        if command_of(self.config) == "clone":
            # A clone reads the relation of the state, not the inputs of its node.
            of_state = node.get("defer_relation")
            return (input_of(of_state),) if of_state else ()
        return inputs_of(node, self.graph, Deferral.of_run(self.config, self.exists))


def fractions_of(
    inputs: Iterable[Input],
    fraction: float | None,
    marks: Callable[[str], Fractions],
    is_whole: Callable[[str], bool],
) -> Fractions:
    """What is built from these inputs in a run on this fraction (None for all rows).

    Args:
        marks: what a table was built from.
        is_whole: whether a table has an index and all of its rows.
    """
    found: set[float] = set()
    for given in inputs:
        found.update(marks(given.table))
        if given.is_left_whole or not is_whole(given.table):
            continue
        if given.view is None:
            found.add(1.0 if fraction is None else fraction)
        elif not marks(given.view):
            # A view without a mark reads all rows, also in a run on a sample.
            found.add(1.0)
    return ALL_ROWS if found == {1.0} else tuple(sorted(found))


def sampled_by_its_text(inputs: Iterable[Input], is_whole: Callable[[str], bool]) -> list[str]:
    """The tables that an ephemeral model with these inputs samples in a run on a sample."""
    return [
        given.table
        for given in inputs
        if not (given.is_left_whole or given.view) and is_whole(given.table)
    ]


def require_no_mixture(session: "SparkSession", table: str, added: Fractions) -> None:
    """Raises DbtRuntimeError if the rows to add are of another sample than the table's rows."""
    refuse_mixture(_plain(table), built_from(session, table), added)


def refuse_mixture(table: str, present: Fractions, added: Fractions) -> None:
    """Raises DbtRuntimeError if rows built from `added` may not join those built from `present`."""
    if len(added) > 1:
        raise DbtRuntimeError(
            f"this run would add rows to {table} whose inputs are {describe(added)}: rebuild the "
            f"inputs with the same {VARIABLE}, or set `sample: false` on those to read whole"
        )
    if present != added:
        raise DbtRuntimeError(
            f"{table} was built from {describe(present)}, but this run would add rows from "
            f"{describe(added)}: use the same {VARIABLE} as before for all inputs, or rebuild the "
            "table with --full-refresh, which keeps only the rows of that run (a snapshot must be "
            "dropped for that, and loses its history)"
        )


def describe(fractions: Fractions) -> str:
    """What a table is built from, in words.

    >>> describe((0.01,)), describe((0.1, 1.0)), describe(ALL_ROWS)
    ('a sample of 1 percent', 'a sample of 10 percent and all rows', 'all rows')
    """
    return " and ".join(
        "all rows" if each == 1 else f"a sample of {percent(each)} percent"
        for each in fractions or (1.0,)
    )


def _plain(table: str) -> str:
    """The name of a table without backticks."""
    return table.replace("`", "")


def _credentials(config: AdapterRequiredConfig) -> QbeastCredentials:
    credentials: QbeastCredentials = config.credentials  # type: ignore[assignment]
    return credentials
