"""The cells of the matrix: features, an index, settings, and the operations to go through."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from pyspark.sql import SparkSession

from qbeast_core import QbeastError
from qbeast_core.jvm.settings import changed_settings
from tests.matrix import features, settings
from tests.matrix.comparison import outcome, same_changes, same_kind, same_tables
from tests.matrix.operations import CONVERT, STEPS, Operation
from tests.matrix.pairs import pairwise, shares
from tests.matrix.settings import INDEXES, ONE, ROWS, SESSIONS, SETTINGS, spark_settings
from tests.matrix.twin import INDEXED, PLAIN, Twin, drop
from tests.support.faulty_store import FaultyStore

_FEATURE, _TOGETHER, _INDEX, _SESSIONS = "feature", "with", "index", "sessions"
_KEEP_ROWS = ("alter", "append", "plain append", "delete", "plain delete", "optimize", "compact")
"""What does not change a row of the table."""


@dataclass(frozen=True)
class Cell:
    """One table with an index, its twin, and the session that changes both."""

    features: tuple[str, ...]
    index: str = "numbers"
    settings: Mapping[str, str] | None = None
    operations: Collection[str] = tuple(operation.name for operation in STEPS)
    sessions: str = ONE

    def __str__(self) -> str:
        told = [" + ".join(self.features), self.index, f"sessions {self.sessions}"]
        return ", ".join(told + [f"{key} {value}" for key, value in (self.settings or {}).items()])


def all_cells() -> list[Cell]:
    """Cells with each pair of a feature, another feature, an index, settings and operations."""
    parameters: dict[str, Sequence[str]] = {
        _FEATURE: features.NAMES,
        _TOGETHER: features.TOGETHER,
        _INDEX: tuple(INDEXES),
        _SESSIONS: SESSIONS,
        **{name: tuple(values) for name, values in SETTINGS.items()},
    }
    found = pairwise(parameters)
    steps = [operation.name for operation in STEPS]
    needed = [operation.name for operation in STEPS if operation.is_needed]
    return [
        Cell(
            features.together(chosen.pop(_FEATURE), chosen.pop(_TOGETHER)),
            chosen.pop(_INDEX),
            chosen,
            share,
            sessions=chosen.pop(_SESSIONS),
        )
        for chosen, share in zip(found, shares(found, steps, needed), strict=True)
    ]


def run(spark: SparkSession, store: FaultyStore, cell: Cell) -> int:
    """Take both tables of a cell through its steps and compare them; how many steps were taken."""
    feature = features.feature(*cell.features)
    taken = 0
    with changed_settings(spark, {**spark_settings(cell.settings or {}), **feature.settings}):
        try:
            index = dict(INDEXES[feature.index or cell.index])
            if not feature.allows_slices:
                index.pop("slices", None)
            is_lenient = settings.is_lenient(cell.settings or {})
            twin = Twin(spark, feature, index, store, is_lenient, cell.sessions)
            twin.create()
            for operation in STEPS:
                if operation.name in cell.operations and operation.applies(twin):
                    taken += 1
                    if not _step(twin, operation):
                        break
                    if operation.is_marked:
                        twin.mark(operation.name)
        finally:
            for name in (INDEXED, PLAIN, f"{INDEXED}_new", f"{PLAIN}_new"):
                drop(spark, name)
    return taken


def _step(twin: Twin, operation: Operation) -> bool:
    """Do one operation to both tables and compare them; whether the table can have an index."""
    before = {name: twin.version(name) for name in (INDEXED, PLAIN)}
    with twin.second_is_used():
        ours = outcome(lambda: operation.indexed(twin))
    told = f"{operation.name}: {type(ours).__name__}: {ours}" if ours else operation.name
    if refused := _refused(twin, operation):
        assert type(ours) is refused, f"{told} is not refused with {refused.__name__}"
        assert twin.version(INDEXED) == before[INDEXED], told
        return operation is not CONVERT
    if operation.is_strict and twin.is_lenient:
        assert ours is not None, told
        assert twin.version(INDEXED) == before[INDEXED], told
        return True
    is_in_second = twin.sessions == ROWS and operation.is_of_the_rows_session
    with twin.second_is_used() if is_in_second else nullcontext():
        plain = outcome(lambda: operation.plain(twin))
    assert (ours is None) == (plain is None), f"{told}, but plain Delta: {plain or 'succeeds'}"
    if ours is not None and plain is not None:
        assert same_kind(ours, plain), f"{told}\n{plain}"
        assert twin.version(INDEXED) == before[INDEXED], told
        return True
    if before == {name: twin.version(name) for name in (INDEXED, PLAIN)}:
        return True
    try:
        same_tables(twin, keeps_rows=operation.kind in _KEEP_ROWS)
        # Delta's feed does not reach over a change of columns.
        if twin.has_property("delta.enableChangeDataFeed") and operation.kind != "alter":
            of_files = operation.kind == "restore"
            same_changes(twin, before[INDEXED], before[PLAIN], of_files=of_files)
    except AssertionError as error:
        raise AssertionError(f"after {told}: {error}") from error
    return True


def _refused(twin: Twin, operation: Operation) -> type[QbeastError] | None:
    """The error with which the index must refuse the operation; None if it must not.

    What depends on a column's name is only refused once the column has another name.
    """
    needs_alterations = bool(twin.feature.alterations) and operation is not CONVERT
    if needs_alterations and not twin.altered:
        return None
    return twin.feature.refused.get(operation.kind)
