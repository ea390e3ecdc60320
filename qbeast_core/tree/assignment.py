"""Finds the cube of a row with two binary searches (docs/format.md 8.1).

The rule: walk the cubes that contain the row's point from the root down. The row belongs to the
first cube that has no weight in the map, or whose weight is not below the row's. At the deepest
level of the paths, the cube takes all rows.

Order all paths in pre-order. The chain of cubes that a row walks through changes only where a cube
of the map starts or ends. The paths between two such points are a *region*, and its chain is a list
of *slots* with ascending weights. So the path determines the region, and the weight determines the
slot. Adjacent missing children of a cube share one region, with the slot "one level below their
parent".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT
from qbeast_core.tree.path import PathLayout

SLOT_WEIGHT_BITS = 32
SLOT_REGION_FACTOR = 1 << SLOT_WEIGHT_BITS
"""A slot's key is `region * SLOT_REGION_FACTOR + (weight - MIN_WEIGHT)`."""

_LARGEST_FOLD = 1 << 62


@dataclass(frozen=True, eq=False)
class Assignment:
    """The sorted arrays that map (path words, weight) to the depth of the cube.

    Every search below is a *lower bound*: the index of the first element not less than the key.
    That is `numpy.searchsorted(side="left")`, or `i if i >= 0 else -i - 1` for the result `i` of
    Java's `Arrays.binarySearch`. All arrays that are searched are sorted and have no duplicates.

    1. The region: lower bound of a key in `fold_ends`. With `words_used == 1` the key is word 0.
       With more words, the path is first folded into one key:
           key = 0; exact = true
           for k in 0 .. words_used - 1:
               rank  = lower bound of word k in folds[k]
               key  += (rank if exact else 0) * fold_strides[k]
               exact = exact and (folds[k] holds word k)
    2. The slot: lower bound of `region * 2^32 + (weight + 2^31)` in `slot_upper`.
    3. The cube is the one on the row's path at depth `slot_depth[slot]`.

    Words beyond `words_used` are ignored. Every path has a region, and every weight a slot in it.
    """

    layout: PathLayout
    depth_limit: int
    """The deepest level of a cube; `layout.max_depth` except for extremely large trees."""
    words_used: int
    """The number of path words that are used: as many as the deepest cube of the map needs."""
    slot_upper: NDArray[np.int64]
    """int64[slots], ascending: `region * 2^32 + (highest weight of the slot + 2^31)`."""
    slot_depth: NDArray[np.int32]
    """int32[slots]: the depth of the cube to which the slot's rows belong."""
    folds: tuple[NDArray[np.int64], ...]
    """For `words_used > 1`, the distinct values of each word of the regions' ends; else empty."""
    fold_strides: tuple[int, ...]
    """The increment of the folded key per step in each of `folds`; empty for one word."""
    fold_ends: NDArray[np.int64]
    """int64[regions], ascending: the key of the last path (inclusive) of each region."""

    @property
    def levels(self) -> int:
        """The number of path levels that are used; deeper levels are ignored."""
        return int(self.slot_depth.max())

    @staticmethod
    def of(layout: PathLayout, weights: Mapping[CubeId, int]) -> Assignment:
        """Prepares the search in a map of cube weights, which may have gaps."""
        depth_limit = layout.max_depth
        while True:
            tree = _reachable(weights, depth_limit)
            deepest = max((cube.depth for cube, _ in tree), default=0)
            words_used = max(1, -(-deepest // layout.levels_per_word))
            regions = _Regions(layout, words_used)
            regions.walk(tree)
            ends = regions.ends()
            folds, strides, fold_ends = _fold(ends)
            if fold_ends is not None:
                break
            # The keys overflow: hundreds of thousands of regions differ in every word. Cut the tree
            # where the last word starts; the cubes there take the rows of those below.
            depth_limit = (words_used - 1) * layout.levels_per_word
        return Assignment(
            layout=layout,
            depth_limit=depth_limit,
            words_used=words_used,
            slot_upper=np.array(regions.slot_upper, dtype=np.int64),
            slot_depth=np.array(regions.slot_depth, dtype=np.int32),
            folds=folds,
            fold_strides=strides,
            fold_ends=fold_ends,
        )

    def depths_of(self, words: NDArray[np.int64], weights: NDArray[np.int32]) -> NDArray[np.int32]:
        """The depth of each row's cube, int32[rows].

        `words` is int64[words, rows] from `PathLayout.path_words`, `weights` int32[rows].
        """
        return self.slot_depth[self.slots_of(words, weights)]

    def cubes_of(
        self, words: NDArray[np.int64], weights: NDArray[np.int32]
    ) -> tuple[list[CubeId], NDArray[np.int64]]:
        """The distinct cubes of the rows, and int64[rows]: the index in them of each row's cube.

        The arguments are those of `depths_of`.
        """
        return self.layout.cubes_of(words, self.depths_of(words, weights))

    def slots_of(self, words: NDArray[np.int64], weights: NDArray[np.int32]) -> NDArray[np.int64]:
        """The slot of each row: an index into `slot_depth`."""
        regions = np.searchsorted(self.fold_ends, self._folded(words))
        keys = regions.astype(np.int64) * SLOT_REGION_FACTOR
        keys += weights.astype(np.int64) - MIN_WEIGHT
        return np.searchsorted(self.slot_upper, keys).astype(np.int64)

    def _folded(self, words: NDArray[np.int64]) -> NDArray[np.int64]:
        if not self.folds:
            first_word: NDArray[np.int64] = words[0]
            return first_word
        keys = np.zeros(words.shape[1], dtype=np.int64)
        exact = np.ones(words.shape[1], dtype=np.bool_)
        for word, values, stride in zip(words, self.folds, self.fold_strides, strict=False):
            ranks = np.searchsorted(values, word)
            keys += np.where(exact, ranks, 0) * stride
            exact &= values[np.minimum(ranks, len(values) - 1)] == word
        return keys


def _reachable(weights: Mapping[CubeId, int], depth_limit: int) -> list[tuple[CubeId, int]]:
    """The cubes that rows can reach, in pre-order, with the weight up to which they take rows.

    No row reaches a cube below a missing cube or below a leaf.
    """
    reachable: list[tuple[CubeId, int]] = []
    inner: list[CubeId] = []
    in_reach = [cube for cube in weights if cube.depth <= depth_limit]
    for cube in sorted(in_reach, key=lambda cube: cube.preorder_key):
        while inner and not inner[-1].contains(cube):
            inner.pop()
        if len(inner) != cube.depth:
            continue
        weight = MAX_WEIGHT if cube.depth == depth_limit else weights[cube]
        reachable.append((cube, weight))
        if weight < MAX_WEIGHT:
            inner.append(cube)
    return reachable


@dataclass(frozen=True)
class _Open:
    """An inner cube whose interval contains the walk's position."""

    last: int
    slots: tuple[tuple[int, int], ...]
    depth: int


class _Regions:
    """Collects the regions of a tree in one walk in pre-order."""

    def __init__(self, layout: PathLayout, words: int) -> None:
        self.layout = layout
        self.words = words
        self.next_path = 0
        self.region_last: list[int] = []
        self.slot_upper: list[int] = []
        self.slot_depth: list[int] = []

    def walk(self, tree: list[tuple[CubeId, int]]) -> None:
        """Emits all regions; `tree` is in pre-order and contains every cube's parent."""
        if not tree:
            root = CubeId.root(self.layout.dimensions)
            last = self.layout.span(root, self.words)[1]
            self._emit(last, ((MAX_WEIGHT, 0),))
            return
        open_cubes: list[_Open] = []
        for cube, weight in tree:
            first, last = self.layout.span(cube, self.words)
            while len(open_cubes) > cube.depth:
                self._close(open_cubes.pop())
            around = open_cubes[-1] if open_cubes else None
            slots = around.slots if around else ()
            if around:
                self._gap(around, first - 1)
            if weight == MAX_WEIGHT:
                self._emit(last, (*slots, (MAX_WEIGHT, cube.depth)))
                continue
            if not slots or weight > slots[-1][0]:
                slots = (*slots, (weight, cube.depth))
            open_cubes.append(_Open(last, slots, cube.depth))
        while open_cubes:
            self._close(open_cubes.pop())

    def ends(self) -> NDArray[np.int64]:
        """The last paths of the regions as int64[words, regions]."""
        words = [self.layout.split(last, self.words) for last in self.region_last]
        return np.ascontiguousarray(np.array(words, dtype=np.int64).T)

    def _close(self, cube: _Open) -> None:
        self._gap(cube, cube.last)

    def _gap(self, around: _Open, last: int) -> None:
        """Emits the children that the map lacks, up to the path `last`."""
        if self.next_path <= last:
            self._emit(last, (*around.slots, (MAX_WEIGHT, around.depth + 1)))

    def _emit(self, last: int, slots: tuple[tuple[int, int], ...]) -> None:
        base = len(self.region_last) * SLOT_REGION_FACTOR - MIN_WEIGHT
        self.region_last.append(last)
        for upper, depth in slots:
            self.slot_upper.append(base + upper)
            self.slot_depth.append(depth)
        self.next_path = last + 1


def _fold(
    ends: NDArray[np.int64],
) -> tuple[tuple[NDArray[np.int64], ...], tuple[int, ...], NDArray[np.int64] | None]:
    """The values of each word, their strides and the folded keys; None if the keys overflow."""
    if len(ends) == 1:
        return (), (), ends[0]
    folds = tuple(np.unique(word) for word in ends)
    strides = [1]
    for values in reversed(folds[1:]):
        # One more than the number of values, because a word above all of them has that rank.
        strides.append(strides[-1] * (len(values) + 1))
    if strides[-1] * (len(folds[0]) + 1) >= _LARGEST_FOLD:
        return (), (), None
    strides.reverse()
    keys = np.zeros(ends.shape[1], dtype=np.int64)
    for word, values, stride in zip(ends, folds, strides, strict=True):
        keys += np.searchsorted(values, word) * stride
    return folds, tuple(strides), keys
