"""What a table stores for its next rebuild: whether that may reuse the table's tree.

An ordinary rebuild measures its rows before it writes them, so their query is evaluated twice or
its rows are stored. Where it finds that the tree of the table it replaces would have done, it says
so here, and the next rebuild tries that tree first (`ways.reuse_tree`).
"""

from __future__ import annotations

import json

from qbeast_core.delta.metadata import maps_columns
from qbeast_core.locate.table import OpenTable
from qbeast_core.model.revision import Revision
from qbeast_core.model.transformation import (
    HashTransformation,
    IdentityTransformation,
    LinearTransformation,
    NumericQuantiles,
    StringQuantiles,
    Transformation,
)
from qbeast_core.tree.path import PathLayout
from qbeast_core.write.plan import TreePlan

REBUILD_KEY = "qbeast.rebuild"
"""Set where the next rebuild may reuse the table's tree; what it needs beside that, as JSON."""
ALWAYS_FIT = (HashTransformation, NumericQuantiles, StringQuantiles)
"""Transformations that have a place for every value."""
_HIGH_CARDINALITY = "varied"
"""In the JSON, the columns to write without Parquet's dictionary."""
_LEVELS = "levels"
"""There, by how many levels the rows of a file are ordered."""
_SIZES_ALIKE = 1.5
"""Two automatic cube sizes of which neither is so many times the other one are alike."""


def rebuild_key(table: OpenTable, plan: TreePlan) -> dict[str, str]:
    """The key, where the tree of the table that is replaced would have done for the plan's rows.

    A table that outgrows its tree with each rebuild would be written twice each time.
    """
    before = table.configuration
    if before.last_revision_id is None or not plan.fits(plan.in_cubes):
        return {}
    old, new = before.latest, plan.revision
    alike = (
        (old.transformers, old.sample_key) == (new.transformers, new.sample_key)
        and _sizes_alike(old.desired_cube_size, new.desired_cube_size)
        and all(map(_fits, old.transformations, new.transformations))
        and len(old.transformations) == len(new.transformations)
    )
    kept = {_HIGH_CARDINALITY: plan.without_dictionary, _LEVELS: plan.order_levels}
    return {REBUILD_KEY: json.dumps(kept)} if alike else {}


def may_reuse_tree(table: OpenTable) -> bool:
    """Whether a rebuild of the table may try its tree, if its options stay."""
    stored = table.snapshot.configuration
    return REBUILD_KEY in stored and not maps_columns(stored)


def parse_rebuild_key(text: str, revision: Revision) -> tuple[tuple[str, ...], int] | None:
    """The columns without a dictionary and the levels; None for a text that is not ours."""
    try:
        kept = json.loads(text)
        columns, levels = tuple(map(str, kept[_HIGH_CARDINALITY])), int(kept[_LEVELS])
    except (ValueError, TypeError, KeyError):
        return None
    known = range(PathLayout(revision.dimensions).first_levels + 1)
    return (columns, levels) if levels in known else None


def _sizes_alike(one: int, other: int) -> bool:
    """Whether a tree for the one cube size serves where the other one is asked for."""
    return one < _SIZES_ALIKE * other and other < _SIZES_ALIKE * one


def _fits(old: Transformation, new: Transformation) -> bool:
    """Whether the old one has a place of its own for the values that the new one was made for."""
    if isinstance(old, LinearTransformation):
        known = isinstance(new, LinearTransformation | IdentityTransformation)
        return known and not old.is_superseded_by(new)
    return isinstance(old, ALWAYS_FIT) and type(new) is type(old)
