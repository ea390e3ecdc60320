"""A rebuild in one pass: rows go where the tree of the table that they replace has its rows.

The query is evaluated once, and what the written files hold tells whether the tree fits. Where it
does not, an ordinary rebuild reads these files.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from qbeast_core.model.transformation import LinearTransformation
from qbeast_core.spark.alignment import is_filled_by_delta
from qbeast_core.write.files import DoesNotFit, WrittenFiles
from qbeast_core.write.new_index import NewIndex
from qbeast_core.write.plan import TreePlan, plan_again
from qbeast_core.write.rebuild_key import ALWAYS_FIT, REBUILD_KEY, parse_rebuild_key
from qbeast_core.write.revision import (
    COLUMN_STATS_KEY,
    CUBE_SIZE,
    chosen_automatically,
    rebuilt_revision,
)
from qbeast_core.write.writer import IndexWriter, WritePlan

_CHECKED = (LinearTransformation, *ALWAYS_FIT)
"""Transformations that tell, once rows are written, whether they lie beyond them."""


class ReuseTree:
    """Reads the rows once. It fits rows that lie about as those before them."""

    def __init__(self, index: NewIndex) -> None:
        self._index = index

    def write(self, writer: IndexWriter, rows: DataFrame) -> WrittenFiles | DoesNotFit:
        index, stored = self._index, self._index.table.snapshot.configuration
        # Files that do not suit the tree are read again as rows, which may not give identity
        # values.
        if is_filled_by_delta(rows, index.schema):
            return DoesNotFit()
        if index.given_stats.get(COLUMN_STATS_KEY, "") != stored.get(COLUMN_STATS_KEY, ""):
            return DoesNotFit()
        plan = plan_by_tree(index)
        if plan is None:
            return DoesNotFit()
        rebuild = {REBUILD_KEY: stored[REBUILD_KEY]}
        index.describe(writer.table.transaction, plan.revision, rebuild)
        return writer.try_write(rows, WritePlan(plan))


def plan_by_tree(index: NewIndex) -> TreePlan | None:
    """The plan that puts rows where the tree of the table before has them.

    None for another index than that has, where it does not have its files in one tree, or has too
    many or too few rows in it.
    """
    table, cube_size = index.table, index.expected_cube_size
    stored, last = table.snapshot.configuration, table.configuration.latest
    if cube_size is None:
        same_size = chosen_automatically(stored, CUBE_SIZE)
    else:
        same_size = cube_size == last.desired_cube_size
    if (
        not same_size
        or (last.transformers, last.sample_key) != (index.transformers, index.sample_key)
        or len(table.index.files_of(last.revision_id)) != len(table.snapshot.files)
        # Rows beyond what any other was made for would not be found to be.
        or not all(isinstance(each, _CHECKED) for each in last.transformations)
    ):
        return None
    tree = table.index.tree(last)
    kept = parse_rebuild_key(stored[REBUILD_KEY], last)
    if kept is None or not any(tree.element_count.values()):
        return None
    plan = plan_again(rebuilt_revision(last), tree, index.schema, *kept)
    return plan if plan.fits(plan.in_cubes) else None
