"""The key by which a table allows its next rebuild to reuse its tree.

An ordinary rebuild measures its rows before it writes them, so the query is evaluated twice or its
rows are checkpointed. If the old tree would have suited the new rows, the rebuild sets this key,
and the next rebuild tries the tree first (`ways.reuse_tree`).
"""

from __future__ import annotations

import json

from qbeast_core.delta.metadata import maps_columns
from qbeast_core.locate.open_table import OpenTable
from qbeast_core.model.json_text import parse_json
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
"""Set if the next rebuild can reuse the table's tree; the value has its parameters as JSON."""
ALWAYS_FIT = (HashTransformation, NumericQuantiles, StringQuantiles)
"""Transformations that accept every value."""
_WITHOUT_DICTIONARY = "varied"
"""In the JSON: the columns to write without Parquet's dictionary encoding."""
_LEVELS = "levels"
"""In the JSON: the number of tree levels by which the rows of a file are sorted."""
_SIZES_ALIKE = 1.5
"""Two automatic cube sizes are alike if the larger is less than this many times the smaller."""


def rebuild_key(table: OpenTable, plan: TreePlan) -> dict[str, str]:
    """The key, if the tree of the replaced table would have suited the plan's rows; else empty.

    Without this test, a rebuild whose rows never fit the old tree would write twice each time.
    """
    old, new = table.configuration.latest_readable, plan.revision
    if old is None or not plan.fits(plan.in_cubes):
        return {}
    alike = (
        (old.transformers, old.sample_key) == (new.transformers, new.sample_key)
        and _sizes_alike(old.desired_cube_size, new.desired_cube_size)
        and all(map(_fits, old.transformations, new.transformations))
        and len(old.transformations) == len(new.transformations)
    )
    kept = {_WITHOUT_DICTIONARY: plan.without_dictionary, _LEVELS: plan.cuts.order.levels}
    return {REBUILD_KEY: json.dumps(kept)} if alike else {}


def may_reuse_tree(table: OpenTable) -> bool:
    """Whether a rebuild of the table can try its tree, if the options do not change."""
    properties = table.snapshot.configuration
    return REBUILD_KEY in properties and not maps_columns(properties)


def parse_rebuild_key(text: str, revision: Revision) -> tuple[tuple[str, ...], int] | None:
    """The columns without a dictionary and the number of levels; None if the text is not valid."""
    try:
        kept = parse_json(text)
        columns, levels = tuple(map(str, kept[_WITHOUT_DICTIONARY])), int(kept[_LEVELS])
    except (ValueError, TypeError, LookupError, OverflowError):
        return None
    known = range(PathLayout(revision.dimensions).first_levels + 1)
    return (columns, levels) if levels in known else None


def _sizes_alike(one: int, other: int) -> bool:
    """Whether a tree for one cube size also suits the other."""
    return one < _SIZES_ALIKE * other and other < _SIZES_ALIKE * one


def _fits(old: Transformation, new: Transformation) -> bool:
    """Whether the old transformation covers the values that the new one was made for."""
    if isinstance(old, LinearTransformation):
        known = isinstance(new, LinearTransformation | IdentityTransformation)
        return known and not old.is_superseded_by(new)
    return isinstance(old, ALWAYS_FIT) and type(new) is type(old)
