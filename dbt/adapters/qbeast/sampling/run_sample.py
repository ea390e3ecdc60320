"""Runs on a sample: the variable `qbeast_sample: 0.01`, or `sample: 0.01` in the target.

A node that reads an indexed table with all of its rows reads a sample of it. Tables built from a
sample are not sampled again. A table without an index is read whole, because Spark would read all
of it anyway. Tables and views built from a sample record that in properties (`marks.py`), and no
table ever gets rows of another sample, or of all data, added to those of its own.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from dbt.adapters.contracts.connection import AdapterRequiredConfig
from dbt.adapters.qbeast.relation import percent, plain_name
from dbt.adapters.qbeast.sampling.fraction import (
    allows_samples,
    command_of,
    fraction_of_node,
    fraction_of_run,
)
from dbt.adapters.qbeast.sampling.inputs import Deferral, Exists, Input, input_of, inputs_of
from dbt.adapters.qbeast.sampling.marks import (
    ALL_ROWS,
    BuiltFrom,
    SampledInput,
    check_same_sample,
    describe,
    digest,
    parse_built_from,
    sampled_by_view_of,
)
from dbt.adapters.qbeast.sampling.tables import is_indexed, open_table, properties_of
from dbt_common.exceptions import DbtRuntimeError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def is_sampleable(session: "SparkSession", table: str) -> bool:
    """Whether runs on a sample sample this table: it must have an index and all of its rows."""
    return is_indexed(session, table) and not built_from(session, table)


def built_from(session: "SparkSession", table: str) -> BuiltFrom:
    """What a table or view was built from, as its properties record it."""
    return parse_built_from(properties_of(session, table))


def weights_of(session: "SparkSession", table: str) -> str:
    """The columns whose hash is the weight of a table's rows. The hash depends on their types."""
    types = {field.name.lower(): field.dataType for field in session.table(table).schema.fields}
    names = map(str.lower, open_table(session, table).latest_revision.weight_columns)
    return ", ".join(f"{name} {types.get(name)}" for name in names)


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

    def of_node(self, node: Mapping[str, Any]) -> BuiltFrom:
        """The parts of its inputs that a node reads.

        If the target does not allow samples, only inputs that others build are looked up. Raises
        DbtRuntimeError if one is built from a sample, unless the node is a test.
        """
        fraction = fraction_of_node(self.config, node["resource_type"], node["config"])
        inputs = self._inputs(node)
        properties = cache(partial(properties_of, self.session))
        if not allows_samples(self.config):
            of_others = (each.table for each in inputs if not each.is_built_here)
            marks = {table: parse_built_from(properties(table)) for table in of_others}
            if not any(marks.values()):
                return ALL_ROWS
            if node["resource_type"] != "test":
                raise sampled_inputs_error(self.config.target_name, marks)
        return parts_of(
            inputs,
            fraction,
            properties=properties,
            sampleable=cache(partial(is_sampleable, self.session)),
            weights=partial(weights_of, self.session),
        )

    def sampled_by(self, node: Mapping[str, Any]) -> list[str]:
        """The tables that the text of a node samples."""
        fraction = fraction_of_node(self.config, node["resource_type"], node["config"])
        if fraction is None:
            return []
        return sampled_by_its_text(self._inputs(node), partial(is_sampleable, self.session))

    def reader(self, node: Mapping[str, Any]) -> "Callable[[str], DataFrame]":
        """What `dbt.ref` and `dbt.source` of a Python model call with the name of a table."""
        fraction = fraction_of_run(self.config)
        if fraction is None:
            return self.session.table
        inputs = self._inputs(node)
        sampled = {plain_name(each.table) for each in inputs if not each.is_exempt}
        # A table that the model reads itself is sampled here, even if it is exempt in a function.
        exempt = {plain_name(each.table) for each in inputs if each.is_exempt} - sampled

        def read(table: str) -> "DataFrame":
            if plain_name(table) in exempt or not is_sampleable(self.session, table):
                return self.session.table(table)
            return open_table(self.session, table).sample(fraction, with_slices=True)

        return read

    def notes_of_test(self, sql: str, test: Mapping[str, Any]) -> list[str]:
        """The log lines of a test: the samples in its text or, without any, those of its inputs."""
        from dbt.adapters.qbeast.sampling.spans import find_samples

        notes = [
            f"reads a sample of {percent(sample.fraction)} percent of {sample.label}"
            for sample in find_samples(self.session, sql).rewritable
        ]
        inputs_built_from = ALL_ROWS if notes else self.of_node(test)
        if inputs_built_from:
            notes.append(f"reads data built from {describe(inputs_built_from)}")
        return list(dict.fromkeys(notes))

    def check_reads_all_rows(self, ephemeral: Mapping[str, Any], reader: str) -> None:
        """Raises DbtRuntimeError if the text of an ephemeral model reads a sample.

        dbt compiles the text once in a run, so it cannot read all rows for one of its readers.
        """
        sampled = sampled_by_its_text(self._inputs(ephemeral), partial(is_sampleable, self.session))
        if sampled:
            name = ephemeral["name"]
            raise DbtRuntimeError(
                f"{reader} must read all rows, but the ephemeral model {name} reads a sample of "
                f"{', '.join(map(plain_name, sampled))} in this run, and dbt compiles {name} once "
                f"for all its readers: make {name} a view or a table"
            )

    def _inputs(self, node: Mapping[str, Any]) -> tuple[Input, ...]:
        if command_of(self.config) == "clone":
            # A clone reads the relation of the state, not the inputs of its node.
            of_state = node.get("defer_relation")
            if not of_state:
                return ()
            return (input_of(of_state, node["unique_id"], is_built_here=False),)
        return inputs_of(node, self.graph, Deferral.of_run(self.config, self.exists))


def parts_of(
    inputs: Iterable[Input],
    fraction: float | None,
    *,
    properties: Callable[[str], Mapping[str, str]],
    sampleable: Callable[[str], bool],
    weights: Callable[[str], str],
) -> BuiltFrom:
    """What is built from these inputs in a run on this fraction (None for all rows).

    Args:
        properties: those of a table or view.
        sampleable: whether a table has an index and all of its rows.
        weights: the columns that decide which rows a sample of a table has.

    Raises:
        DbtRuntimeError: a view samples a table that is now built from a sample itself.
    """
    found: set[SampledInput] = set()
    for given in inputs:
        mark = parse_built_from(properties(given.table))
        found.update(mark)
        sampled = sampled_by_view_of(properties(given.view)) if given.view else None
        if mark and sampled and given.table in sampled:
            raise stale_view_error(given)
        if given.is_exempt or not sampleable(given.table):
            continue
        if given.view:
            # If it is unknown, a view with a mark is taken to sample the table.
            if sampled is not None and given.table not in sampled:
                found.add(SampledInput(1.0))
        elif fraction is None:
            found.add(SampledInput(1.0))
        else:
            found.add(SampledInput(fraction, digest(given.node, weights(given.table))))
    return ALL_ROWS if found == {SampledInput(1.0)} else tuple(sorted(found))


def stale_view_error(given: Input) -> DbtRuntimeError:
    """The error about a view that samples this table, which is now a sample itself."""
    view = plain_name(given.view or "")
    return DbtRuntimeError(
        f"the view {view} samples {plain_name(given.table)}, which has been rebuilt from a sample "
        f"since the view was created: rebuild {view} before what reads it"
    )


def sampled_inputs_error(target: str, marks: Mapping[str, BuiltFrom]) -> DbtRuntimeError:
    """The error about inputs of a target that allows no samples.

    Args:
        marks: what each input was built from.
    """
    sampled = " and ".join(
        f"{plain_name(table)} was built from {describe(mark)}"
        for table, mark in marks.items()
        if mark
    )
    return DbtRuntimeError(
        f"{sampled}, and target {target!r} does not allow samples as inputs: rebuild the inputs "
        "with all rows or, if this is a development target, add `allow_sampled_build: true` to its "
        "profile"
    )


def sampled_by_its_text(inputs: Iterable[Input], sampleable: Callable[[str], bool]) -> list[str]:
    """The tables that an ephemeral model with these inputs samples in a run on a sample."""
    return [
        given.table
        for given in inputs
        if not (given.is_exempt or given.view) and sampleable(given.table)
    ]


def check_same_sample_as(session: "SparkSession", table: str, added: BuiltFrom) -> None:
    """Raises DbtRuntimeError if the rows to add come from a different sample than the table's."""
    check_same_sample(plain_name(table), built_from(session, table), added)
