"""Trees that grow as an OTree does, from points and weights, without Spark."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from qbeast_core.model.block import Block
from qbeast_core.model.cube import CubeId
from qbeast_core.model.weight import MAX_WEIGHT, MIN_WEIGHT
from qbeast_core.tree.metrics import FileBlocks


def random_weights(rows: int, seed: int | np.random.Generator) -> NDArray[np.int32]:
    """int32[rows]: weights as hashes spread them."""
    return np.random.default_rng(seed).integers(MIN_WEIGHT, MAX_WEIGHT, rows).astype(np.int32)


def grown_blocks(
    points: NDArray[np.float64], weights: NDArray[np.int32], cube_size: int
) -> Iterator[Block]:
    """The blocks of one write: a cube takes the rows of the lowest weights, children the rest.

    `points` is float64[rows, n] in [0, 1), `weights` is int32[rows].
    """
    dimensions = points.shape[1]
    order = np.argsort(weights)
    todo = [(CubeId.root(dimensions), points[order], weights[order])]
    while todo:
        cube, own, sorted_weights = todo.pop()
        if len(sorted_weights) <= cube_size:
            if len(sorted_weights):
                yield Block(cube, int(sorted_weights[0]), MAX_WEIGHT, len(sorted_weights))
            continue
        highest = int(sorted_weights[cube_size - 1])
        yield Block(cube, int(sorted_weights[0]), highest, cube_size)
        rest, rest_weights = own[cube_size:], sorted_weights[cube_size:]
        cells = 1 << (cube.depth + 1)
        bits = (rest * cells).astype(np.int64) & 1
        digits = bits @ (1 << np.arange(dimensions - 1, -1, -1))
        for digit, child in enumerate(cube.children()):
            inside = digits == digit
            if inside.any():
                todo.append((child, rest[inside], rest_weights[inside]))


def in_files(blocks: list[Block], blocks_of_file: int) -> list[FileBlocks]:
    """Neighbouring blocks together in files of 20 bytes a row, as a write lays them out."""
    ordered = sorted(blocks, key=lambda block: block.cube)
    return [
        FileBlocks(sum(b.element_count for b in part) * 20, tuple(part))
        for i in range(0, len(ordered), blocks_of_file)
        if (part := ordered[i : i + blocks_of_file])
    ]
