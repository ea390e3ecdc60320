"""Every feature with every operation, beside a plain Delta table, under pairs of settings.

`make test` tries each feature once; `make matrix` all pairs of features and settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from pyspark.sql import SparkSession

from qbeast_core import QbeastError
from qbeast_core.jvm.settings import changed_settings
from tests.matrix import operations, settings
from tests.matrix.features import FEATURES
from tests.matrix.operations import CONVERT, MARKS, STEPS, Operation
from tests.matrix.pairs import pairwise
from tests.matrix.twin import (
    INDEXED,
    PLAIN,
    Twin,
    described,
    index_is_right,
    kind,
    outcome,
    same_rows,
)

NAMES = [feature.name for feature in FEATURES]
CELLS = pairwise(
    {"feature": NAMES, **{name: settings.values_of(name) for name in settings.SETTINGS}}
)


@pytest.fixture
def no_tables(spark: SparkSession) -> Iterator[None]:
    yield
    for name in (INDEXED, PLAIN):
        spark.sql(f"drop table if exists {name}")


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: described(cell))
def test_it_is_what_plain_delta_is(
    spark: SparkSession, no_tables: None, cell: Mapping[str, str]
) -> None:
    choice = dict(cell)
    feature = FEATURES[NAMES.index(choice.pop("feature"))]
    with changed_settings(spark, {**settings.spark_settings(choice), **feature.settings}):
        twin = Twin(spark, feature)
        operations.create(twin)
        for operation in STEPS:
            if operation.applies(twin) and not step(twin, operation):
                break


def step(twin: Twin, operation: Operation) -> bool:
    """Do one operation to both tables and compare them; whether the index takes such tables."""
    before, plain_before = twin.version(INDEXED), twin.version(PLAIN)
    ours = outcome(lambda: operation.indexed(twin))
    told = f"{operation.name}: {kind(ours)}: {ours}" if ours else operation.name
    if operation.name in twin.feature.refuses and (twin.altered or operation is CONVERT):
        assert isinstance(ours, QbeastError), f"{told} is not refused"
        assert twin.version(INDEXED) == before, told
        return operation is not CONVERT
    plain = outcome(lambda: operation.plain(twin))
    if plain is not None:
        assert ours is not None, f"{told} succeeds, but not on plain Delta: {plain}"
        assert isinstance(ours, QbeastError) or kind(ours) == kind(plain), f"{told}\n{plain}"
        assert twin.version(INDEXED) == before, told
    assert (ours is None) == (plain is None), f"{told} fails, but not on plain Delta"
    try:
        same_rows(twin)
        index_is_right(twin)
        if "delta.enableChangeDataFeed" in twin.feature.properties and ours is None:
            same_changes(twin, before, plain_before)
    except AssertionError as error:
        raise AssertionError(f"after {operation.name}: {error}") from error
    if operation.name in MARKS:
        twin.marks[MARKS[operation.name]] = (
            twin.version(INDEXED),
            twin.version(PLAIN),
            twin.contents(twin.plain()),
        )
    return True


def same_changes(twin: Twin, since: int, plain_since: int) -> None:
    """Assert that the change data feed tells the same of both tables."""
    if twin.version(PLAIN) > plain_since:
        assert twin.changes(INDEXED, since) == twin.changes(PLAIN, plain_since)
