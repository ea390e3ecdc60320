"""Rebuild a table in one pass, with the tree of the rows that it replaces.

The query is evaluated once. The contents of the written files then show whether the tree suits the
new rows. If it does not, an ordinary rebuild reads these files instead of the query.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from qbeast_core.model.transformation import LinearTransformation
from qbeast_core.spark.alignment import is_filled_by_delta
from qbeast_core.write.files import DoesNotFit, WrittenFiles, write_with_other_plan
from qbeast_core.write.index_properties import COLUMN_STATS_KEY, AutomaticOption, is_automatic
from qbeast_core.write.new_index import NewIndex
from qbeast_core.write.plan import TreePlan, plan_with_tree
from qbeast_core.write.rebuild_key import ALWAYS_FIT, REBUILD_KEY, parse_rebuild_key
from qbeast_core.write.revision import rebuilt_revision
from qbeast_core.write.writer import IndexWriter

_CHECKED = (LinearTransformation, *ALWAYS_FIT)
"""Transformations for which the written rows show whether they are out of range."""


def write_with_previous_tree(
    writer: IndexWriter[NewIndex], rows: DataFrame
) -> WrittenFiles | DoesNotFit:
    """Write rows that are distributed like those they replace, in one pass. Commits nothing."""
    index, properties = writer.index, writer.table.snapshot.configuration
    # If the tree does not suit the files, they are read back as rows, and such rows cannot
    # supply identity values.
    if is_filled_by_delta(rows, index.schema):
        return DoesNotFit()
    if index.column_stats_key.get(COLUMN_STATS_KEY, "") != properties.get(COLUMN_STATS_KEY, ""):
        return DoesNotFit()
    plan = _plan_with_previous_tree(index)
    if plan is None:
        return DoesNotFit()
    rebuild = {REBUILD_KEY: properties[REBUILD_KEY]}
    index.describe(writer.table.transaction, plan.revision, rebuild)
    return write_with_other_plan(writer.table.transaction, rows, plan)


def _plan_with_previous_tree(index: NewIndex) -> TreePlan | None:
    """The plan that places rows with the tree of the replaced table.

    None if the index options differ, if the table's files are not all in one tree, if the tree has
    too many or too few rows for its cube size, or if its revision cannot be read.
    """
    table, cube_size = index.table, index.expected_cube_size
    properties, last = table.snapshot.configuration, table.configuration.latest_readable
    if last is None:
        return None
    if cube_size is None:
        same_size = is_automatic(properties, AutomaticOption.CUBE_SIZE)
    else:
        same_size = cube_size == last.desired_cube_size
    if (
        not same_size
        or (last.transformers, last.sample_key) != (index.transformers, index.sample_key)
        or len(table.index.files_of(last.revision_id)) != len(table.snapshot.files)
        # The written rows would not show whether they are beyond other transformations.
        or not all(isinstance(each, _CHECKED) for each in last.transformations)
    ):
        return None
    tree = table.index.tree(last)
    kept = parse_rebuild_key(properties[REBUILD_KEY], last)
    if kept is None or not any(tree.element_count.values()):
        return None
    plan = plan_with_tree(rebuilt_revision(last), tree, index.schema, *kept)
    return plan if plan.fits(plan.in_cubes) else None
