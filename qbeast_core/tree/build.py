"""Cube weights, estimated from a uniform sample of rows (docs/format.md 8.4).

A cube takes the rows with the lowest weights until it has about the desired size; the other rows go
to its children.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT, fraction_of_weight, weight_of_fraction
from qbeast_core.tree.otree import OTree
from qbeast_core.tree.path import PathLayout
from qbeast_core.tree.weighed_sample import WeighedSample

SLACK = 1.25
"""A cube is split only if it has more than this many times the desired size. A smaller excess would
leave 2^n children almost empty, and counts from a sample are not exact anyway."""


def most_rows(wanted: float) -> float:
    """The number of rows in a cube up to which it is left as it is.

    By chance, a cube gets more rows than its share: the second term is three standard deviations.
    """
    return SLACK * wanted + 3.0 * math.sqrt(wanted)


def estimate_weights(
    layout: PathLayout,
    sample: WeighedSample,
    desired_cube_size: int,
    existing: OTree | None = None,
) -> dict[CubeId, int]:
    """The weight of each cube for writing new rows, from a sample of them; MAX_WEIGHT for leaves.

    The result has every cube that sample rows reach, and every cube of the `existing` tree, with
    missing parents filled in. Existing weights are never raised. A child's weight is strictly above
    its parent's, except where the existing tree differs.
    """
    weights = dict(existing.weights) if existing else {}
    if not len(sample.weights):
        return weights or {CubeId.root(layout.dimensions): MAX_WEIGHT}
    level = _Level.root(layout, sample)
    while level.paths:
        chosen = _weights_of_level(level, sample.scale, desired_cube_size, existing)
        weights.update(zip(level.cubes, chosen.tolist(), strict=True))
        level = level.children(chosen)
    return weights


class _Level:
    """The cubes of one depth that have sample rows, with these rows sorted by path.

    Cube i has the rows first[i] to end[i] - 1; `cube_of_row` is the inverse.
    """

    def __init__(
        self,
        layout: PathLayout,
        depth: int,
        paths: list[int],
        parent_weights: NDArray[np.int64],
        first: NDArray[np.int64],
        words: NDArray[np.int64],
        row_weights: NDArray[np.int64],
    ) -> None:
        self.layout = layout
        self.depth = depth
        self.paths = paths
        self.cubes = [CubeId(layout.dimensions, depth, path) for path in paths]
        self.parent_weights = parent_weights
        self.first = first
        self.end = np.append(first[1:], len(row_weights))
        self.words = words
        self.row_weights = row_weights
        self.cube_of_row = np.repeat(np.arange(len(paths)), self.end - first)

    @staticmethod
    def root(layout: PathLayout, sample: WeighedSample) -> _Level:
        order = np.lexsort(sample.words[::-1])
        return _Level(
            layout,
            depth=0,
            paths=[0],
            parent_weights=np.array([MIN_WEIGHT - 1]),
            first=np.array([0]),
            words=sample.words[:, order],
            row_weights=sample.weights[order].astype(np.int64),
        )

    def children(self, weights: NDArray[np.int64]) -> _Level:
        """The children that have sample rows, of the cubes that these weights make inner cubes."""
        layout = self.layout
        kept = (weights < MAX_WEIGHT)[self.cube_of_row] & (self.depth < layout.max_depth)
        parent = self.cube_of_row[kept]
        words = self.words[:, kept]
        digits = layout.digits(words, self.depth) if len(parent) else parent
        is_first = np.ones(len(parent), dtype=np.bool_)
        is_first[1:] = (parent[1:] != parent[:-1]) | (digits[1:] != digits[:-1])
        first = np.flatnonzero(is_first)
        paths = [
            self.paths[i] << layout.dimensions | digit
            for i, digit in zip(parent[first].tolist(), digits[first].tolist(), strict=True)
        ]
        return _Level(
            layout,
            depth=self.depth + 1,
            paths=paths,
            parent_weights=weights[parent[first]],
            first=first,
            words=words,
            row_weights=self.row_weights[kept],
        )

    def rows_between(self, upper: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sample rows per cube with weights above the parent's and up to `upper`."""
        inside = (self.row_weights > self.parent_weights[self.cube_of_row]) & (
            self.row_weights <= upper[self.cube_of_row]
        )
        counts: NDArray[np.int64] = np.bincount(self.cube_of_row[inside], minlength=len(self.paths))
        return counts

    def one_path_each(self) -> NDArray[np.bool_]:
        """bool[cubes]: whether all sample rows of the cube have the same full path."""
        same: NDArray[np.bool_] = np.all(
            self.words[:, self.first] == self.words[:, self.end - 1], axis=0
        )
        return same


def _weights_of_level(
    level: _Level, scale: float, desired_cube_size: int, existing: OTree | None
) -> NDArray[np.int64]:
    """The weights int64[cubes] of one level, given those of the level above."""
    cubes = level.cubes
    splittable = ~level.one_path_each()
    domains = scale * (level.end - level.first)
    old_weights = np.full(len(cubes), MAX_WEIGHT)
    if existing:
        splittable |= np.array([cube in existing.inner_cubes for cube in cubes])
        domains = domains + np.array([existing.domains.get(cube, 0.0) for cube in cubes])
        old_weights = np.array([existing.weights.get(cube, MAX_WEIGHT) for cube in cubes])
    splittable &= level.depth < level.layout.max_depth

    # With few distinct values there are few weights, so the number of rows between two weights does
    # not follow from their difference. The rows of the sample decide in this case.
    wanted = max(desired_cube_size / scale, 1.0)
    too_many = most_rows(wanted)
    above = np.maximum(fraction_of_weight(level.parent_weights), 0.0)
    everything = np.full(len(cubes), MAX_WEIGHT)
    is_leaf = domains * (1.0 - above) <= SLACK * desired_cube_size
    is_leaf &= level.rows_between(everything) <= too_many
    is_leaf |= ~splittable
    proposed = weight_of_fraction(above + desired_cube_size / domains)
    # Strictly above the parent's weight, or the cube could hold no rows.
    proposed = np.maximum(proposed, level.parent_weights + 1)
    weights = np.where(is_leaf, MAX_WEIGHT, proposed)

    overfull = splittable & (level.rows_between(weights) > too_many)
    for i in np.flatnonzero(overfull).tolist():
        weights[i] = _lowered(
            level.row_weights[level.first[i] : level.end[i]],
            int(level.parent_weights[i]),
            int(weights[i]),
            wanted,
            too_many,
        )
    lowest: NDArray[np.int64] = np.minimum(weights, old_weights)
    return lowest


def _lowered(
    row_weights: NDArray[np.int64], above: int, upper: int, wanted: float, too_many: float
) -> int:
    """The weight up to which at most `wanted` of these rows have a weight above `above`."""
    values, counts = np.unique(
        row_weights[(row_weights > above) & (row_weights <= upper)], return_counts=True
    )
    fitting = int(np.searchsorted(np.cumsum(counts), wanted, side="right"))
    if fitting:
        return int(values[fitting - 1])
    if counts[0] <= too_many:
        return int(values[0])
    # A single weight has too many rows: let them go down to where their paths diverge, or to a leaf
    # that range filters can skip. Stop halfway, because weights must increase at each level.
    return above + max((int(values[0]) - above) // 2, 1)
