"""The page on compatibility has the features that the matrix tries."""

from __future__ import annotations

import pytest

from qbeast_core import IncompatibleTable
from scripts.compatibility import PAGE, features_table, with_features
from tests.matrix.features import NOTHING, Feature


def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_features(page) == page, "run: python -m scripts.compatibility"


def test_a_row_says_which_operations_are_rejected_and_how() -> None:
    table = features_table(
        [
            NOTHING,
            Feature("easy"),
            Feature("hard", refused={"update": IncompatibleTable, "merge": IncompatibleTable}),
            Feature("never", refused={"convert": IncompatibleTable}, note="Copy it."),
        ]
    )
    assert table.splitlines()[2:] == [
        "| easy | yes |  |",
        "| hard | except merge and update: `IncompatibleTable` |  |",
        "| never | no: convert raises `IncompatibleTable` | Copy it. |",
    ]


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="once, found 0"):
        with_features("no marks")
