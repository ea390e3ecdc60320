"""Whether a tree still suits rows, by how full its cubes are."""

import pytest

from qbeast_core.model.cube import CubeId
from qbeast_core.tree.fit import still_fits

ROOT = CubeId.root(2)
CUBES = [ROOT, *ROOT.children()]


@pytest.mark.parametrize(
    ("rows", "files", "fits"),
    [
        ([100, 80, 90, 70, 60], 5, True),
        ([150, 190, 180, 199, 200], 5, True),
        ([201, 250, 210, 220, 240], 5, False),
        ([100, 100, 100, 100, 900], 5, False),
        ([1000, 1000, 1000, 1000, 300], 5, False),
        ([60, 50, 40, 60, 50], 5, True),
        ([60, 50, 40, 50, 40], 5, False),
        ([3], 1, True),
        ([3], 2, False),
        ([], 1, False),
        ([0, 0], 1, False),
    ],
)
def test_cubes_are_about_as_full_as_they_are_meant_to_be(
    rows: list[int], files: int, fits: bool
) -> None:
    assert still_fits(dict(zip(CUBES, rows, strict=False)), files, 100) is fits


def test_few_rows_may_be_in_crowded_cubes() -> None:
    many = dict.fromkeys((child for top in ROOT.children() for child in top.children()), 200)
    assert still_fits({**many, ROOT: 300}, len(many) + 1, 100)
    assert not still_fits({**many, ROOT: 400}, len(many) + 1, 100)
