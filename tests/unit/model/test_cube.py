"""Cube ids: text, bounds, order and containment (docs/format.md 6)."""

import math
import random
from itertools import pairwise

import pytest

from qbeast_core.model.block import parse_blocks
from qbeast_core.model.cube import CubeId
from tests.support.oracles import cube_containing
from tests.unit.model.reference_vectors import VECTORS, block_tags


def random_cubes(dimensions: int, count: int, max_depth: int = 6) -> list[CubeId]:
    draw = random.Random(dimensions)
    return [
        CubeId(dimensions, depth, draw.getrandbits(dimensions * depth) if depth else 0)
        for depth in (draw.randrange(max_depth + 1) for _ in range(count))
    ]


@pytest.mark.parametrize("case", VECTORS["cubes"], ids=lambda c: str(c["point"]))
def test_cubes_that_contain_a_point_equal_those_of_the_jvm(case):
    point = case["point"]
    for expected in case["cubes"]:
        cube = cube_containing(point, expected["depth"])
        assert cube.text == str(cube) == expected["string"]
        assert CubeId.parse(expected["string"], len(point)) == cube
        assert all(a <= x <= b for a, x, b in zip(cube.lower, point, cube.upper, strict=True))
        assert stored_bits(cube) == expected["bitmask"]


def stored_bits(cube: CubeId) -> list[int]:
    """The original's bit mask: bit n * level + dimension, words of 64 bits, first bit lowest."""
    bits = cube.dimensions * cube.depth
    mirrored = int(format(cube.path, f"0{bits}b")[::-1], 2) if bits else 0
    return [(mirrored >> start) & (2**64 - 1) for start in range(0, max(bits, 1), 64)]


@pytest.mark.parametrize("case", VECTORS["cube_ranges"], ids=lambda c: c["string"])
def test_bounds_equal_those_of_the_jvm(case):
    cube = CubeId.parse(case["string"], case["dims"])
    assert cube.depth == case["depth"]
    assert list(cube.lower) == case["from"]
    assert list(cube.upper) == case["to"]
    assert cube.text == case["reencoded"]


@pytest.mark.parametrize("dimensions", [2, 3])
def test_children_come_in_the_order_of_the_format(dimensions):
    root = CubeId.root(dimensions)
    texts = [child.text for child in root.children()]
    assert texts == VECTORS[f"root{dimensions}_children_order"]
    assert sorted(root.children()) == list(root.children())


@pytest.mark.parametrize("dimensions", [1, 2, 3, 6, 7, 8, 13])
def test_text_is_read_back(dimensions):
    for cube in random_cubes(dimensions, 200, max_depth=40):
        assert CubeId.parse(cube.text, dimensions) == cube


def test_cubes_of_the_reference_tables_are_read_back():
    for name, tag in block_tags():
        dimensions = 3 if name in ("mixed", "hash_only") else 2
        for block in parse_blocks(tag, dimensions):
            assert f'"{block.cube.text}"' in tag


@pytest.mark.parametrize(
    ("text", "dimensions", "reason"),
    [
        ("B", 2, "beyond"),  # bits for six dimensions
        ("A-", 2, "Base64"),
        ("A=", 2, "Base64"),
        ("A", 7, "multiple"),
        ("AB", 7, "beyond"),
        ("é", 2, "Base64"),
    ],
)
def test_a_broken_text_is_refused(text, dimensions, reason):
    with pytest.raises(ValueError, match=reason):
        CubeId.parse(text, dimensions)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_order_is_depth_first(dimensions):
    cubes = random_cubes(dimensions, 300)

    def bits_of(cube: CubeId) -> tuple[str, int]:
        # Text comparison puts a prefix before what it begins: exactly the format's order.
        return format(cube.path, f"0{dimensions * cube.depth}b") if cube.depth else "", cube.depth

    in_order = sorted(cubes, key=bits_of)
    assert sorted(cubes) == in_order
    assert sorted(cubes, key=lambda cube: cube.preorder_key) == in_order
    assert max(cubes) == in_order[-1]
    assert all(a <= b for a, b in pairwise(in_order))
    assert not any(cube < CubeId(dimensions, cube.depth, cube.path) for cube in cubes)


def test_cubes_of_different_trees_have_no_order():
    with pytest.raises(TypeError):
        _ = CubeId.root(2) < CubeId.root(3)


def test_only_a_cube_and_its_ancestors_contain_it():
    cube = CubeId.parse("wAQ", 2)
    assert cube.parent == CubeId.parse("wA", 2)
    assert [each.text for each in cube.ancestors()] == ["wA", "w", ""]
    assert cube in set(cube.parent.children())
    assert all(each.contains(cube) for each in cube.ancestors())
    assert cube.contains(cube)
    assert not cube.contains(cube.parent)
    assert not CubeId.parse("A", 2).contains(cube)
    assert not CubeId.root(3).contains(cube)
    with pytest.raises(ValueError, match="root"):
        _ = CubeId.root(2).parent


def test_one_is_in_the_last_cube_and_bounds_of_deep_cubes_leave_no_point_out():
    assert cube_containing((1.0, 1.0), 60).upper == (1.0, 1.0)
    for x in (0.1, math.nextafter(1.0, 0.0), 2.0**-1074, 0.3):
        for depth in (1, 52, 53, 54, 60, 1100):
            cube = cube_containing((x,), depth)
            assert cube.lower[0] <= x
            assert x < cube.upper[0] or cube.upper[0] == 1.0


@pytest.mark.parametrize("x", [-1e-9, 1.0000001, math.nan, math.inf])
def test_a_point_outside_the_unit_cube_is_refused(x):
    with pytest.raises(ValueError, match="coordinate"):
        cube_containing((0.5, x), 3)


@pytest.mark.parametrize("broken", [(0, 0, 0), (2, -1, 0), (2, 1, 4), (2, 0, 1), (2, 1, -1)])
def test_impossible_cubes_are_refused(broken):
    with pytest.raises(ValueError, match="cube"):
        CubeId(*broken)
