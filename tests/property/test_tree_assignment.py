"""The array search of `Assignment` against a walk from the root that needs no arrays."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT
from qbeast_core.tree.assignment import Assignment
from qbeast_core.tree.path import PathLayout

weights_of_rows = st.one_of(
    st.integers(MIN_WEIGHT, MAX_WEIGHT), st.sampled_from([MIN_WEIGHT, -1, 0, 1, MAX_WEIGHT])
)


def walked(
    weights: Mapping[CubeId, int], layout: PathLayout, words: list[int], weight: int
) -> CubeId:
    """The rule of docs/format.md 8.1, level by level."""
    for depth in range(layout.max_depth):
        cube = layout.cube_of(words, depth)
        if cube not in weights or weight <= weights[cube]:
            return cube
    return layout.cube_of(words, layout.max_depth)


@st.composite
def trees(draw: st.DrawFn) -> tuple[PathLayout, dict[CubeId, int], list[CubeId]]:
    """A weight for the cubes around a few points: some with holes, some past the deepest level."""
    n = draw(st.integers(1, 8))
    layout = PathLayout(n)
    connected = draw(st.booleans())
    weights: dict[CubeId, int] = {}
    ends = []
    for _ in range(draw(st.integers(0, 4))):
        depth = draw(st.integers(0, layout.max_depth + 2))
        path = draw(st.integers(0, (1 << (n * depth)) - 1))
        if ends and draw(st.booleans()):
            # Close to an earlier one: the same way down to a level, often past the first word.
            near = draw(st.sampled_from(ends))
            free_levels = draw(st.integers(0, near.depth))
            depth, free = near.depth, (1 << (n * free_levels)) - 1
            path = near.path & ~free | path & free
        cube = CubeId(n, depth, path)
        ends.append(cube)
        for position, around in enumerate([cube, *cube.ancestors()]):
            if connected:
                step = (MAX_WEIGHT - MIN_WEIGHT) // (depth + 2)
                weights.setdefault(around, MIN_WEIGHT + step * (depth - position + 1))
            elif draw(st.integers(0, 9)):
                weights[around] = draw(weights_of_rows)
    return layout, weights, ends


@st.composite
def rows(draw: st.DrawFn, layout: PathLayout, near: list[CubeId]) -> tuple[np.ndarray, np.ndarray]:
    """Paths anywhere, on the edges of the given cubes, and with words of several edges."""
    bits = layout.levels_per_word * layout.dimensions
    whole = 1 << (bits * layout.words)
    edges = [edge for cube in near for edge in layout.span(cube, layout.words)]
    nearby = sorted({p for e in edges for p in (e - 1, e, e + 1) if 0 <= p < whole})
    path = st.integers(0, whole - 1)
    if nearby:
        words_of_edges = zip(*(layout.split(p, layout.words) for p in nearby), strict=True)
        mixed = st.tuples(*(st.sampled_from(sorted(set(words))) for words in words_of_edges))
        glued = mixed.map(lambda ws: sum(w << (bits * k) for k, w in enumerate(reversed(ws))))
        path = st.one_of(path, st.sampled_from(nearby), glued)
    paths = draw(st.lists(path, min_size=1, max_size=12))
    words = np.array([layout.split(p, layout.words) for p in paths], dtype=np.int64).T
    weights = draw(st.lists(weights_of_rows, min_size=len(paths), max_size=len(paths)))
    return words, np.array(weights, dtype=np.int32)


@given(st.data())
@settings(max_examples=250)
def test_a_row_goes_to_the_cube_that_a_walk_finds(data: st.DataObject) -> None:
    layout, weights, ends = data.draw(trees())
    words, row_weights = data.draw(rows(layout, ends))
    depth = Assignment.of(layout, weights).depths_of(words, row_weights)
    for i, weight in enumerate(row_weights.tolist()):
        assert depth[i] == walked(weights, layout, words[:, i].tolist(), weight).depth


@given(st.data())
@settings(max_examples=100)
def test_the_documented_search_finds_the_same_slot(data: st.DataObject) -> None:
    """The steps of the class's docstring in plain Python, as the Catalyst expression does them."""
    layout, weights, ends = data.draw(trees())
    words, row_weights = data.draw(rows(layout, ends))
    assignment = Assignment.of(layout, weights)
    slots = assignment.slots_of(words, row_weights)
    for i, weight in enumerate(row_weights.tolist()):
        key, exact = int(words[0, i]), True
        if assignment.words_used > 1:
            key = 0
            for k in range(assignment.words_used):
                values, word = assignment.folds[k].tolist(), int(words[k, i])
                rank = bisect_left(values, word)
                key += rank * assignment.fold_strides[k] if exact else 0
                exact = exact and word in values
        region = bisect_left(assignment.fold_ends.tolist(), key)
        slot_key = region * 2**32 + (weight + 2**31)
        assert slots[i] == bisect_left(assignment.slot_upper.tolist(), slot_key)


@given(trees())
@settings(max_examples=150)
def test_the_arrays_are_sorted_and_complete(
    tree: tuple[PathLayout, dict[CubeId, int], list[CubeId]],
) -> None:
    layout, weights, _ = tree
    assignment = Assignment.of(layout, weights)
    regions = len(assignment.fold_ends)
    assert np.all(np.diff(assignment.fold_ends) > 0)
    assert np.all(np.diff(assignment.slot_upper) > 0)
    region_of_slot, upper = np.divmod(assignment.slot_upper, 2**32)
    assert np.array_equal(np.unique(region_of_slot), np.arange(regions))
    last_of_region = np.append(np.diff(region_of_slot) > 0, True)
    assert np.all(upper[last_of_region] == 2**32 - 1)
    _, last_path = layout.cube_interval(CubeId.root(layout.dimensions))
    (slot,) = assignment.slots_of(np.array([last_path]).T, np.array([MAX_WEIGHT], dtype=np.int32))
    assert slot == len(assignment.slot_upper) - 1
