"""Reference implementation of the format, one value at a time, to compare the library with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbeast_core.estimation.moments import POWERS, Moments
from qbeast_core.model.cube import CubeId
from qbeast_core.model.datatypes import DataType
from qbeast_core.model.revision import Revision
from qbeast_core.model.transformer import HashTransformer, Transformer
from qbeast_core.tree.query import And, Comparison, In, IsNull, Or, Predicate


def cube_bounds(
    cubes: Sequence[CubeId], dimensions: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The lower and upper corners of many cubes, float64[cubes, n] each."""
    shape = (len(cubes), dimensions)
    lower = np.array([cube.lower for cube in cubes], dtype=np.float64).reshape(shape)
    upper = np.array([cube.upper for cube in cubes], dtype=np.float64).reshape(shape)
    return lower, upper


def holds(predicate: Predicate, row: dict[str, Any]) -> bool:
    """What the filter says about a row, with null as false."""
    match predicate:
        case And(parts):
            return all(holds(part, row) for part in parts)
        case Or(parts):
            return any(holds(part, row) for part in parts)
        case IsNull(column):
            return row[column] is None
        case In(column, values):
            return any(holds(Comparison(column, "=", v), row) for v in values if v is not None)
        case Comparison(column, op, value):
            if row[column] is None:
                return False
            left, right = _order(row[column]), _order(value)
            return {
                "<": left < right,
                "<=": left <= right,
                "=": left == right,
                ">=": left >= right,
                ">": left > right,
            }[op]
    return True


def _order(value: Any) -> Any:
    """How Spark orders: NaN above everything and equal to itself, texts by their UTF-8 bytes."""
    if isinstance(value, float):
        return (1, 0.0) if value != value else (0, value)
    return value.encode() if isinstance(value, str) else value


def moments_of_clusters(
    fraction: float,
    y: NDArray[np.float64],
    z: NDArray[np.float64],
    group: NDArray[np.int64] | None = None,
    groups: int = 1,
) -> Moments:
    """The moments of the given clusters; `group` is the number of each cluster's group."""
    numbers = np.zeros(len(y), dtype=np.int64) if group is None else group
    return Moments(
        fraction,
        np.bincount(numbers, minlength=groups),
        {(a, b): np.bincount(numbers, y**a * z**b, groups).astype(np.float64) for a, b in POWERS},
    )


def point_of(revision: Revision, values: Sequence[Any]) -> tuple[float, ...]:
    """The coordinates of a row's indexed values. Raises ValueError for a value of a wrong type."""
    return tuple(
        transformation.transform(_typed(value, transformer))
        for value, transformer, transformation in zip(
            values, revision.transformers, revision.transformations, strict=True
        )
    )


def _typed(value: Any, transformer: Transformer) -> Any:
    """Narrow a float: a hashed number's text depends on its width, which Python's float lacks."""
    if (
        isinstance(value, float)
        and isinstance(transformer, HashTransformer)
        and transformer.data_type is DataType.FLOAT
    ):
        return np.float32(value)
    return value


def cube_containing(point: Sequence[float], depth: int) -> CubeId:
    """The cube of the given depth that contains the point.

    Upper bounds are exclusive, except that 1.0 belongs to the last cube. Raises ValueError for a
    coordinate outside [0, 1], including NaN.
    """
    if depth == 0:
        return CubeId.root(len(point))
    bits_of_dimension = [_coordinate_bits(x, depth) for x in point]
    interleaved = "".join("".join(level) for level in zip(*bits_of_dimension, strict=True))
    return CubeId(len(point), depth, int(interleaved, 2))


def _coordinate_bits(x: float, depth: int) -> str:
    """The first `depth` binary digits of a coordinate; 1.0 counts as 0.111..."""
    if not 0.0 <= x <= 1.0:
        raise ValueError(f"a coordinate must lie in [0, 1], got {x}")
    # With exact integers, because a double scaled by a power of two overflows for very deep cubes.
    numerator, denominator = float(x).as_integer_ratio()
    cell = min((numerator << depth) // denominator, (1 << depth) - 1)
    return format(cell, f"0{depth}b")
