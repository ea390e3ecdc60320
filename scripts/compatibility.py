"""Render the table of features in docs/compatibility.md from those that the matrix tries."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tests.matrix.features import FEATURES, NOTHING, Feature
from tests.matrix.operations import STEPS

PAGE = Path(__file__).parents[1] / "docs" / "compatibility.md"
BEGIN, END = "<!-- features: begin -->", "<!-- features: end -->"


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(with_features(page), encoding="utf-8")


def with_features(page: str) -> str:
    """The page with the present table between its two marks.

    Raises:
        ValueError: the page does not have both marks once.
    """
    block = re.compile(f"(?<={BEGIN}\n).*?(?={END})", re.DOTALL)
    rendered, count = block.subn(lambda _: features_table(FEATURES), page)
    if count != 1:
        raise ValueError(f"the page needs the lines {BEGIN!r} and {END!r} once, found {count}")
    return rendered


def features_table(features: Sequence[Feature]) -> str:
    """The features as a Markdown table, one row each."""
    rows = [
        f"| {feature.name} | {_supported(feature)} | {feature.note} |"
        for feature in features
        if feature is not NOTHING
    ]
    return "\n".join(["| feature of the table | supported | notes |", "|---|---|---|", *rows, ""])


def _supported(feature: Feature) -> str:
    """Which operations work, and what the others raise."""
    if not feature.refused:
        return "yes"
    errors = {f"`{error.__name__}`" for error in feature.refused.values()}
    kinds = list(dict.fromkeys(step.kind for step in STEPS if step.kind in feature.refused))
    raised = " or ".join(sorted(errors))
    if {"create", "convert"} & set(kinds):
        return f"no: {_listed(kinds)} raise{'s' if len(kinds) == 1 else ''} {raised}"
    return f"except {_listed(kinds)}: {raised}"


def _listed(words: Sequence[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


if __name__ == "__main__":
    main()
