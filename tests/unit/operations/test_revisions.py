"""Which revision more rows belong to."""

from dataclasses import replace

import numpy as np

from qbeast_core.model.datatypes import DataType
from qbeast_core.model.revision import IndexConfiguration
from qbeast_core.model.transformer import LinearTransformer
from qbeast_core.operations.revisions import continued_revision, first_revision
from qbeast_core.spark.statistics import Bounds, InputStatistics, RowSample

TRANSFORMERS = (LinearTransformer("a", DataType.LONG),)


def seen(minimum: int, maximum: int) -> InputStatistics:
    nothing = RowSample(np.empty((0, 1)), np.empty((0, 1), dtype=bool), np.empty(0, np.int32))
    return InputStatistics(10, (Bounds(minimum, maximum),), nothing)


FIRST = first_revision(TRANSFORMERS, seen(0, 100), table_id="t", cube_size=50)
SECOND = replace(FIRST, revision_id=2)
KNOWN = IndexConfiguration({1: FIRST, 2: SECOND}, 2)


def test_rows_within_the_range_keep_the_revision() -> None:
    assert continued_revision(KNOWN, FIRST, TRANSFORMERS, seen(5, 9), cube_size=None) is FIRST


def test_rows_beyond_the_range_of_an_older_revision_replace_none() -> None:
    """Its number plus one is taken: the rows of that revision would be looked for elsewhere."""
    found = continued_revision(KNOWN, FIRST, TRANSFORMERS, seen(5, 900), cube_size=None)
    assert found.revision_id == 3
    assert set(KNOWN.with_revision(found).revisions) == {1, 2, 3}
