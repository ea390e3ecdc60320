"""What tables and views are built from, and the properties that record it."""

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import NamedTuple

from dbt.adapters.qbeast.relation import percent
from dbt_common.exceptions import DbtRuntimeError

SAMPLED_BY_VIEW = "qbeast.sampledByView"
"""The property of a view with the tables that its own text samples, as a JSON list."""


class SampledInput(NamedTuple):
    """The part of an input's rows that a table is built from."""

    fraction: float
    """1 for all rows of an indexed input."""
    rows: str = ""
    """Which rows these are, from `digest`; empty for all rows, and if the property was written by a
    version that recorded only fractions."""


BuiltFrom = tuple[SampledInput, ...]
"""The parts of its inputs that a table or view is built from, in ascending order. Inputs that runs
on a sample read whole do not count. Empty if nothing is sampled.
"""
ALL_ROWS: BuiltFrom = ()


def digest(node: str, weights: str) -> str:
    """A short text that changes when a sample of the same fraction would have different rows.

    Args:
        node: the unique id of the sampled model or source.
        weights: its columns whose hash is a row's weight.
    """
    return hashlib.sha256(f"{node} {weights}".encode()).hexdigest()[:8]


def sample_properties(built_from: BuiltFrom) -> dict[str, str]:
    """The property that records what a table or view was built from; none for all rows.

    >>> sample_properties((SampledInput(0.1, "5f0c31aa"), SampledInput(1.0)))
    {'qbeast.builtFromSample': '0.1@5f0c31aa,1.0'}
    >>> sample_properties(ALL_ROWS)
    {}
    """
    # Its module imports numpy, and the adapter must load without it.
    from qbeast_core import BUILT_FROM_SAMPLE

    parts = (f"{part.fraction!r}@{part.rows}".rstrip("@") for part in built_from)
    return {BUILT_FROM_SAMPLE: ",".join(parts)} if built_from else {}


def view_properties(built_from: BuiltFrom, sampled: Collection[str]) -> dict[str, str]:
    """The properties of a view whose text samples these tables; none for all rows."""
    mark = sample_properties(built_from)
    return {**mark, SAMPLED_BY_VIEW: json.dumps(sorted(sampled))} if mark else {}


def parse_built_from(properties: Mapping[str, str]) -> BuiltFrom:
    """What the table or view with these properties was built from.

    >>> parse_built_from({"qbeast.builtFromSample": "0.1@5f0c31aa,1.0"})
    (SampledInput(fraction=0.1, rows='5f0c31aa'), SampledInput(fraction=1.0, rows=''))
    """
    from qbeast_core import BUILT_FROM_SAMPLE

    recorded = properties.get(BUILT_FROM_SAMPLE)
    if not recorded:
        return ALL_ROWS
    parts = (each.partition("@") for each in recorded.split(","))
    return tuple(SampledInput(float(fraction), rows) for fraction, _, rows in parts)


def sampled_by_view_of(properties: Mapping[str, str]) -> frozenset[str] | None:
    """The tables that the text of the view with these properties samples; None if unknown."""
    recorded = properties.get(SAMPLED_BY_VIEW)
    if recorded is not None:
        return frozenset(json.loads(recorded))
    return None if parse_built_from(properties) else frozenset()


def fractions(built_from: BuiltFrom) -> tuple[float, ...]:
    return tuple(sorted({part.fraction for part in built_from}))


def check_same_sample(table: str, present: BuiltFrom, added: BuiltFrom) -> None:
    """Raises DbtRuntimeError if the rows to add come from a different sample than the table's.

    Args:
        present: what the table was built from.
        added: what the rows to add are built from.
    """
    rebuild = (
        "rebuild the table with --full-refresh, which keeps only the rows of that run (a snapshot "
        "must be dropped for that, and loses its history)"
    )
    if len(fractions(added)) > 1:
        raise DbtRuntimeError(
            f"this run would add rows to {table} from inputs that do not match "
            f"({describe(added)}): rebuild the inputs with the same qbeast_sample, or set "
            "`sample: false` on the inputs that should be read in full"
        )
    if fractions(present) != fractions(added):
        raise DbtRuntimeError(
            f"{table} was built from {describe(present)}, but this run would add rows from "
            f"{describe(added)}: use the same qbeast_sample as before for all inputs, or {rebuild}"
        )
    is_known = all(part.rows for part in (*present, *added))
    if is_known and present != added:
        raise DbtRuntimeError(
            f"{table} was built from {describe(present)}, and this run would add rows of a "
            "different sample of the same size, because the sampled tables, their sample_key or "
            f"their columns_to_index have changed: undo the change, or {rebuild}"
        )


def describe(built_from: BuiltFrom) -> str:
    """What a table is built from, in words.

    >>> describe((SampledInput(0.1), SampledInput(1.0))), describe(ALL_ROWS)
    ('a sample of 10 percent and all rows', 'all rows')
    """
    return " and ".join(
        "all rows" if each == 1 else f"a sample of {percent(each)} percent"
        for each in fractions(built_from) or (1.0,)
    )
