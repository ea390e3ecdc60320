"""A rebuild in one pass: rows that lie as those before them go where the tree of those has them.

An ordinary rebuild measures its rows before it writes them, so their query is evaluated twice or
its rows are stored. Where that finds that the tree of the table it replaces would have done, it
says so in the table's configuration, and the next rebuild goes by the tree: the query is evaluated
once, and what the written files hold tells whether the tree did. Where it did not, those files are
what an ordinary rebuild reads.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql.types import StructType

from qbeast_core.delta.metadata import maps_columns
from qbeast_core.delta.snapshot import TableSnapshot
from qbeast_core.index import TableIndex
from qbeast_core.model.revision import IndexConfiguration, Revision
from qbeast_core.model.transformation import (
    HashTransformation,
    IdentityTransformation,
    LinearTransformation,
    NumericQuantiles,
    StringQuantiles,
    Transformation,
)
from qbeast_core.model.transformer import Transformer
from qbeast_core.operations.placing import TreePlan, plan_again
from qbeast_core.operations.revisions import CUBE_SIZE, chosen_automatically, rebuilt_revision
from qbeast_core.tree.path import PathLayout

REBUILD_KEY = "qbeast.rebuild"
"""Set where the next rebuild may go by the table's tree; what it needs beside that, as JSON."""
_VARIED = "varied"
"""There, the columns to write without Parquet's dictionary."""
_LEVELS = "levels"
"""There, by how many levels the rows of a file are ordered."""
_SIZES_ALIKE = 1.5
"""Two automatic cube sizes of which neither is so many times the other one are alike."""
_ALWAYS_FIT = (HashTransformation, NumericQuantiles, StringQuantiles)
"""What has a place for every value."""
_CHECKED = (LinearTransformation, *_ALWAYS_FIT)
"""What tells, once rows are written, whether they lie beyond it."""


def rebuild_key(snapshot: TableSnapshot, plan: TreePlan) -> dict[str, str]:
    """The key, where the tree of the table that is replaced would have done for the plan's rows.

    A table that outgrows its tree with each rebuild would be written twice each time.
    """
    before = IndexConfiguration.read(snapshot.configuration)
    if before.last_revision_id is None or not plan.fits(plan.in_cubes):
        return {}
    old, new = before.latest, plan.revision
    alike = (
        (old.transformers, old.sample_key) == (new.transformers, new.sample_key)
        and _sizes_alike(old.desired_cube_size, new.desired_cube_size)
        and all(map(_fits, old.transformations, new.transformations))
        and len(old.transformations) == len(new.transformations)
    )
    kept = {_VARIED: plan.without_dictionary, _LEVELS: plan.order_levels}
    return {REBUILD_KEY: json.dumps(kept)} if alike else {}


def may_go_by_tree(snapshot: TableSnapshot) -> bool:
    """Whether a rebuild of the table may be tried in one pass, if its options stay."""
    stored = snapshot.configuration
    return REBUILD_KEY in stored and not maps_columns(stored)


def plan_by_tree(
    snapshot: TableSnapshot,
    transformers: Sequence[Transformer],
    sample_key: tuple[str, ...],
    cube_size: int | None,
    schema: StructType,
) -> TreePlan | None:
    """The plan that puts rows where the tree of such a table has them.

    None for another index than it has, where it does not have its files in one tree, or has too
    many or too few rows in it. `cube_size` is None for the automatic one.
    """
    stored = snapshot.configuration
    index = TableIndex.of(snapshot)
    last = index.configuration.latest
    if cube_size is None:
        same_size = chosen_automatically(stored, CUBE_SIZE)
    else:
        same_size = cube_size == last.desired_cube_size
    if (
        not same_size
        or (last.transformers, last.sample_key) != (tuple(transformers), sample_key)
        or len(index.files_of(last.revision_id)) != len(snapshot.files)
        # Rows beyond what any other was made for would not be found to be.
        or not all(isinstance(each, _CHECKED) for each in last.transformations)
    ):
        return None
    tree, kept = index.tree(last), _kept(stored[REBUILD_KEY], last)
    if kept is None or not any(tree.element_count.values()):
        return None
    plan = plan_again(rebuilt_revision(last), tree, schema, *kept)
    return plan if plan.fits(plan.in_cubes) else None


def _kept(text: str, revision: Revision) -> tuple[tuple[str, ...], int] | None:
    """The columns and the levels that a table's key names; None for a text that is not ours."""
    try:
        kept = json.loads(text)
        varied, levels = tuple(map(str, kept[_VARIED])), int(kept[_LEVELS])
    except (ValueError, TypeError, KeyError):
        return None
    known = range(PathLayout(revision.dimensions).first_levels + 1)
    return (varied, levels) if levels in known else None


def _sizes_alike(one: int, other: int) -> bool:
    """Whether a tree for the one cube size serves where the other one is asked for."""
    return one < _SIZES_ALIKE * other and other < _SIZES_ALIKE * one


def _fits(old: Transformation, new: Transformation) -> bool:
    """Whether the old one has a place of its own for the values that the new one was made for."""
    if isinstance(old, LinearTransformation):
        known = isinstance(new, LinearTransformation | IdentityTransformation)
        return known and not old.is_superseded_by(new)
    return isinstance(old, _ALWAYS_FIT) and type(new) is type(old)
