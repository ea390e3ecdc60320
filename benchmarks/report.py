"""Render the stored results: `python -m benchmarks.report`.

It writes `docs/performance.md`, `docs/performance-tables.md` and their charts. In pages that are
otherwise written by hand, it replaces the figures between two markers (`FIGURES_OF`). The texts are
in the `*.md.jinja` files beside this module; all figures come from `results/`.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path

import jinja2

from benchmarks import pictures
from benchmarks.results import RESULTS, Run, latest
from benchmarks.view import MissingResult, View, targets

HERE = Path(__file__).parent
ROOT = HERE.parent
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
"""The lines of a page that enclose its figures."""
FIGURES_OF = {
    "README.md": "readme-figures.md.jinja",
    "docs/large-tables.md": "large-tables-figures.md.jinja",
    "docs/sampling.md": "sampling-figures.md.jinja",
}
"""The pages with figures between the markers, and the template of each."""


def main() -> None:
    """Write the pages, their charts and the figures of other pages."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS, help="directory of the results")
    parser.add_argument("--root", type=Path, default=ROOT, help="directory of README.md and docs/")
    arguments = parser.parse_args()
    runs = {scale: run for scale, run in latest(arguments.results).items() if scale >= 1}
    if not runs:
        parser.error(f"{arguments.results} has no results of scale 1 or more; run `make bench`")
    try:
        write_report(runs, arguments.root)
    except MissingResult as missing:
        parser.error(f"{arguments.results}: {missing}")


def write_report(runs: Mapping[float, Run], root: Path) -> None:
    """Write both pages and their charts, and replace the figures in the other pages.

    Args:
        root: the directory with the pages of `FIGURES_OF`.

    Raises:
        MissingResult: a figure that a page names was not measured.
        ValueError: a page has no markers.
    """
    docs = root / "docs"
    small, large = _smallest_and_largest(runs)
    pages = {"docs/performance.md": render("performance.md.jinja", small=small, large=large)}
    for page in FIGURES_OF:
        text = (root / page).read_text(encoding="utf-8")
        pages[page] = with_figures(text, figures_of(page, runs))
    pictures.draw_cost_and_gain(small, docs / "images/cost-gain")
    pictures.draw_bytes_read(small, docs / "images/bytes-read")
    for page, text in pages.items():
        (root / page).write_text(text, encoding="utf-8")
    write_tables(runs, docs / "performance-tables.md")


def write_tables(runs: Mapping[float, Run], page: Path) -> None:
    """Write the page with all tables, of whatever cases have run, and its charts."""
    views = [View(run) for _, run in sorted(runs.items())]
    for view in views:
        pictures.draw_tables(view, page.parent / "performance")
    page.write_text(render("performance-tables.md.jinja", views=views), encoding="utf-8")


def figures_of(page: str, runs: Mapping[float, Run]) -> str:
    """The figures of a page of `FIGURES_OF`, in Markdown."""
    small, large = _smallest_and_largest(runs)
    return render(FIGURES_OF[page], small=small, large=large).strip()


def with_figures(page: str, figures: str) -> str:
    """The text of a page with these figures between its markers.

    >>> print(with_figures(f"before\\n{BEGIN}\\nold\\n{END}\\nafter", "new"))
    before
    <!-- figures: begin -->
    new
    <!-- figures: end -->
    after
    """
    block = re.compile(f"(?<={re.escape(BEGIN)}\n).*?(?={re.escape(END)})", re.DOTALL)
    replaced, count = block.subn(lambda _: f"{figures}\n", page)
    if count != 1:
        raise ValueError(f"the page needs the lines {BEGIN!r} and {END!r} once, found {count}")
    return replaced


def render(template: str, **values: object) -> str:
    """The text of a template."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals["targets"] = targets
    return environment.get_template(template).render(**values)


def _smallest_and_largest(runs: Mapping[float, Run]) -> tuple[View, View]:
    return View(runs[min(runs)]), View(runs[max(runs)])


if __name__ == "__main__":
    main()
